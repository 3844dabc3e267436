"""Grounding: rules filled with strong facts, for the heads that are unseen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.parquet as pq

from ukge.errors import ConfigError
from ukge.graph.files import check_target
from ukge.graph.uncertain import UncertainGraph
from ukge.logic.engine import Engine, using
from ukge.logic.facts import Directions, FactTables, check_strong, fact_tables, relation_ids
from ukge.logic.ground_rules import Grounding, GroundingReport, RuleGrounding
from ukge.logic.joins import Shape, bindings, bodies_table, estimates, shaped
from ukge.logic.rules import LONGEST_BODY, Atom, Rule
from ukge.progress.steps import Steps, Tell
from ukge.settings.knobs import check_number
from ukge.storage.files import replacing_path

SCHEMA = pa.schema(
    [
        *((name, pa.int32()) for name in ("head", "relation", "tail")),
        *((name, pa.float64()) for name in ("body", "weight")),
        ("rule", pa.int32()),
        *((f"fact_{place}", pa.int64()) for place in range(1, LONGEST_BODY + 1)),
    ]
)
FACTS = tuple(f"fact_{place}" for place in range(1, LONGEST_BODY + 1))


@dataclass(frozen=True, slots=True)
class GroundingSettings:
    """Which ground rules to make and to keep."""

    strong: float = 0.85
    """confidence above which a fact may be part of a body (τ)"""
    unseen_only: bool = True
    """leave out ground rules whose head is a fact of the graph"""
    distinct: bool = True
    """different variables stand for different entities"""
    best_only: bool = False
    """keep only the truest body for each rule and head"""
    min_body: float = 0.0
    """keep bodies truer than this"""
    budget: int = 10_000_000
    """ground rules to make at most; rules are taken by falling weight"""

    def __post_init__(self) -> None:
        check_strong(self.strong)
        check_number(int, "budget", self.budget, least=0, most=2**62)
        check_number(float, "min_body", self.min_body, least=0.0, most=1.0)
        if self.min_body == 1.0:
            raise ConfigError("‹min_body› must be below 1: no body is truer than that, so no ground rule would be left")


ESTIMATING, COUNTING, WRITING = "estimating how many there are", "filling the rules", "writing the ground rules"
STEPS = {ESTIMATING: 1, COUNTING: 2, WRITING: 3}
"""What grounding does, with the share of its time that each step takes about."""


def ground(
    graph: UncertainGraph,
    rules: Sequence[Rule],
    settings: GroundingSettings | None = None,
    *,
    out: str | Path | None = None,
    engine: str | Engine = "duckdb",
    tell: Tell | None = None,
) -> Grounding:
    """Fill the bodies of rules with strong facts and return the ground rules, sorted by rule, head and facts.

    How many there are is estimated first: rules are taken by falling weight as long as they fit the budget, and the
    report names those that did not. `out` writes a Parquet file without holding the ground rules in memory.
    """
    wanted = settings or GroundingSettings()
    with using(engine) as running, fact_tables(running, graph, wanted.strong) as facts:
        return ground_on(running, facts, graph, rules, wanted, None if out is None else Path(out), tell)


def ground_on(
    engine: Engine,
    facts: FactTables,
    graph: UncertainGraph,
    rules: Sequence[Rule],
    settings: GroundingSettings,
    out: Path | None = None,
    tell: Tell | None = None,
) -> Grounding:
    """Ground rules on tables that are already loaded."""
    steps = Steps(tell, STEPS)
    steps.begin(ESTIMATING)
    groups = _groups(rules, graph, facts.directions)
    expected: dict[int, int] = {}
    for number, group in enumerate(groups):
        steps.within(number / len(groups))
        expected |= estimates(engine, facts, group.bodies, group.shape)
    pruned = _over_budget(rules, expected, settings.budget)
    heads = engine.load(_heads_table(rules, graph))
    filled = [_Filled(engine, facts, heads, group.without(pruned), settings) for group in groups]
    try:
        kept = ibis.union(*(one.kept() for one in filled)) if filled else None
        counts: dict[int, dict[str, Any]] = {}
        steps.begin(COUNTING)
        for number, one in enumerate(filled):
            steps.within(number / len(filled))
            counts |= {row.pop("id"): row for row in engine.rows(one.counted())}
        steps.begin(WRITING)
        table, size = _output(engine, kept, out)
    finally:
        for one in filled:
            engine.drop(one.bodies)
        engine.drop(heads)
    told = tuple(
        RuleGrounding(rule, expected[number], pruned=pruned.get(number), **counts.get(number, {}))
        for number, rule in enumerate(rules)
    )
    return Grounding(tuple(rules), GroundingReport(settings.budget, told, size), table, out)


@dataclass(frozen=True)
class _Group:
    """Rules of one shape whose atoms fill it in one order: their bodies by the rule's number."""

    shape: Shape
    order: tuple[int, ...]
    bodies: pa.Table

    def without(self, pruned: dict[int, str]) -> _Group:
        kept = [number not in pruned for number in self.bodies["id"].to_pylist()]
        return _Group(self.shape, self.order, self.bodies.filter(pa.array(kept, pa.bool_())))


