"""A scorer made of a module of PyTorch, as PyKEEN's interactions are: rows become the tensors that it takes.

Rows hold an entity's or a relation's representations one after another, flattened; complex ones as pairs of numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from ukge.models.arrays import Array, side_by_side
from ukge.models.scorers.base import Part, Scorer, SharedPart, dim_of

if TYPE_CHECKING:
    from torch import Tensor

SIZES = {"k": 4, "s": 1}
"""Numbers that a letter of a shape stands for if nothing is said; any other letter is the model's dimension."""


@dataclass(frozen=True)
class Representation:
    """One of the tensors that an interaction takes: its shape in letters, how it starts, and what it is held to."""

    letters: str
    sizes: tuple[tuple[str, int], ...] = ()
    is_complex: bool = False
    initializer: Callable[[Tensor], Tensor] | None = None
    constraints: tuple[Callable[[Tensor], Tensor], ...] = ()

    def shape(self, dim: int) -> tuple[int, ...]:
        """Return its shape, in numbers of its own kind."""
        sizes = SIZES | dict(self.sizes)
        return tuple(sizes.get(letter, dim) for letter in self.letters)

    def width(self, dim: int) -> int:
        """Return how many real numbers it is stored as: of a complex one, pairs."""
        return math.prod(self._stored(dim))

    def part(self, name: str) -> Part:
        """Return its place in a row."""
        return Part(name, None if self.initializer is None else self, self.width)

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
        """Return so many rows of first numbers. PyTorch's own generator is left as it was."""
        import torch  # noqa: PLC0415 — PyTorch takes a second to load

        empty = torch.empty((shape[0], *self._stored(_dimension((self,), shape[1]))))
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(int(rng.integers(2**62)))
            drawn = empty.normal_() if self.initializer is None else self.initializer(empty)
        rows: npt.NDArray[np.float32] = drawn.reshape(shape).numpy()
        return rows

    def unpacked(self, stored: Tensor, dim: int) -> Tensor:
        """Return it from what a row stores, within its constraints."""
        import torch  # noqa: PLC0415

        values = stored.reshape((-1, *self._stored(dim)))
        if self.is_complex:
            values = torch.complex(values[..., 0], values[..., 1])
        for constraint in self.constraints:
            held = constraint(values)
            # A clamp has no slope beyond its ends: a number that got there would stay for ever.
            clamp = getattr(constraint, "func", constraint) is torch.clamp
            values = values + (held - values).detach() if clamp else held
        return values.reshape((*stored.shape[:-1], *self.shape(dim)))

    def _stored(self, dim: int) -> tuple[int, ...]:
        return (*self.shape(dim), 2) if self.is_complex else self.shape(dim)


class FirstWeights(NamedTuple):
    """Where a weight of a module starts: where a fresh module of the same kind has it."""

    module: Callable[[], Any]
    name: str

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
        """Return the numbers of a fresh module. PyTorch's own generator is left as it was."""
        import torch  # noqa: PLC0415

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(rng.integers(2**62)))
            fresh = self.module()
            fresh.reset_parameters()
        drawn: npt.NDArray[np.float32] = fresh.get_parameter(self.name).detach().numpy().reshape(shape)
        return drawn


@cache
def _dimension(row: tuple[Representation, ...], width: int) -> int:
    """Return the dimension at which a row of representations is so wide."""
    return dim_of(width, lambda dim: sum(each.width(dim) for each in row))


