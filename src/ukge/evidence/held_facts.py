"""Evidence as the protocol `positives` asks it: about facts that are known to hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ukge.evidence.trees import Floats
from ukge.graph.queries import AnyIds

if TYPE_CHECKING:
    from ukge.evidence.evidence import Evidence


@dataclass(frozen=True, eq=False)
class HeldFacts:
    """A predictor whose confidences are those of `Evidence.predict` with `assume_holds`; it ranks as evidence does."""

    evidence: Evidence

    @property
    def n_entities(self) -> int:
        """How many entities can be an answer."""
        return self.evidence.n_entities

    def confidence(self, head: AnyIds, relation: AnyIds, tail: AnyIds) -> Floats:
        """Return the confidence of each fact, by ids, given that it holds."""
        return self.evidence.predict_ids(head, relation, tail, assume_holds=True)

    def tail_scores(self, head: AnyIds, relation: AnyIds) -> npt.NDArray[np.float32]:
        """Return the scores of `Evidence.tail_scores`."""
        return self.evidence.tail_scores(head, relation)

    def head_scores(self, relation: AnyIds, tail: AnyIds) -> npt.NDArray[np.float32]:
        """Return the scores of `Evidence.head_scores`."""
        return self.evidence.head_scores(relation, tail)
