"""How good a rule is: counted on the facts, for all rules of one shape at once."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import ibis
import numpy as np
import pyarrow as pa

from ukge.errors import RuleError
from ukge.graph.uncertain import UncertainGraph
from ukge.logic.engine import Engine, using
from ukge.logic.facts import Directions, FactTables, fact_tables, relation_ids
from ukge.logic.joins import Shape, bindings, bodies_table, shaped
from ukge.logic.rules import Rule

PARTS = 1e9
"""Confidences are added up in whole parts of 1 / so many."""


@dataclass(frozen=True, slots=True)
class Measures:
    """Counts and means of one rule. A rule *implies* a fact where strong facts fill its body; each fact counts once.

    Where several bodies imply the same fact, the truest body counts. Means and errors run over the implied facts that
    are observed.
    """

    implied: int
    """facts the rule implies"""
    support: int
    """implied facts that are observed, with any confidence"""
    strong_support: int
    """implied facts that are observed and strong"""
    pca_implied: int
    """implied facts whose subject has a strong fact of the head's relation"""
    head_facts: int
    """observed facts of the head's relation"""
    body_sum: float
    """sum of the body's truth over all implied facts"""
    overlap: float
    """sum of min(body's truth, head's confidence) over the implied facts that are observed"""
    body_mean: float
    """mean truth of the body"""
    head_mean: float
    """mean confidence of the head"""
    error: float
    """mean |truth of the body − confidence of the head|"""
    relation_mean: float
    """mean confidence of all facts of the head's relation"""

    @property
    def hit_ratio(self) -> float:
        """The paper's: the share of implied facts that exist in the graph."""
        return _ratio(self.support, self.implied)

    @property
    def lower_bound(self) -> float:
        """Lower end of the 95 % Wilson interval of the hit ratio: rules are ranked by it, so that luck counts less."""
        n, z2 = float(self.implied), 1.96**2
        if not n:
            return 0.0
        share = self.support / n
        spread = math.sqrt(z2 * (share * (1.0 - share) / n + z2 / (4.0 * n * n)))
        return max(0.0, (share + z2 / (2.0 * n) - spread) / (1.0 + z2 / n))

    @property
    def confidence(self) -> float:
        """Standard confidence, as on a deterministic graph of the strong facts: strong ones among the implied."""
        return _ratio(self.strong_support, self.implied)

    @property
    def pca_confidence(self) -> float:
        """Confidence under the partial completeness assumption: only subjects that have strong heads at all count."""
        return _ratio(self.strong_support, self.pca_implied)

    @property
    def head_coverage(self) -> float:
        """The share of the head relation's facts that the rule implies."""
        return _ratio(self.support, self.head_facts)

    @property
    def soft_confidence(self) -> float:
        """The share of the truth the rule implies that the graph shows: Σ min(body, head) / Σ body."""
        return _ratio(self.overlap, self.body_sum)

    @property
    def lift(self) -> float:
        """How much surer implied facts are than the relation's facts in general: ratio of mean confidences."""
        return _ratio(self.head_mean, self.relation_mean)

    def as_dict(self) -> dict[str, float]:
        """Return all figures by name, counted and derived."""
        derived = (
            "hit_ratio",
            "lower_bound",
            "confidence",
            "pca_confidence",
            "head_coverage",
            "soft_confidence",
            "lift",
        )
        return {**asdict(self), **{name: getattr(self, name) for name in derived}}


@dataclass(frozen=True, slots=True)
class ScoredRule:
    """A rule and its figures."""

    rule: Rule
    measures: Measures


def measure(
    graph: UncertainGraph,
    rules: Sequence[Rule],
    *,
    strong: float = 0.85,
    distinct: bool = True,
    known: UncertainGraph | None = None,
    engine: str | Engine = "duckdb",
) -> list[ScoredRule]:
    """Measure rules on a graph. Bodies are made of facts with a confidence above `strong` (τ).

    With `distinct`, different variables stand for different entities: no fact relates an entity to itself.
    `known` may give other facts for the heads to be found among, such as a graph that holds this one.
    """
    with using(engine) as running, fact_tables(running, graph, strong) as facts:
        if known is None:
            return measure_on(running, facts, graph, rules, strong=strong, distinct=distinct)
        with fact_tables(running, known, strong) as others:
            mixed = replace(facts, observed=others.observed)
            return measure_on(running, mixed, graph, rules, strong=strong, distinct=distinct)


def measure_on(
    engine: Engine, facts: FactTables, graph: UncertainGraph, rules: Sequence[Rule], *, strong: float, distinct: bool
) -> list[ScoredRule]:
    """Measure rules on tables that are already loaded."""
    negated = next((rule for rule in rules if rule.negated), None)
    if negated is not None:
        raise RuleError(f"a rule with a negated head implies no facts to count:\n  {negated}")
    if not rules:
        return []
    counted: dict[int, dict[str, Any]] = {number: {} for number in range(len(rules))}
    for batch in _batches(rules, graph, facts.directions):
        for row in batch.measured(engine, facts, strong, distinct):
            counted[row.pop("rule")].update(row)
    sizes = _relation_sizes(engine, facts)
    return [ScoredRule(rule, _measures(counted[n], sizes, graph, rule)) for n, rule in enumerate(rules)]


