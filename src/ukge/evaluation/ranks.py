"""Where facts stand among all candidates: counted, not sorted, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.integer[Any]]
Ranks = npt.NDArray[np.float64]
Scores = npt.NDArray[np.float32]
BLOCK_BYTES = 64 << 20


@nb.njit(cache=True, parallel=True, nogil=True)
def _count(scores, row, entity, skip_offsets, skip, ranks):  # type: ignore[no-untyped-def]
    for i in nb.prange(len(row)):
        r, e = row[i], entity[i]
        own = scores[r, e]
        above, equal = 0, 0
        for c in range(scores.shape[1]):
            above += scores[r, c] > own
            equal += scores[r, c] == own
        for s in range(skip_offsets[i], skip_offsets[i + 1]):
            other = skip[s]
            if other != e:
                above -= scores[r, other] > own
                equal -= scores[r, other] == own
        # A score that is not a number compares with nothing: it ranks last, never first.
        ranks[i] = above + (equal + 1) / 2 if equal > 0 else scores.shape[1]


def ranks_in(
    scores: Scores,
    row: Ids,
    entity: Ids,
    skip_offsets: npt.NDArray[np.int64] | None = None,
    skip: Ids | None = None,
) -> Ranks:
    """Return the rank, from 1, of `entity[i]` among scores[row[i]]; ties get the mean of the ranks they share.

    `skip[skip_offsets[i]:skip_offsets[i + 1]]` are candidates that do not count for entry i (the filtered setting);
    entities in it must be distinct.
    """
    ranks = np.empty(len(row), dtype=np.float64)
    offsets = np.zeros(len(row) + 1, dtype=np.int64) if skip_offsets is None else skip_offsets
    others = np.zeros(0, dtype=np.int32) if skip is None else skip.astype(np.int32, copy=False)
    _count(scores, row.astype(np.int64), entity.astype(np.int64), offsets, others, ranks)
    return ranks


def query_blocks(n_queries: int, n_entities: int) -> Iterator[slice]:
    """Yield slices of queries whose all-entity scores fit the memory limit."""
    step = max(1, BLOCK_BYTES // (4 * max(1, n_entities)))
    for start in range(0, n_queries, step):
        yield slice(start, min(start + step, n_queries))


def query_ranks(
    score: Callable[[slice], Scores], n_queries: int, n_entities: int, pair_query: Ids, pair_entity: Ids
) -> Ranks:
    """Return the rank of each (query, entity) pair; `score(queries)` gives the all-entity scores of a slice of queries.

    Pairs must be ordered by query.
    """
    ranks = np.empty(len(pair_query), dtype=np.float64)
    for block in query_blocks(n_queries, n_entities):
        first, last = np.searchsorted(pair_query, [block.start, block.stop])
        if first < last:
            rows = pair_query[first:last] - block.start
            ranks[first:last] = ranks_in(score(block), rows, pair_entity[first:last])
    return ranks
