"""A predictor whose every confidence is known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ukge.graph.queries import AnyIds, Numbers


@dataclass
class TablePredictor:
    """Confidences of all facts in one table, [relation, head, tail]; counts the queries it is asked."""

    table: npt.NDArray[np.float32]
    asked: int = 0

    @property
    def n_entities(self) -> int:
        return int(self.table.shape[1])

    def confidence(self, head: AnyIds, relation: AnyIds, tail: AnyIds) -> Numbers:
        return self.table[relation, head, tail]

    def tail_scores(self, head: AnyIds, relation: AnyIds) -> Numbers:
        self.asked += len(head)
        return self.table[relation, head]

    def head_scores(self, relation: AnyIds, tail: AnyIds) -> Numbers:
        self.asked += len(tail)
        return self.table[relation, :, tail]