class _Filled:
    """The bodies of one group filled with facts: as kept ground rules, and as counts of what was found."""

    def __init__(
        self, engine: Engine, facts: FactTables, heads: Any, group: _Group, settings: GroundingSettings
    ) -> None:
        self.bodies = engine.load(group.bodies)
        self.facts, self.heads, self.group, self.settings = facts, heads, group, settings

    def kept(self) -> Any:
        found = self._found()
        found = found.filter(found.body > self.settings.min_body)
        if self.settings.unseen_only:
            found = found.anti_join(self.facts.observed, self._same_head(found))
        if self.settings.best_only:
            best_first = [found.body.desc(), *(found[name] for name in FACTS)]
            window = ibis.window(group_by=[found[name] for name in ("rule", "head", "tail")], order_by=best_first)
            found = found.mutate(place=ibis.row_number().over(window))
            found = found.filter(found.place == 0).drop("place")
        return found

    def counted(self) -> Any:
        found = self._found()
        joined = found.left_join(self.facts.observed, self._same_head(found))
        untrue = joined.body <= self.settings.min_body
        seen = joined.c.notnull() & ~untrue & self.settings.unseen_only
        counts = {"untrue": untrue.cast("int64").sum(), "observed": seen.cast("int64").sum()}
        return joined.group_by(id=joined.rule).agg(filled=joined.count(), **counts)

    def _same_head(self, found: Any) -> list[Any]:
        columns = {"head": "h", "relation": "r", "tail": "t"}
        return [found[name] == self.facts.observed[other] for name, other in columns.items()]

    def _found(self) -> Any:
        shape = self.group.shape
        filled = bindings(self.facts.steps, self.bodies, shape, distinct=self.settings.distinct)
        named = filled.join(self.heads, filled.id == self.heads.rule)
        subject, target = (f"v_{variable}" for variable in shape.head)
        at = {place: number for number, place in enumerate(self.group.order, start=1)}
        rows = {
            name: named[f"fact_{at[place]}"] if place in at else ibis.null("int64") for place, name in enumerate(FACTS)
        }
        if self.facts.directions.undirected:
            named = named.filter(~named.either_way | (named[subject] <= named[target]))
        head, tail = named[subject], named[target]
        if self.facts.directions.undirected:
            turned = named.relation.isin(self.facts.directions.undirected) & (head > tail)
            head, tail = ibis.ifelse(turned, tail, head), ibis.ifelse(turned, head, tail)
        columns = {"head": head, "relation": named.relation, "tail": tail, "body": named.value}
        return named.select(**columns, weight=named.weight, rule=named.rule, **rows)


def _groups(rules: Sequence[Rule], graph: UncertainGraph, directions: Directions) -> list[_Group]:
    members: dict[tuple[Shape, tuple[int, ...]], dict[int, tuple[int, ...]]] = defaultdict(dict)
    for number, (rule, relations) in enumerate(zip(rules, relation_ids(rules, graph), strict=True)):
        seen = shaped(rule)
        members[seen.shape, seen.order][number] = seen.steps(relations, directions)
    return [
        _Group(shape, order, bodies_table(list(steps), list(steps.values())))
        for (shape, order), steps in sorted(members.items())
    ]


def _heads_table(rules: Sequence[Rule], graph: UncertainGraph) -> pa.Table:
    relations = [ids[-1] for ids in relation_ids(rules, graph)]
    columns = {"rule": pa.array(range(len(rules)), pa.int32()), "relation": pa.array(relations, pa.int32())}
    either_way = pa.array([_same_either_way(rule, graph.undirected) for rule in rules], pa.bool_())
    weight = pa.array([rule.weight for rule in rules], pa.float64())
    return pa.table({**columns, "weight": weight, "either_way": either_way})


def _same_either_way(rule: Rule, undirected: Sequence[str]) -> bool:
    """Return whether a rule's subject and object can change places, so that each ground rule would be found twice."""
    if rule.head.relation not in undirected:
        return False
    turned = replace(rule, head=Atom(rule.head.relation, rule.head.object, rule.head.subject))
    return bool(_readings(rule, undirected) & _readings(turned, undirected))


def _readings(rule: Rule, undirected: Sequence[str]) -> set[Rule]:
    """Return the rule with the body atoms that have no direction either way round."""
    ways = [
        (atom, Atom(atom.relation, atom.object, atom.subject)) if atom.relation in undirected else (atom,)
        for atom in rule.body
    ]
    return {replace(rule, body=body).canonical() for body in product(*ways)}


def _over_budget(rules: Sequence[Rule], expected: dict[int, int], budget: int) -> dict[int, str]:
    """Return the rules to leave out, with the reason: those that do not fit after all rules of greater weight."""
    left, pruned = budget, {}
    for number in sorted(expected, key=lambda n: (-rules[n].weight, expected[n], n)):
        if expected[number] <= left:
            left -= expected[number]
        else:
            pruned[number] = (
                f"it has up to {expected[number]:,} ground rules, and {left:,} of the budget of {budget:,} were left; "
                "raise the budget or τ, or give the rule more weight"
            )
    return pruned


def _output(engine: Engine, kept: Any, out: Path | None) -> tuple[pa.Table | None, int]:
    if kept is None:
        kept = engine.load(SCHEMA.empty_table())
    ordered = kept.order_by("rule", "head", "tail", *FACTS)
    if out is None:
        table = engine.collect(ordered)
        return table, table.num_rows
    check_target(out)
    with replacing_path(out) as temporary:
        engine.write_parquet(ordered, temporary)
    return None, int(pq.read_metadata(out).num_rows)
