"""How many facts there are, over which names, and how their confidences are spread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ukge.graph.index import FactIndex
from ukge.graph.uncertain import UncertainGraph

BINS = 20
DIGITS = 3


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
    histogram = _histogram(values)
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


def _histogram(values: npt.NDArray[np.float64]) -> tuple[int, ...]:
    """Count values per bin; a value on the edge of two bins falls into the upper one, 1 into the last."""
    bins = np.minimum((values * BINS + 1e-9).astype(np.int64), BINS - 1)
    return tuple(np.bincount(bins, minlength=BINS).tolist())


def _used(size: int, *columns: npt.NDArray[np.int32]) -> int:
    seen = np.zeros(size, dtype=np.bool_)
    for ids in columns:
        seen[ids] = True
    return int(seen.sum())