@dataclass(frozen=True)
class _Batch:
    """Rules of one shape: the distinct bodies among them, and per rule its body and the relation of its head.

    Facts that `undirected` heads imply are one with their mirrors: they are counted as they are stored.
    """

    shape: Shape
    undirected: bool
    bodies: pa.Table
    heads: pa.Table

    def measured(self, engine: Engine, facts: FactTables, strong: float, distinct: bool) -> Iterator[dict[str, Any]]:
        bodies, heads = engine.load(self.bodies), engine.load(self.heads)
        subject, target = (f"v_{variable}" for variable in self.shape.head)
        filled = bindings(facts.steps, bodies, self.shape, distinct=distinct)
        x, y = filled[subject], filled[target]
        if self.undirected:
            x, y = ibis.least(x, y), ibis.greatest(x, y)
        pairs = filled.select("id", x=x, y=y, value=filled.value)
        implied = engine.keep(pairs.group_by("id", "x", "y").agg(value=pairs.value.max()))
        try:
            yield from engine.rows(_implied(implied, heads))
            yield from engine.rows(_hits(implied, heads, facts.observed, strong))
            complete = _partially_complete_pairs if self.undirected else _partially_complete
            yield from engine.rows(complete(implied, heads, facts.observed, strong))
        finally:
            for table in (implied, bodies, heads):
                engine.drop(table)


def _implied(implied: Any, heads: Any) -> Any:
    totals = implied.group_by("id").agg(implied=implied.count(), body_sum=_exact_sum(implied.value))
    joined = heads.join(totals, heads.body == totals.id)
    return joined.select("rule", "implied", "body_sum")


def _hits(implied: Any, heads: Any, observed: Any, strong: float) -> Any:
    asked = implied.join(heads, implied.id == heads.body)
    links = [asked.x == observed.h, asked.y == observed.t, asked.relation == observed.r]
    hits = asked.join(observed, links)
    return hits.group_by("rule").agg(
        support=hits.count(),
        strong_support=(hits.c > strong).cast("int64").sum(),
        overlap=_exact_sum(ibis.least(hits.value, hits.c)),
        body_mean=_exact_sum(hits.value) / hits.count(),
        head_mean=_exact_sum(hits.c) / hits.count(),
        error=_exact_sum((hits.value - hits.c).abs()) / hits.count(),
    )


def _exact_sum(values: Any) -> Any:
    """Return a sum that does not depend on the order of its terms, which engines and threads choose as they like."""
    return (values * PARTS).round().cast("int64").sum().cast("float64") / PARTS


def _partially_complete(implied: Any, heads: Any, observed: Any, strong: float) -> Any:
    per_subject = implied.group_by("id", "x").agg(n=implied.count())
    known = observed.filter(observed.c > strong).select("h", "r").distinct()
    asked = per_subject.join(heads, per_subject.id == heads.body)
    complete = asked.join(known, [asked.x == known.h, asked.relation == known.r])
    return complete.group_by("rule").agg(pca_implied=complete.n.sum())


def _partially_complete_pairs(implied: Any, heads: Any, observed: Any, strong: float) -> Any:
    """Count the implied facts without a direction of which either end has a strong fact of the relation."""
    certain = observed.filter(observed.c > strong)
    known = ibis.union(certain.select("r", e=certain.h), certain.select("r", e=certain.t), distinct=True)
    asked = implied.join(heads, implied.id == heads.body)
    ends = (asked.join(known, [end == known.e, asked.relation == known.r]) for end in (asked.x, asked.y))
    complete = ibis.union(*(end.select("rule", "x", "y") for end in ends), distinct=True)
    return complete.group_by("rule").agg(pca_implied=complete.count())


def _batches(rules: Sequence[Rule], graph: UncertainGraph, directions: Directions) -> list[_Batch]:
    by_shape: dict[tuple[Shape, bool], list[tuple[int, tuple[int, ...], int]]] = defaultdict(list)
    for number, (rule, relations) in enumerate(zip(rules, relation_ids(rules, graph), strict=True)):
        seen = shaped(rule)
        member = number, seen.steps(relations, directions), relations[-1]
        by_shape[seen.shape, relations[-1] in directions.undirected].append(member)
    batches = []
    for (shape, undirected), members in sorted(by_shape.items()):
        bodies = {steps: place for place, steps in enumerate(dict.fromkeys(steps for _, steps, _ in members))}
        heads = {
            "rule": pa.array([number for number, _, _ in members], pa.int32()),
            "body": pa.array([bodies[steps] for _, steps, _ in members], pa.int32()),
            "relation": pa.array([head for _, _, head in members], pa.int32()),
        }
        table = bodies_table(list(bodies.values()), list(bodies))
        batches.append(_Batch(shape, undirected, table, pa.table(heads)))
    return batches


def _relation_sizes(engine: Engine, facts: FactTables) -> dict[int, tuple[int, float]]:
    observed = facts.observed
    rows = engine.rows(observed.group_by("r").agg(n=observed.count(), mean=_exact_sum(observed.c) / observed.count()))
    return {row["r"]: (row["n"], row["mean"]) for row in rows}


def _measures(
    counted: dict[str, Any], sizes: dict[int, tuple[int, float]], graph: UncertainGraph, rule: Rule
) -> Measures:
    facts, mean = sizes.get(graph.relations.index[rule.head.relation], (0, np.nan))
    found: dict[str, Any] = {
        "implied": 0,
        "support": 0,
        "strong_support": 0,
        "pca_implied": 0,
        "body_sum": 0.0,
        "overlap": 0.0,
    }
    found |= {"body_mean": np.nan, "head_mean": np.nan, "error": np.nan}
    found |= counted
    return Measures(**found, head_facts=facts, relation_mean=mean)


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
