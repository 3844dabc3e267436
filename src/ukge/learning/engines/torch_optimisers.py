"""How the PyTorch engine turns gradients into steps, by name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import ClassVar, NamedTuple

import numpy as np
import torch
from torch import Tensor

from ukge.models.tables import State
from ukge.registry import Registry
from ukge.settings.config import OptimiserConfig

Tables = Mapping[str, Tensor]


class Gradient(NamedTuple):
    """A table's gradient: of all rows, or of those whose ids are given, each once."""

    values: Tensor
    rows: Tensor | None = None


class Optimiser(ABC):
    """Updates tables in place from their gradients. A table without a gradient stays as it is."""

    by_rows: ClassVar[bool]
    """Whether it takes the gradient of a batch's entities alone, so that a step's cost ignores the table's size."""

    @abstractmethod
    def step(self, gradients: Mapping[str, Gradient]) -> None:
        """Take one step."""

    @abstractmethod
    def state(self) -> State:
        """Return what the next step depends on; on the CPU as views, which the next step changes."""

    @abstractmethod
    def load_state(self, state: State) -> None:
        """Take up a copy of a state that `state` gave."""


class Dense(Optimiser):
    """One of PyTorch's own optimisers, over whole tables."""

    by_rows = False

    def __init__(self, tables: Tables, optimiser: torch.optim.Optimizer) -> None:
        self._tables = tables
        self._optimiser = optimiser

    def step(self, gradients: Mapping[str, Gradient]) -> None:
        """Take one step."""
        for name, table in self._tables.items():
            table.grad = gradients[name].values if name in gradients else None
        self._optimiser.step()

    def state(self) -> State:
        """Return PyTorch's moments and step counts, named `table.moment`."""
        return {
            f"{name}.{moment}": value.cpu().numpy()
            for name, table in self._tables.items()
            for moment, value in self._optimiser.state.get(table, {}).items()
        }

    def load_state(self, state: State) -> None:
        """Take up a copy of a state that `state` gave."""
        moments: dict[int, dict[str, Tensor]] = {}
        for number, name in enumerate(self._tables):
            own = {key: value for key, value in state.items() if key.startswith(f"{name}.")}
            moments[number] = {key.removeprefix(f"{name}."): torch.tensor(value) for key, value in own.items()}
        groups = self._optimiser.state_dict()["param_groups"]
        self._optimiser.load_state_dict(
            {"state": {n: own for n, own in moments.items() if own}, "param_groups": groups}
        )


class LazyAdam(Optimiser):
    """Adam that moves the rows of a batch and their moments only; bias correction counts all steps.

    Kingma, Ba: Adam: A Method for Stochastic Optimization. ICLR 2015.
    """

    by_rows = True

    def __init__(self, tables: Tables, config: OptimiserConfig) -> None:
        self._tables = tables
        self._config = config
        self._step = 0
        self._first = {name: torch.zeros_like(table) for name, table in tables.items()}
        self._second = {name: torch.zeros_like(table) for name, table in tables.items()}

    def step(self, gradients: Mapping[str, Gradient]) -> None:
        """Take one step."""
        self._step += 1
        lr, beta1, beta2 = self._config.lr, self._config.beta1, self._config.beta2
        rate = lr / (1 - beta1**self._step)
        root = (1 - beta2**self._step) ** 0.5
        for name, (values, rows) in gradients.items():
            first = _take(self._first[name], rows).lerp_(values, 1 - beta1)
            second = _take(self._second[name], rows).mul_(beta2).addcmul_(values, values, value=1 - beta2)
            _put(self._first[name], rows, first)
            _put(self._second[name], rows, second)
            _add(self._tables[name], rows, first.div(second.sqrt().div_(root).add_(self._config.eps)).mul_(-rate))

    def state(self) -> State:
        """Return both moments of every table and the number of steps."""
        moments = {f"{name}.first": table.cpu().numpy() for name, table in self._first.items()}
        moments |= {f"{name}.second": table.cpu().numpy() for name, table in self._second.items()}
        return {**moments, "step": np.array(self._step, dtype=np.int64)}

    def load_state(self, state: State) -> None:
        """Take up a copy of a state that `state` gave."""
        self._step = int(state["step"])
        for name in self._tables:
            self._first[name].copy_(torch.tensor(state[f"{name}.first"]))
            self._second[name].copy_(torch.tensor(state[f"{name}.second"]))


class RowwiseAdagrad(Optimiser):
    """Adagrad with one accumulator per row, the sum of its gradients' mean squares: a table costs no second one.

    Duchi, Hazan, Singer: Adaptive Subgradient Methods for Online Learning and Stochastic Optimization. JMLR 2011.
    """

    by_rows = True

    def __init__(self, tables: Tables, config: OptimiserConfig) -> None:
        self._tables = tables
        self._config = config
        self._sums = {name: torch.zeros_like(table.view(len(table), -1)[:, :1]) for name, table in tables.items()}

    def step(self, gradients: Mapping[str, Gradient]) -> None:
        """Take one step."""
        for name, (values, rows) in gradients.items():
            table = self._tables[name].view(len(self._tables[name]), -1)
            by_row = values.view(len(values), -1)
            sums = _take(self._sums[name], rows).add_(by_row.square().mean(dim=1, keepdim=True))
            _put(self._sums[name], rows, sums)
            _add(table, rows, by_row.div(sums.sqrt().add_(self._config.eps)).mul_(-self._config.lr))

    def state(self) -> State:
        """Return the accumulators of every table."""
        return {f"{name}.sum": sums.cpu().numpy() for name, sums in self._sums.items()}

    def load_state(self, state: State) -> None:
        """Take up a copy of a state that `state` gave."""
        for name, sums in self._sums.items():
            sums.copy_(torch.tensor(state[f"{name}.sum"]))


optimisers: Registry[Callable[[Tables, OptimiserConfig], Optimiser]] = Registry("optimiser", "ukge.optimisers")
optimisers.register("lazy-adam")(LazyAdam)
optimisers.register("rowwise-adagrad")(RowwiseAdagrad)

FUSED = {"adam": ("cpu", "cuda", "mps"), "adagrad": ("cpu",)}
"""Devices on which PyTorch has the optimiser as one kernel, several times faster than its parts."""


@optimisers.register("adam")
def _adam(tables: Tables, config: OptimiserConfig) -> Optimiser:
    fused = _device(tables).type in FUSED["adam"]
    betas = (config.beta1, config.beta2)
    return Dense(tables, torch.optim.Adam(tables.values(), config.lr, betas, config.eps, fused=fused))


@optimisers.register("adagrad")
def _adagrad(tables: Tables, config: OptimiserConfig) -> Optimiser:
    fused = _device(tables).type in FUSED["adagrad"]
    return Dense(tables, torch.optim.Adagrad(tables.values(), config.lr, eps=config.eps, fused=fused))


def _device(tables: Tables) -> torch.device:
    return next(iter(tables.values())).device


def _take(table: Tensor, rows: Tensor | None) -> Tensor:
    return table if rows is None else table.index_select(0, rows)


def _put(table: Tensor, rows: Tensor | None, values: Tensor) -> None:
    if rows is not None:
        table.index_copy_(0, rows, values)


def _add(table: Tensor, rows: Tensor | None, values: Tensor) -> None:
    if rows is None:
        table.add_(values)
    else:
        table.index_add_(0, rows, values)
