"""Which confidences the facts around a fact have: those of its ends, and those that link its ends over a third entity.

Where facts come from several sources, each source has confidences of its own, and its facts lie close together. Means
hide that: a head whose facts are all .7 looks like one with as many of .5 as of .9.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ukge.evidence.cells import Cells
from ukge.evidence.kernels import kernel, prange
from ukge.evidence.lookup import FactBatch, find
from ukge.evidence.trees import Matrix
from ukge.graph.index import FactIndex, Ranges
from ukge.graph.keys import Keys

BANDS = 3
"""Links to a third entity are told apart by three bands of confidence; by cell, there would be too many ways."""

GROUPS = 4
"""Of facts about a fact: those with its head, its tail, its head and relation, its relation and tail."""

STEP = 2e-7
"""Seconds that a step along the neighbours of an entity takes without the compiler."""

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Surroundings:
    """The known facts of a graph by cell of confidence."""

    index: FactIndex
    groups: tuple[tuple[Keys, Counts], ...]
    """sorted keys, and the facts of each by cell"""
    own: Counts
    """the rows of each distinct fact by cell"""
    bits: npt.NDArray[np.uint8]
    """for each neighbour of an entity, the bands of the facts that link the two: bit b for band b"""

    @classmethod
    def of(cls, index: FactIndex, cells: Cells) -> Surroundings:
        """Sum up the known facts."""
        cell = cells.find(index.confidence)
        rows = len(index.graph)
        own = _by_cell(index.fact[:rows], cell[:rows], len(index.triples), len(cells))
        near = index.neighbours
        bit = (1 << np.searchsorted(cells.bands(), near.confidence)).astype(np.uint8)
        bits = np.bitwise_or.reduceat(bit, near.first[:-1]) if len(bit) else bit
        groups = (index.by_head, index.by_tail, index.by_query, index.by_inverse_query)
        return cls(index, tuple(_counted(each, cell, len(cells)) for each in groups), own, bits)

    @staticmethod
    def width(cells: Cells) -> int:
        """Return how many columns there are."""
        return GROUPS * len(cells) + BANDS * BANDS

    def columns(self, asked: FactBatch) -> Matrix:
        """Return shares of the cells among the facts of each group, and the common neighbours by two bands.

        What each fact itself adds is left out.
        """
        head, relation, tail, own = asked
        index, width = self.index, self.own.shape[1]
        out = np.empty((len(head), GROUPS * width + BANDS * BANDS), dtype=np.float32)
        less = np.append(self.own, np.zeros((1, width), dtype=np.int64), axis=0)[own]
        keys = (
            head.astype(np.int64),
            tail.astype(np.int64),
            index.query_keys(head, relation),
            index.query_keys(tail, relation),
        )
        for number, ((known, count), wanted) in enumerate(zip(self.groups, keys, strict=True)):
            at = find(known, wanted)
            there = np.where((at >= 0)[:, None], count[at], 0) if len(known) else np.zeros_like(less)
            left = there - less
            total = left.sum(axis=1, keepdims=True)
            with np.errstate(invalid="ignore", divide="ignore"):
                out[:, width * number : width * (number + 1)] = np.where(total > 0, left / total, np.nan)
        near = index.neighbours
        steps = int((near.links[head + 1] - near.links[head] + near.links[tail + 1] - near.links[tail]).sum())
        common = np.zeros((len(head), BANDS * BANDS), dtype=np.float32)
        _common.within(STEP * steps)(head, tail, near.links, near.near, self.bits, common)
        out[:, GROUPS * width :] = common
        return out


def _counted(groups: Ranges, cell: npt.NDArray[np.intp], width: int) -> tuple[Keys, Counts]:
    place = np.repeat(np.arange(len(groups)), groups.count)
    return groups.keys, _by_cell(place, cell[groups.rows], len(groups), width)


def _by_cell(place: npt.NDArray[np.int64], cell: npt.NDArray[np.intp], n: int, width: int) -> Counts:
    return np.bincount(place * width + cell, minlength=n * width).reshape(n, width)


@kernel(parallel=True)
def _common(head, tail, links, near, bits, out):  # type: ignore[no-untyped-def]
    """Count the entities that are linked to both ends, by the bands of the two links."""
    for q in prange(len(head)):
        h, t = head[q], tail[q]
        i, i_end, j, j_end = links[h], links[h + 1], links[t], links[t + 1]
        while h != t and i < i_end and j < j_end:
            if near[i] < near[j]:
                i += 1
            elif near[j] < near[i]:
                j += 1
            else:
                for a in range(BANDS):
                    for b in range(BANDS):
                        if (bits[i] >> a) & 1 and (bits[j] >> b) & 1:
                            out[q, BANDS * a + b] += 1.0
                i += 1
                j += 1
