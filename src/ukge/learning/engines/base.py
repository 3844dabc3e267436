"""What a training engine is: parameters in, epochs run, state out. All engines minimise the same objective."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from ukge.models.parameters import Parameters, State


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