@dataclass(frozen=True, slots=True)
class Interaction(Scorer):
    """g as an interaction of PyKEEN has it.

    A query is the given row, the relation's, and 1 where the tail is asked for, 0 where the head is. One with weights
    of its own is another module for each dimension (`module_at`), and its weights are tables that all facts share.
    """

    name: str
    module: Any = field(repr=False, compare=False)
    entity: tuple[Representation, ...] = field(repr=False)
    relation: tuple[Representation, ...] = field(repr=False)
    distance: bool = field(default=False, repr=False)
    symmetric: bool = field(default=False, repr=False)  # type: ignore[misc]
    module_at: Callable[[int], Any] | None = field(default=None, repr=False, compare=False)
    weights: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)

    inner_product = False

    @property
    def entity_parts(self) -> tuple[Part, ...]:  # type: ignore[override]
        """What PyKEEN's interaction says of entities."""
        return _parts(self.entity)

    @property
    def relation_parts(self) -> tuple[Part, ...]:  # type: ignore[override]
        """What PyKEEN's interaction says of relations."""
        return _parts(self.relation)

    def shared_parts(self, dim: int) -> tuple[SharedPart, ...]:
        """Return the weights of the module of this dimension, if it has any."""
        if self.module_at is None:
            return ()
        fresh = partial(self.module_at, dim)
        return tuple(
            SharedPart(_table(name), tuple(weight.shape) or (1,), FirstWeights(fresh, name))
            for name, weight in fresh().named_parameters()
        )

    def bound(self, shared: Mapping[str, Any]) -> Self:
        """Return the formula with the module's weights."""
        return self if self.module_at is None else replace(self, weights=shared)

    def tail_query(self, head: Array, relation: Array) -> Array:
        """Return the head, the relation, and 1."""
        return _asked(head, relation, 1.0)

    def head_query(self, relation: Array, tail: Array) -> Array:
        """Return the tail, the relation, and 0."""
        return _asked(tail, relation, 0.0)

    def compare(self, query: Array, candidate: Array) -> Array:
        """Return what PyKEEN's interaction says of each candidate in the missing place."""
        if not isinstance(query, np.ndarray):
            return self._compared(query, candidate)
        import torch  # noqa: PLC0415

        # PyTorch has no read-only tensors: such rows are copied.
        tensors = (torch.from_numpy(np.require(rows, requirements="W")) for rows in (query, candidate))
        with torch.no_grad():
            return self._compared(*tensors).numpy()

    def _compared(self, query: Tensor, candidate: Tensor) -> Tensor:
        tails = query[..., -1] > 0.5
        if tails.all():
            return self._told(query, candidate, tail=True)
        if not tails.any():
            return self._told(query, candidate, tail=False)
        shape = np.broadcast_shapes(query.shape[:-1], candidate.shape[:-1])
        query, candidate = (rows.expand(*shape, -1).reshape(-1, rows.shape[-1]) for rows in (query, candidate))
        tails = query[:, -1] > 0.5
        found = query.new_empty(len(query))
        for tail in (True, False):
            own = (tails if tail else ~tails).nonzero().squeeze(1)
            found = found.index_put((own,), self._told(query[own], candidate[own], tail=tail))
        return found.reshape(shape)

    def _told(self, query: Tensor, candidate: Tensor, *, tail: bool) -> Tensor:
        width, leading = candidate.shape[-1], max(query.ndim, candidate.ndim)
        dim = _dimension(self.entity, width)
        query, candidate = (rows[(None,) * (leading - rows.ndim)] for rows in (query, candidate))
        given = _unpacked(self.entity, query[..., :width], dim)
        other = _unpacked(self.entity, candidate, dim)
        head, last = (given, other) if tail else (other, given)
        module = self.module.to(query) if self.module_at is None else self.module_at(dim)
        given_to = (
            _one([head[at] for at in module.head_indices]),
            _one(_unpacked(self.relation, query[..., width:-1], dim)),
            _one([last[at] for at in module.tail_indices]),
        )
        if self.module_at is None:
            found: Tensor = module(*given_to)
            return found
        return _with_weights(module, self.weights, given_to)


def _table(name: str) -> str:
    """Return what a module's weight is called among the tables."""
    return name.replace(".", "_")


def _with_weights(module: Any, tables: Mapping[str, Any], given: tuple[Any, ...]) -> Tensor:
    import torch  # noqa: PLC0415
    from torch.func import functional_call  # noqa: PLC0415

    weights = {}
    for name, first in module.named_parameters():
        held = tables[_table(name)]
        held = torch.from_numpy(np.require(held, requirements="W")) if isinstance(held, np.ndarray) else held
        weights[name] = held.reshape(first.shape)
    found: Tensor = functional_call(module, weights, given)
    return found


def _asked(given: Array, relation: Array, sign: float) -> Array:
    return side_by_side(side_by_side(given, relation), given[..., :1] * 0 + sign)


def _parts(row: tuple[Representation, ...]) -> tuple[Part, ...]:
    names = "x" if len(row) == 1 else "abcdefghijkl"
    return tuple(each.part(name) for each, name in zip(row, names, strict=False))


def _unpacked(row: Sequence[Representation], stored: Tensor, dim: int) -> list[Tensor]:
    pieces = stored.split_with_sizes([each.width(dim) for each in row], dim=-1) if row else ()
    return [each.unpacked(piece, dim) for each, piece in zip(row, pieces, strict=True)]


def _one(tensors: list[Tensor]) -> Any:
    """Return representations as PyKEEN's interactions take them: a single one without a list around it."""
    return tensors[0] if len(tensors) == 1 else tensors
