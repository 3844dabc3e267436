"""Facts that evidence is asked about, many at once, and where their keys stand among sorted ones: on all cores."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ukge.evidence.kernels import kernel, prange
from ukge.graph.index import Ranges
from ukge.graph.keys import Keys
from ukge.graph.keys import find as find_few
from ukge.graph.queries import AnyIds, Places
from ukge.graph.vocabulary import Ids

FEW = 1024
"""Keys up to which other threads are not worth waking."""


class FactBatch(NamedTuple):
    """Facts by ids, each with itself among the known ones: `own[i]` does not count for fact i; −1 lets all count.

    `own` are places among the distinct known facts (`FactIndex.find`): no repeat of a fact counts for it, nor its
    mirror where the relation has no direction.
    """

    head: Ids
    relation: Ids
    tail: Ids
    own: Places

    @classmethod
    def of(cls, head: AnyIds, relation: AnyIds, tail: AnyIds, own: Places | None = None) -> FactBatch:
        """Ask about facts, with all known facts counting unless `own` says otherwise."""
        nothing = np.full(len(head), -1, dtype=np.int64) if own is None else own
        return cls(head.astype(np.int32), relation.astype(np.int32), tail.astype(np.int32), nothing)

    def block(self, rows: slice) -> FactBatch:
        """Return some of the facts."""
        return FactBatch(self.head[rows], self.relation[rows], self.tail[rows], self.own[rows])


def find(known: Keys, wanted: Keys) -> Places:
    """Return the place of each key among sorted ones without repeats; −1 for one that is not there."""
    if len(known) == 0 or len(wanted) <= FEW:
        return find_few(known, wanted)
    places = np.empty(len(wanted), dtype=np.int64)
    _find(known, wanted, places)
    return places


def find_rows(groups: Ranges, keys: Keys) -> tuple[Places, Places]:
    """Return what `Ranges.find` does, on all cores: of a batch of evidence it takes about half the time."""
    at = find(groups.keys, keys)
    # Place −1 is the last of `start`, and no key: both are replaced.
    return np.where(at >= 0, groups.start[at], 0), np.where(at >= 0, groups.start[at + 1], 0)


@kernel(parallel=True)
def _find(known, wanted, places):  # type: ignore[no-untyped-def]
    """Halve what is left of the keys, without a choice that could be guessed wrong."""
    for i in prange(len(wanted)):
        at, left = 0, len(known)
        while left > 1:
            half = left // 2
            at += half * (known[at + half] <= wanted[i])
            left -= half
        places[i] = at if known[at] == wanted[i] else -1
