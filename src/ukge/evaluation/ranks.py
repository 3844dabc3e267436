"""Where facts stand among all candidates: counted, not sorted, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from ukge.graph.queries import AnyIds, Numbers

Ranks = npt.NDArray[np.float64]
Offsets = npt.NDArray[np.int64]

BLOCK_BYTES = 16 << 20
"""What the all-entity scores of one block of queries may take."""

STRETCH = 4096
"""Candidates that a 32-bit counter counts before it is added up; short counters fill the vector registers."""


class RawAndFiltered(NamedTuple):
    """Ranks among all candidates, and among those that are not known answers."""

    raw: Ranks
    filtered: Ranks


@nb.njit(cache=True, nogil=True)
def _count(scores, row, entity, skip_from, skip_to, skip, raw, filtered):  # type: ignore[no-untyped-def]
    n = scores.shape[1]
    for i in range(len(row)):
        line, e = scores[row[i]], entity[i]
        own = line[e]
        above, level = 0, 0
        for start in range(0, n, STRETCH):
            higher, not_lower = np.int32(0), np.int32(0)
            for c in range(start, min(n, start + STRETCH)):
                higher = np.int32(higher + np.int32(line[c] > own))
                not_lower = np.int32(not_lower + np.int32(line[c] >= own))
            above += int(higher)
            level += int(not_lower)
        # A score that is not a number compares with nothing, not even itself: it ranks last, never first.
        raw[i] = (above + level + 1) / 2 if level > 0 else n
        others = 0
        for s in range(skip_from[i], skip_to[i]):
            other = skip[s]
            if other != e:
                others += 1
                above -= line[other] > own
                level -= line[other] >= own
        filtered[i] = (above + level + 1) / 2 if level > 0 else n - others


def ranks_in(
    scores: Numbers, row: AnyIds, entity: AnyIds, skip_offsets: Offsets | None = None, skip: AnyIds | None = None
) -> Ranks:
    """Return the rank, from 1, of `entity[i]` among scores[row[i]]; ties get the mean of the ranks they share.

    `skip[skip_offsets[i]:skip_offsets[i + 1]]` are candidates that do not count for entry i (the filtered setting);
    entities in it must be distinct.
    """
    offsets = np.zeros(len(row) + 1, dtype=np.int64) if skip_offsets is None else skip_offsets
    return _ranks(scores, row, entity, offsets[:-1], offsets[1:], skip).filtered


def query_blocks(n_queries: int, n_entities: int) -> Iterator[slice]:
    """Yield slices of queries whose all-entity scores fit the memory limit."""
    step = max(1, BLOCK_BYTES // (4 * max(1, n_entities)))
    for start in range(0, n_queries, step):
        yield slice(start, min(start + step, n_queries))


def query_ranks(
    score: Callable[[slice], Numbers], n_queries: int, n_entities: int, pair_query: AnyIds, pair_entity: AnyIds
) -> Ranks:
    """Return the rank of each (query, entity) pair; `score(queries)` gives the all-entity scores of a slice of queries.

    Pairs must be ordered by query.
    """
    nothing = np.zeros(n_queries + 1, dtype=np.int64)
    return filtered_ranks(score, n_entities, pair_query, pair_entity, nothing, np.zeros(0, dtype=np.int32)).raw


def filtered_ranks(
    score: Callable[[slice], Numbers],
    n_entities: int,
    pair_query: AnyIds,
    pair_entity: AnyIds,
    known_offsets: Offsets,
    known: AnyIds,
) -> RawAndFiltered:
    """Return the raw and the filtered rank of each (query, entity) pair, as `query_ranks` does.

    `known[known_offsets[q]:known_offsets[q + 1]]` are the distinct known answers of query q; the pair's own entity
    counts although it is one of them.
    """
    result = RawAndFiltered(np.empty(len(pair_query)), np.empty(len(pair_query)))
    for block in query_blocks(len(known_offsets) - 1, n_entities):
        first, last = np.searchsorted(pair_query, [block.start, block.stop])
        if first == last:
            continue
        queries = pair_query[first:last]
        begin = known_offsets[block.start]
        starts, ends = known_offsets[queries] - begin, known_offsets[queries + 1] - begin
        skip = known[begin : known_offsets[block.stop]]
        ranks = _ranks(score(block), queries - block.start, pair_entity[first:last], starts, ends, skip)
        result.raw[first:last], result.filtered[first:last] = ranks
    return result


def _ranks(
    scores: Numbers, row: AnyIds, entity: AnyIds, starts: Offsets, ends: Offsets, skip: AnyIds | None
) -> RawAndFiltered:
    result = RawAndFiltered(np.empty(len(row)), np.empty(len(row)))
    others = np.zeros(0, dtype=np.int32) if skip is None else skip.astype(np.int32, copy=False)
    lines = np.ascontiguousarray(scores)
    _count(lines, row.astype(np.int64), entity.astype(np.int64), starts, ends, others, *result)
    return result
