"""What a training engine is: parameters in, epochs run, state out. Both engines minimise the same objective."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
State = dict[str, npt.NDArray[Any]]


@dataclass
class Parameters:
    """The weights of a model, as plain arrays that both engines and every predictor share.

    `entity` and `relation` hold one row per name; `link` holds the weight w and the bias b of φ (eq. 3 and 4).
    """

    entity: Floats
    relation: Floats
    link: Floats = field(default_factory=lambda: np.array([1.0, 0.0], dtype=np.float32))

    def copy(self) -> Parameters:
        """Return parameters that share nothing with these."""
        return Parameters(self.entity.copy(), self.relation.copy(), self.link.copy())

    def as_dict(self) -> State:
        """Return the arrays by name."""
        return {"entity": self.entity, "relation": self.relation, "link": self.link}

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.as_dict().values())


@dataclass(frozen=True)
class GroundRules:
    """Rule heads with the truth value of their bodies and the weights of their rules, one entry per ground rule."""

    head: npt.NDArray[np.int32]
    relation: npt.NDArray[np.int32]
    tail: npt.NDArray[np.int32]
    body: Floats
    weight: Floats

    def __len__(self) -> int:
        return len(self.head)


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
