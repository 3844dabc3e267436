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

    def __len__(self) -> int:
        return len(self.head)
