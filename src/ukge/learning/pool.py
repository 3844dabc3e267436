"""A pool of unseen facts with the confidences that a model gave them, for losses that learn from their own guesses."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from ukge.learning.data import TrainingData
from ukge.learning.sampling import Facts, PerFact
from ukge.models.losses import PoolSettings
from ukge.models.tables import State
from ukge.storage.arrays import Expected

PREFIX = "pool."


class Labelled(NamedTuple):
    """Facts with the confidences that were put on them."""

    facts: Facts
    confidence: Tensor


def corrupted(facts: Facts, unseen: PerFact) -> Facts:
    """Return the unseen facts of a batch one by one: those with another head first, then those with another tail."""
    n = unseen.heads.shape[1]
    head, relation, tail = (column.repeat_interleave(n) for column in facts)
    return Facts(
        torch.cat([unseen.heads.flatten(), head]),
        relation.repeat(2),
        torch.cat([tail, unseen.tails.flatten()]),
    )


def fewer(unseen: PerFact, share: float) -> PerFact:
    """Return a share of the unseen facts of a batch, from both sides of each fact; at least one."""
    n = unseen.heads.shape[1]
    kept = max(1, round(share * n))
    counts = unseen.counts
    if counts is not None:
        counts = torch.cat([counts[:, :kept], counts[:, n : n + kept]], dim=1)
    return replace(unseen, heads=unseen.heads[:, :kept], tails=unseen.tails[:, :kept], counts=counts)


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

    def put(self, facts: Facts, confidence: Tensor) -> None:
        """Add facts, where the last ones ended."""
        given = [column.cpu().numpy() for column in (*facts, confidence)]
        while len(given[-1]):
            some = min(len(given[-1]), self.settings.capacity - self._at)
            for own, column in zip(self._columns.values(), given, strict=True):
                own[self._at : self._at + some] = column[:some]
            self._at += some
            self._filled = max(self._filled, self._at)
            self._at %= self.settings.capacity
            given = [column[some:] for column in given]

    def draw(self, n: int, generator: torch.Generator, device: torch.device) -> Labelled:
        """Return n facts of the pool, uniformly."""
        picks = torch.randint(self._filled, (n,), generator=generator, device=device).cpu().numpy()
        *ids, confidence = (torch.from_numpy(column[picks]).to(device) for column in self._columns.values())
        return Labelled(Facts(*(column.long() for column in ids)), confidence)

    def state(self) -> State:
        """Return what is in the ring and where it goes on; nothing if it is empty."""
        if not self._filled:
            return {}
        kept = {f"{PREFIX}{name}": array[: self._filled] for name, array in self._columns.items()}
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
