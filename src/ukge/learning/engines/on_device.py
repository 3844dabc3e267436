"""What every PyTorch engine shares: tables on a device, an optimiser, and an epoch as a row of steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from ukge.learning.engines.base import EpochResult
from ukge.learning.engines.torch_optimisers import optimisers
from ukge.learning.training_data import TrainingData
from ukge.models.parameters import Parameters, State
from ukge.models.tensors import resolve_device
from ukge.settings.config import Config


class OnDevice(ABC):
    """Trains `parameters` on `data`. On the CPU it works on their arrays in place; elsewhere `sync` brings them back.

    On the CPU with one thread an epoch is repeatable to the bit; with more threads, or on other devices, sums may be
    rounded in another order.
    """

    def __init__(self, parameters: Parameters, data: TrainingData, config: Config) -> None:
        self.parameters = parameters
        self.device = resolve_device(config.runtime.device)
        self._config = config
        self._n_facts = len(data)
        self._tables = {name: torch.from_numpy(a).to(self.device) for name, a in parameters.as_dict().items()}
        self._optimiser = optimisers.get(config.optimiser.optimiser)(self._tables, config.optimiser)

    @property
    @abstractmethod
    def _names(self) -> Sequence[str]:
        """Names of the objective's terms."""

    @abstractmethod
    def _steps(self, number: int) -> Iterator[tuple[Tensor, int]]:
        """Take the steps of an epoch; yield for each the values of the terms and how many facts it was about."""

    def epoch(self, number: int, on_facts: Callable[[int], None] | None = None) -> EpochResult:
        """Run epoch `number` (from 0). A loss that is not finite is returned like any other."""
        values = []
        with _threads(self._config.runtime.threads):
            for found, facts in self._steps(number):
                values.append(found)
                if on_facts is not None:
                    on_facts(facts)
        means = torch.stack(values).cpu().double().mean(dim=0).tolist()
        return EpochResult(self._n_facts, dict(zip(self._names, means, strict=True)))

    def sync(self) -> None:
        """Copy the weights back into `parameters`, if they are on another device than the CPU."""
        if self.device.type != "cpu":
            for name, array in self.parameters.as_dict().items():
                np.copyto(array, self._tables[name].cpu().numpy())

    def state(self) -> State:
        """Return the optimiser's state; on the CPU as views, which the next epoch changes."""
        return self._optimiser.state()

    def load_state(self, state: State) -> None:
        """Take up a copy of a state that `state` gave."""
        self._optimiser.load_state(state)


@contextmanager
def _threads(wanted: int) -> Iterator[None]:
    """Use `wanted` CPU threads for a while; 0 leaves PyTorch's own choice, which is all cores."""
    before = torch.get_num_threads()
    if wanted:
        torch.set_num_threads(wanted)
    try:
        yield
    finally:
        torch.set_num_threads(before)
