"""A pool of unseen facts with the confidences that a model gave them, for losses that learn from their own guesses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ukge.learning.data import TrainingData
from ukge.models.losses import PoolSettings
from ukge.models.tables import State
from ukge.storage.arrays import Expected

PREFIX = "pool."


class Pool:
    """A ring: when it is full, the newest facts take the places of the oldest."""

    def __init__(self, settings: PoolSettings, data: TrainingData) -> None:
        self.settings = settings
        self._sizes = {"head": data.n_entities, "relation": data.n_relations, "tail": data.n_entities}
        # Zeros take no memory until they are written to.
        self._columns: State = {name: np.zeros(settings.capacity, dtype=np.int32) for name in self._sizes}
        self._columns["confidence"] = np.zeros(settings.capacity, dtype=np.float32)
        self._filled = self._at = 0

    def __len__(self) -> int:
        return self._filled

    @property
    def columns(self) -> dict[str, npt.NDArray[Any]]:
        """What it holds: ids of heads, relations and tails, and confidences."""
        return {name: array[: self._filled] for name, array in self._columns.items()}

    def put(self, *given: npt.NDArray[Any]) -> None:
        """Add heads, relations, tails and confidences, where the last ones ended."""
        left: Sequence[npt.NDArray[Any]] = given
        while len(left[-1]):
            some = min(len(left[-1]), self.settings.capacity - self._at)
            for own, column in zip(self._columns.values(), left, strict=True):
                own[self._at : self._at + some] = column[:some]
            self._at += some
            self._filled = max(self._filled, self._at)
            self._at %= self.settings.capacity
            left = [column[some:] for column in left]

    def state(self) -> State:
        """Return what is in the ring and where it goes on; nothing if it is empty."""
        if not self._filled:
            return {}
        kept = {f"{PREFIX}{name}": array for name, array in self.columns.items()}
        return kept | {f"{PREFIX}at": np.array([self._at], dtype=np.int64)}

    def load_state(self, state: State) -> None:
        """Take up what `state` gave."""
        if f"{PREFIX}at" in state:
            self._filled, self._at = len(state[f"{PREFIX}head"]), int(state[f"{PREFIX}at"][0])
            for name, array in self._columns.items():
                array[: self._filled] = state[f"{PREFIX}{name}"]

    def expected(self) -> dict[str, Expected]:
        """Return what a state must be that was read from a file: nobody looks at ids again."""
        found = {name: Expected("int32", ("pool",), low=0, high=size - 1) for name, size in self._sizes.items()}
        found["confidence"] = Expected("float32", ("pool",), low=0.0, high=1.0)
        found["at"] = Expected("int64", (1,), low=0, high=self.settings.capacity - 1)
        return {f"{PREFIX}{name}": each for name, each in found.items()}
