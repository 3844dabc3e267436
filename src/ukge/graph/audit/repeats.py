"""Triples that occur more than once, and those that say different things each time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ukge.graph.audit.lookup import ByTriple
from ukge.graph.uncertain import UncertainGraph

SAME = 1e-6  # confidences nearer than this are the same value written with fewer digits
SHOWN = 5


@dataclass(frozen=True, slots=True)
class Conflict:
    """One triple by name with all the confidences it is given."""

    head: str
    relation: str
    tail: str
    confidences: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Repeats:
    """Repeated triples over all parts.

    `triples` occur more than once, in `rows` rows; `conflicting` of them carry different confidences. The spread of a
    conflicting triple is its highest minus its lowest confidence; `worst` holds the widest ones.
    """

    triples: int
    rows: int
    conflicting: int
    mean_spread: float | None
    widest_spread: float | None
    worst: tuple[Conflict, ...]


def find_repeats(graph: UncertainGraph, facts: ByTriple) -> Repeats:
    """Find the repeated and conflicting triples of a graph, whose grouped rows are `facts`."""
    repeated = facts.count > 1
    spread = facts.spread()
    conflicting = np.flatnonzero(spread > SAME)
    widest = conflicting[np.argsort(-spread[conflicting], kind="stable")[:SHOWN]]
    return Repeats(
        triples=int(repeated.sum()),
        rows=int(facts.count[repeated].sum()),
        conflicting=len(conflicting),
        mean_spread=float(spread[conflicting].mean()) if len(conflicting) else None,
        widest_spread=float(spread[conflicting].max()) if len(conflicting) else None,
        worst=tuple(_named(graph, facts, int(at)) for at in widest),
    )


def _named(graph: UncertainGraph, facts: ByTriple, at: int) -> Conflict:
    rows = slice(int(facts.start[at]), int(facts.start[at] + facts.count[at]))
    fact = graph[int(facts.order[rows.start])]
    return Conflict(fact.head, fact.relation, fact.tail, tuple(float(c) for c in facts.confidence[rows]))
