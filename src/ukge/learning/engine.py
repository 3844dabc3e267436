"""What a training engine is, and what it learns from: data and parameters in, epochs run, state out.

All engines minimise the same objective.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ukge.logic.ground_rules import GroundRules
from ukge.models.parameters import Floats, Parameters, State


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


@dataclass(frozen=True)
class EpochResult:
    """What one epoch cost: the mean of each term of the objective over the epoch's batches."""

    facts: int
    losses: Mapping[str, float]

    @property
    def loss(self) -> float:
        """The whole objective."""
        return float(sum(self.losses.values()))


class Engine(Protocol):
    """Runs epochs over the training data and updates `parameters` in place.

    An epoch is a function of the state, the seed and its number alone, so that a run resumed from a checkpoint goes on
    exactly as one that was never interrupted.
    """

    parameters: Parameters

    def epoch(self, number: int, on_facts: Callable[[int], None] | None = None) -> EpochResult:
        """Run epoch `number` (from 0); `on_facts` is told now and then how many more facts are done."""

    def sync(self) -> None:
        """Bring `parameters` up to date with the engine's own copy, if it has one (another device)."""

    def state(self) -> State:
        """Return everything besides the parameters that the next epoch depends on (the optimiser's moments)."""

    def load_state(self, state: State) -> None:
        """Take up a state that `state` gave."""
