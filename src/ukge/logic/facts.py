"""The facts as tables of an engine: each (h, r, t) once, and the strong ones that bodies are made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ukge.errors import ConfigError, RuleError
from ukge.graph.aggregate import Repeats, mean_confidence
from ukge.graph.uncertain import UncertainGraph
from ukge.logic.engine import Engine
from ukge.logic.rules import Rule


@dataclass(frozen=True)
class FactTables:
    """`observed` (h, r, t, c) holds every triple once; `steps` (x, p, y, c, row) the strong facts, seen from both ends.

    A step p from x to y is the fact p(x, y), or, for p ≥ R (the number of relations), the fact (p − R)(y, x) read
    backwards. A triple that the graph says several times has the mean of its confidences, as everywhere, and `row` is
    the first row that says it.
    """

    observed: Any
    steps: Any


@contextmanager
def fact_tables(engine: Engine, graph: UncertainGraph, strong: float) -> Iterator[FactTables]:
    """Load a graph's facts into an engine, for the time of the block."""
    check_strong(strong)
    facts = distinct_facts(graph)
    observed = engine.load(facts.select(["h", "r", "t", "c"]))
    above = facts.filter(pa.array(facts["c"].to_numpy() > strong))
    steps = engine.load(pa.concat_tables([_steps(above, 0), _steps(above, graph.n_relations)]))
    try:
        yield FactTables(observed, steps)
    finally:
        engine.drop(observed)
        engine.drop(steps)


def _steps(facts: pa.Table, offset: int) -> pa.Table:
    x, y = ("t", "h") if offset else ("h", "t")
    steps = pa.array(facts["r"].to_numpy() + np.int32(offset))
    return pa.table({"x": facts[x], "p": steps, "y": facts[y], "c": facts["c"], "row": facts["row"]})


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
