"""Facts that evidence is asked about, many at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ukge.graph.queries import AnyIds, Places
from ukge.graph.vocabulary import Ids


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
