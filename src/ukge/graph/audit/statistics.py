"""What the facts themselves look like: how many there are, which are said twice, and which relations are symmetric."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ukge.graph.index import FactIndex
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.undirected import FEWEST, ends_shared, mirrors

BINS = 20
DIGITS = 3
SAME = 1e-6  # confidences nearer than this are the same value written with fewer digits
SHOWN = 5
SAME_ENDS = 0.8
"""Share of a relation's entities that are both heads and tails from which on it may have no direction."""


@dataclass(frozen=True, slots=True)
class PartCounts:
    """One part of the data: its size and its confidences (None where it holds no facts).

    `histogram` counts confidences in 20 equal bins of [0, 1]; `mode` is the most frequent confidence, rounded to
    3 digits, and `mode_share` the share of rows that have it.
    """

    name: str
    rows: int
    distinct: int
    mean: float | None
    std: float | None
    median: float | None
    lowest: float | None
    highest: float | None
    mode: float | None
    mode_share: float | None
    histogram: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NameCounts:
    """Names in a vocabulary, and how many of them occur in a fact."""

    known: int
    used: int


def count_part(name: str, graph: UncertainGraph) -> PartCounts:
    """Count the facts of one part and describe their confidences."""
    values = graph.confidence
    histogram = histogram_of(values)
    if len(values) == 0:
        return PartCounts(name, 0, 0, None, None, None, None, None, None, None, histogram)
    rounded, times = np.unique(np.round(values, DIGITS), return_counts=True)
    most = int(times.argmax())
    return PartCounts(
        name,
        rows=len(graph),
        distinct=len(FactIndex(graph)),
        mean=float(values.mean()),
        std=float(values.std()),
        median=float(np.median(values)),
        lowest=float(values.min()),
        highest=float(values.max()),
        mode=float(rounded[most]),
        mode_share=float(times[most] / len(values)),
        histogram=histogram,
    )


def count_names(graph: UncertainGraph) -> tuple[NameCounts, NameCounts]:
    """Count the entities and the relations that the vocabularies know and that the facts use."""
    entities = NameCounts(graph.n_entities, _used(graph.n_entities, graph.head, graph.tail))
    return entities, NameCounts(graph.n_relations, _used(graph.n_relations, graph.relation))


def histogram_of(values: npt.NDArray[np.float64]) -> tuple[int, ...]:
    """Count values per bin; a value on the edge of two bins falls into the upper one, 1 into the last."""
    bins = np.minimum((values * BINS + 1e-9).astype(np.int64), BINS - 1)
    return tuple(np.bincount(bins, minlength=BINS).tolist())


def _used(size: int, *columns: npt.NDArray[np.int32]) -> int:
    seen = np.zeros(size, dtype=np.bool_)
    for ids in columns:
        seen[ids] = True
    return int(seen.sum())


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


@dataclass(frozen=True, slots=True)
class Symmetry:
    """One relation over all parts.

    `facts` are its distinct triples between two different entities, `share` of them have their inverse in the graph,
    and `gap` is the mean absolute difference of the two confidences. `undirected` says whether the graph takes it to
    have no direction, `perhaps` whether it may have none: nearly all its entities are heads and tails, but no fact has
    its inverse, as where each was written down once, in any order.
    """

    relation: str
    facts: int
    share: float
    gap: float | None
    undirected: bool = False
    perhaps: bool = False


def find_symmetry(facts: FactIndex) -> tuple[Symmetry, ...]:
    """Return the symmetry of every used relation, those with most facts first."""
    total, both, gap = mirrors(facts)
    names = facts.graph.relations.decode(np.arange(facts.n_relations)).to_pylist()
    return tuple(
        Symmetry(
            names[r],
            int(total[r]),
            float(both[r] / total[r]),
            float(gap[r] / both[r]) if both[r] else None,
            undirected=names[r] in facts.graph.undirected,
            perhaps=bool(total[r] >= FEWEST and both[r] == 0 and ends_shared(facts, int(r)) >= SAME_ENDS),
        )
        for r in np.argsort(-total, kind="stable")
        if total[r]
    )
