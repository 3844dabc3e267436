"""Repeated triples → one fact each, without losing how often they occurred and how far they differed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ukge.errors import SHOWN, DataError, Problem
from ukge.graph.columns import Confidences
from ukge.graph.index import Triples
from ukge.graph.uncertain import UncertainGraph
from ukge.registry import Registry

Counts = npt.NDArray[np.int64]
SOURCE_SEPARATOR = "; "


@dataclass(frozen=True, eq=False)
class Repeats:
    """The rows of a graph gathered by triple: rows `order[starts[i] : starts[i] + counts[i]]` are the i-th triple.

    Triples stand in the order of their first occurrence, rows of one triple in the order of the graph.
    """

    graph: UncertainGraph
    order: npt.NDArray[np.int64]
    starts: Counts
    counts: Counts

    @classmethod
    def of(cls, graph: UncertainGraph) -> Repeats:
        """Gather the rows of `graph` by (h, r, t)."""
        found = Triples.of_rows(graph.keys(), graph.confidence)
        triple = np.argsort(found.first)
        counts = found.count[triple]
        order = found.gather(found.start[triple], found.start[triple + 1])
        return cls(graph, order, np.cumsum(counts) - counts, counts)

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def first(self) -> Counts:
        """The first row of each triple."""
        return self.order[self.starts]

    @property
    def confidence(self) -> Confidences:
        """The confidences of the rows in `order`."""
        return self.graph.confidence[self.order]

    def reduce(self, ufunc: np.ufunc, values: Confidences) -> Confidences:
        """Return `ufunc` reduced over the rows of each triple."""
        if len(self) == 0:
            return np.zeros(0)
        return np.asarray(ufunc.reduceat(values, self.starts), dtype=np.float64)


Aggregation = Callable[[Repeats], Confidences]
AGGREGATIONS: Registry[Aggregation] = Registry("aggregation", "ukge.aggregations")


@AGGREGATIONS.register("mean")
def mean_confidence(repeats: Repeats) -> Confidences:
    """Return the mean of the confidences of each triple: what a repeated triple counts with wherever it counts once."""
    mean = repeats.reduce(np.add, repeats.confidence) / repeats.counts
    return np.clip(mean, *_bounds(repeats))


@AGGREGATIONS.register("max")
def _max(repeats: Repeats) -> Confidences:
    return repeats.reduce(np.maximum, repeats.confidence)


@AGGREGATIONS.register("noisy-or")
def _noisy_or(repeats: Repeats) -> Confidences:
    """1 − Π(1 − s): the chance that at least one of independent witnesses is right."""
    combined = 1.0 - repeats.reduce(np.multiply, 1.0 - repeats.confidence)
    return np.where(repeats.counts == 1, _max(repeats), combined)


@AGGREGATIONS.register("last")
def _last(repeats: Repeats) -> Confidences:
    return np.asarray(repeats.confidence[repeats.starts + repeats.counts - 1])


@AGGREGATIONS.register("error")
def _error(repeats: Repeats) -> Confidences:
    """Take no repeated triple at all."""
    repeated = np.flatnonzero(repeats.counts > 1)
    if len(repeated) == 0:
        return _max(repeats)
    problems = []
    for triple in repeated[:SHOWN]:
        rows = repeats.order[repeats.starts[triple] : repeats.starts[triple] + repeats.counts[triple]]
        fact = repeats.graph[int(rows[0])]
        what = f"({fact.head}, {fact.relation}, {fact.tail}) occurs {len(rows)} times, first at row {rows[0]}"
        problems.append(Problem(what, line=int(rows[1]), place="row"))
    raise DataError(
        f"{len(repeated):,} triples occur more than once",
        problems=problems,
        count=len(repeated),
        hint="Choose what a repeated triple means: mean, max, noisy-or or last.",
    )


@dataclass(frozen=True, eq=False)
class Aggregated:
    """A graph without repeated triples, and for each of its facts what the repeats were like.

    `repeats` counts the rows of each fact, `spread` is their largest minus their smallest confidence, `deviation` the
    standard deviation (0 for a single row). `graph[spread > 0]` are the facts whose rows disagree.
    """

    graph: UncertainGraph
    repeats: Counts
    spread: Confidences
    deviation: Confidences

    @property
    def removed(self) -> int:
        """How many rows went into another one."""
        return int(self.repeats.sum()) - len(self.graph)


def aggregate(graph: UncertainGraph, how: str = "mean") -> Aggregated:
    """Return one fact per triple (h, r, t), in the order in which the triples first occur.

    `how` is one of `AGGREGATIONS`: mean, max, noisy-or, last (in row order), or error, which refuses repeated triples.
    A fact keeps its source when all rows that name one name the same; otherwise the different names are joined with
    "; " in the order of their first occurrence.
    """
    repeats = Repeats.of(graph)
    confidence = AGGREGATIONS.get(how)(repeats)
    lowest, highest = _bounds(repeats)
    mean = repeats.reduce(np.add, repeats.confidence) / repeats.counts
    squares = (repeats.confidence - np.repeat(mean, repeats.counts)) ** 2
    deviation = np.sqrt(repeats.reduce(np.add, squares) / repeats.counts)
    first = repeats.first
    merged = UncertainGraph.from_ids(
        graph.head[first],
        graph.relation[first],
        graph.tail[first],
        confidence,
        graph.entities,
        graph.relations,
        source=_joined_sources(repeats),
    ).with_nodes(graph.nodes)
    return Aggregated(merged, repeats.counts, highest - lowest, np.where(highest == lowest, 0.0, deviation))


def _bounds(repeats: Repeats) -> tuple[Confidences, Confidences]:
    values = repeats.confidence
    return repeats.reduce(np.minimum, values), repeats.reduce(np.maximum, values)


def _joined_sources(repeats: Repeats) -> pa.Array | None:
    source = repeats.graph.source
    if source is None:
        return None
    names = source.dictionary.to_pylist()
    code = source.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)[repeats.order]
    highest = np.maximum.reduceat(code, repeats.starts) if len(repeats) else code
    # A missing source must not count as a second one, so it is lifted to the highest code of its triple.
    known = np.where(code < 0, np.repeat(highest, repeats.counts), code)
    lowest = np.minimum.reduceat(known, repeats.starts) if len(repeats) else code
    joined = [names[number] if number >= 0 else None for number in highest.tolist()]
    for triple in np.flatnonzero(lowest != highest).tolist():
        start = repeats.starts[triple]
        mine = dict.fromkeys(code[start : start + repeats.counts[triple]].tolist())
        joined[triple] = SOURCE_SEPARATOR.join(names[number] for number in mine if number >= 0)
    return pa.array(joined, type=pa.large_string())
