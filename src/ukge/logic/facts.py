"""The facts as tables of an engine: each (h, r, t) once, and the strong ones that bodies are made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import ibis
import numpy as np
import pyarrow as pa

from ukge.errors import ConfigError, RuleError
from ukge.graph.aggregate import Repeats, mean_confidence
from ukge.graph.uncertain import UncertainGraph
from ukge.logic.engine import Engine
from ukge.logic.rules import Rule


@dataclass(frozen=True)
class Directions:
    """Steps from both ends of a fact: r and R + r, or r alone where the relation (of `undirected`) has no direction.

    A rule that concludes such a relation is the same from both ends too: of its two walks, the lower one stands for it.
    """

    n_relations: int
    undirected: tuple[int, ...] = ()

    @classmethod
    def of(cls, graph: UncertainGraph) -> Directions:
        """Return the directions of a graph's relations."""
        return cls(graph.n_relations, tuple(np.flatnonzero(graph.undirected_relations).tolist()))

    def step(self, relation: int, *, backwards: bool) -> int:
        """Return the step of a relation from its subject, or backwards from its object."""
        return relation + self.n_relations * (backwards and relation not in self.undirected)

    def turned(self, steps: Sequence[int]) -> tuple[int, ...]:
        """Return a walk seen from its other end."""
        half = self.n_relations
        return tuple(step - half if step >= half else self.step(step, backwards=True) for step in reversed(steps))

    def inverse(self, step: Any) -> Any:
        """Return a column of steps, each seen from its other end."""
        forth = step + self.n_relations
        if self.undirected:
            forth = ibis.ifelse(step.isin(self.undirected), step, forth)
        return ibis.ifelse(step >= self.n_relations, step - self.n_relations, forth).cast("int32")

    def lower(self, found: Any, first: str, second: str, ends: Sequence[Any]) -> Any:
        """Return a table of rules (two steps, r) with the lower walk of those that conclude an undirected relation.

        `ends` are the two steps as they are from the other end.
        """
        if not self.undirected:
            return found
        one, other = ends
        lower = (one < found[first]) | ((one == found[first]) & (other < found[second]))
        turns = found.r.isin(self.undirected) & lower
        both = {first: ibis.ifelse(turns, one, found[first]), second: ibis.ifelse(turns, other, found[second])}
        return found.mutate(**{name: step.cast("int32") for name, step in both.items()})

    def least_implied(self, rules: Any) -> Any:
        """Return how many facts rules imply at least: without a direction, two pairs of entities are one fact."""
        if not self.undirected:
            return rules.implied
        return rules.implied * ibis.ifelse(rules.r.isin(self.undirected), 0.5, 1.0)


@dataclass(frozen=True)
class FactTables:
    """`observed` (h, r, t, c) holds every triple once; `steps` (x, p, y, c, row) the strong facts, seen from both ends.

    A step p from x to y is the fact p(x, y), or, for p ≥ R (the number of relations), the fact (p − R)(y, x) read
    backwards. A triple that the graph says several times has the mean of its confidences, as everywhere, and `row` is
    the first row that says it.
    """

    observed: Any
    """as they are stored: heads of rules without a direction are turned so to be found"""
    steps: Any
    directions: Directions


@contextmanager
def fact_tables(engine: Engine, graph: UncertainGraph, strong: float) -> Iterator[FactTables]:
    """Load a graph's facts into an engine, for the time of the block."""
    check_strong(strong)
    facts = distinct_facts(graph)
    observed = engine.load(facts.select(["h", "r", "t", "c"]))
    above = facts.filter(pa.array(facts["c"].to_numpy() > strong))
    steps = engine.load(pa.concat_tables([_forth(above), _back(above, graph)]))
    try:
        yield FactTables(observed, steps, Directions.of(graph))
    finally:
        engine.drop(observed)
        engine.drop(steps)


def _forth(facts: pa.Table) -> pa.Table:
    return pa.table({"x": facts["h"], "p": facts["r"], "y": facts["t"], "c": facts["c"], "row": facts["row"]})


def _back(facts: pa.Table, graph: UncertainGraph) -> pa.Table:
    """Return the steps from the other end; a fact of an entity with itself has none if it has no direction."""
    undirected = graph.undirected_relations[facts["r"].to_numpy()]
    facts = facts.filter(pa.array(~undirected | (facts["h"].to_numpy() != facts["t"].to_numpy())))
    relation = facts["r"].to_numpy()
    step = np.where(graph.undirected_relations[relation], relation, relation + np.int32(graph.n_relations))
    return pa.table({"x": facts["t"], "p": pa.array(step), "y": facts["h"], "c": facts["c"], "row": facts["row"]})


def distinct_facts(graph: UncertainGraph) -> pa.Table:
    """Return each (h, r, t) of a graph once, in order, with the mean of its confidences and its first row."""
    repeats = Repeats.of(graph)
    rows = repeats.first
    ids = {"h": graph.head[rows], "r": graph.relation[rows], "t": graph.tail[rows]}
    return pa.table({**ids, "c": mean_confidence(repeats), "row": rows})


def check_strong(strong: float) -> None:
    """Refuse a threshold τ that no confidence could pass, or that is none."""
    if not 0.0 <= strong < 1.0:
        raise ConfigError(f"τ, the threshold of strong facts, is a number from 0 up to 1, not {strong}")


def relation_ids(rules: Sequence[Rule], graph: UncertainGraph) -> list[tuple[int, ...]]:
    """Return the relation ids of each rule, body before head; an unknown relation is an error that names its rule."""
    ids = []
    for rule in rules:
        unknown = [name for name in rule.relations if name not in graph.relations]
        if unknown:
            near = graph.relations.near(unknown[0])
            hint = f"Near names: {', '.join(near)}." if near else "Relations are compared exactly, case included."
            raise RuleError(f"the graph has no relation {unknown[0]!r}, which a rule names:\n  {rule}", hint=hint)
        ids.append(tuple(graph.relations.index[name] for name in rule.relations))
    return ids
