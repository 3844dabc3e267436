"""Triples that occur more than once, and those that say different things each time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ukge.graph.index import FactIndex

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


def find_repeats(facts: FactIndex) -> Repeats:
    """Find the repeated and conflicting triples of a graph."""
    triples = facts.triples
    repeated = triples.count > 1
    spread = triples.spread()
    conflicting = np.flatnonzero(spread > SAME)
    widest = conflicting[np.argsort(-spread[conflicting], kind="stable")[:SHOWN]]
    return Repeats(
        triples=int(repeated.sum()),
        rows=int(triples.count[repeated].sum()),
        conflicting=len(conflicting),
        mean_spread=float(spread[conflicting].mean()) if len(conflicting) else None,
        widest_spread=float(spread[conflicting].max()) if len(conflicting) else None,
        worst=tuple(_named(facts, int(at)) for at in widest),
    )


def _named(facts: FactIndex, at: int) -> Conflict:
    triples = facts.triples
    rows = slice(int(triples.start[at]), int(triples.start[at + 1]))
    fact = facts.named(int(triples.first[at]))
    return Conflict(fact.head, fact.relation, fact.tail, tuple(float(c) for c in triples.confidence[rows]))
