"""What an engine learns from, by id."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ukge.logic.ground_rules import GroundRules
from ukge.models.parameters import Floats


@dataclass(frozen=True)
class TrainingData:
    """What an engine learns from: observed facts and ground rules, by id. Nothing of validation or test."""

    head: npt.NDArray[np.int32]
    relation: npt.NDArray[np.int32]
    tail: npt.NDArray[np.int32]
    confidence: Floats
    n_entities: int
    n_relations: int
    rules: GroundRules | None = None
    undirected: npt.NDArray[np.bool_] | None = None
    """which relations have no direction, if any"""

    def __len__(self) -> int:
        return len(self.head)

    def observed(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return every triple that is observed: the facts, and those without a direction read backwards too."""
        if self.undirected is None:
            return self.head, self.relation, self.tail
        turned = self.undirected[self.relation] & (self.head != self.tail)
        return (
            np.concatenate([self.head, self.tail[turned]]),
            np.concatenate([self.relation, self.relation[turned]]),
            np.concatenate([self.tail, self.head[turned]]),
        )
