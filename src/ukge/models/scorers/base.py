"""What a scorer is: a query for either missing entity, and a comparator between the query and a candidate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from ukge.models.arrays import Array, total
from ukge.registry import Registry

if TYPE_CHECKING:
    from torch import Generator, Tensor

BLOCK = 1 << 22
"""Elements that one block of `Scorer.compare_all` may hold; NumPy's, which go through memory at every step, fewer."""

FEW = 2
"""Queries up to which a matrix product is as fast without BLAS, whose threads spin on for longer than it takes."""

EPS = 1e-12
"""Added below square roots, so that the gradient of a distance of 0 is finite."""


class Drawn(Protocol):
    """What gives the numbers that a part starts with."""

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
        """Return a table of numbers."""


class Start(NamedTuple):
    """Where numbers start that do not start as `init_scale` says: uniformly between two, or around a mean."""

    kind: str
    first: float
    second: float

    @classmethod
    def uniform(cls, low: float, high: float) -> Start:
        """Return uniform numbers between two."""
        return cls("uniform", low, high)

    @classmethod
    def normal(cls, mean: float, deviation: float) -> Start:
        """Return normal numbers around a mean."""
        return cls("normal", mean, deviation)

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> npt.NDArray[np.float32]:
        """Return a table of numbers."""
        drawn = rng.uniform if self.kind == "uniform" else rng.normal
        return drawn(self.first, self.second, shape).astype(np.float32)


class Part(NamedTuple):
    """A table of a model, one row for each entity or each relation: its name, where it starts, and its width.

    The parts of an entity lie side by side in one stored row, and so do those of a relation: who trains, stores and
    looks up rows need not know them. Without a width a part holds k numbers, without a start a truncated normal. A
    width may depend on k in another way: a matrix for each relation has k² numbers.
    """

    name: str
    start: Drawn | None = None
    width: int | Callable[[int], int] | None = None

    def numbers(self, dim: int) -> int:
        """Return how many numbers it holds where k is `dim`."""
        if self.width is None:
            return dim
        return self.width if isinstance(self.width, int) else self.width(dim)


class SharedPart(NamedTuple):
    """A table that all facts share, such as a layer of a network: its name, its shape, and where it starts."""

    name: str
    shape: tuple[int, ...]
    start: Drawn


def width_of(parts: Sequence[Part], dim: int) -> int:
    """Return how many numbers a row of these parts holds."""
    return sum(part.numbers(dim) for part in parts)


def dim_of(width: int, width_at: Callable[[int], int]) -> int:
    """Return the largest k, and at least 1, at which rows hold no more numbers than `width`."""
    return max(1, bisect_right(range(width + 1), width, key=width_at) - 1)


class Scorer(ABC):
    """A plausibility function g(h, r, t) without state, as pure functions on `(..., width)` arrays or tensors.

    The plausibility of a fact is `compare(tail_query(h, r), t)`, and also `compare(head_query(r, t), h)`: training,
    ranking and top-k search are one expression, whichever entity is missing.
    """

    inner_product: ClassVar[bool]
    """Whether `compare` is the inner product, so that many candidates are one matrix product."""

    @property
    def distance(self) -> bool:
        """Whether g is minus a distance, so at most 0: the link then starts where a distance of 0 is certain."""
        return not self.inner_product

    symmetric: ClassVar[bool] = False
    """Whether g(h, r, t) = g(t, r, h)."""

    phases: ClassVar[bool] = False
    """Whether a relation's row holds angles in radians."""

    entity_parts: ClassVar[tuple[Part, ...]] = (Part("x"),)
    """What an entity's row holds, one after another."""

    relation_parts: ClassVar[tuple[Part, ...]] = (Part("x"),)
    """What a relation's row holds, one after another."""

    @property
    def fused(self) -> tuple[str, str] | None:
        """The names of its query and its comparator among the fused engine's; None if that does not know the formula.

        A subclass that changes the formula does not inherit them.
        """
        return None

    def __init_subclass__(cls) -> None:
        """Forget what the fused engine was told about a formula that is not the same any more."""
        formula = {"tail_query", "head_query", "compare"}
        if formula & vars(cls).keys() and "fused" not in vars(cls):
            cls.fused = Scorer.fused  # type: ignore[method-assign]

    def entity_width(self, dim: int) -> int:
        """Return how many numbers an entity's row holds."""
        return width_of(self.entity_parts, dim)

    def relation_width(self, dim: int) -> int:
        """Return how many numbers a relation's row holds."""
        return width_of(self.relation_parts, dim)

    def shared_parts(self, dim: int) -> tuple[SharedPart, ...]:  # noqa: ARG002
        """Return the tables that all facts share; most formulas have none."""
        return ()

    def bound(self, shared: Mapping[str, Any]) -> Self:  # noqa: ARG002
        """Return the formula with the tables that all facts share, by name: arrays for arrays, tensors for tensors."""
        return self

    def learning(self, generator: Generator) -> Self:  # noqa: ARG002
        """Return the formula as it is while it learns, where chance takes part in that (dropout)."""
        return self

    @abstractmethod
    def tail_query(self, head: Array, relation: Array) -> Array:
        """Return the query of (h, r, ?): all that `compare` needs besides a candidate's row."""

    @abstractmethod
    def head_query(self, relation: Array, tail: Array) -> Array:
        """Return the query of (?, r, t), as wide as that of (h, r, ?)."""

    @abstractmethod
    def compare(self, query: Array, candidate: Array) -> Array:
        """Return the plausibility of each candidate for its query; leading dimensions broadcast."""

    def compare_all(self, query: Array, candidates: Array) -> Array:
        """Return the plausibility of all m candidates for all n queries, `(n, w), (m, w) → (n, m)`.

        Works block by block.
        """
        size = max(1, query.shape[0] * query.shape[1])
        if not isinstance(query, np.ndarray):
            return self._compare_tensors(query, candidates, max(1, BLOCK // size))
        out = np.empty((len(query), len(candidates)), dtype=query.dtype)
        step = max(1, (BLOCK >> 5) // size)
        for at in range(0, len(candidates), step):
            out[:, at : at + step] = self.compare(query[:, None], candidates[at : at + step])
        return out

    def _compare_tensors(self, query: Tensor, candidates: Tensor, step: int) -> Tensor:
        """Compare blocks, which are computed again for the gradient rather than kept."""
        import torch  # noqa: PLC0415 — loaded by now
        from torch.utils.checkpoint import checkpoint  # noqa: PLC0415

        blocks, queries = torch.split(candidates, step), query[:, None]
        if not torch.is_grad_enabled():
            return torch.cat([self.compare(queries, block) for block in blocks], dim=1)
        again: dict[str, Any] = {"use_reentrant": False, "preserve_rng_state": False}
        return torch.cat([checkpoint(self.compare, queries, block, **again) for block in blocks], dim=1)

    def plausibility(self, head: Array, relation: Array, tail: Array) -> Array:
        """Return g(h, r, t)."""
        return self.compare(self.tail_query(head, relation), tail)

    def penalty(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        """Return what λ is multiplied by, summed over facts: ½(‖h‖² + ‖r‖² + ‖t‖²); without r where r is angles.

        Shrinking a rotation towards no rotation is no regularisation.
        """
        import torch  # noqa: PLC0415 — loaded by now

        rows = (head, tail) if self.phases else (head, relation, tail)
        return 0.5 * torch.stack([each.square().sum() for each in rows]).sum()


class InnerProduct(Scorer):
    """A scorer whose comparator is the inner product of query and candidate."""

    inner_product = True

    def compare(self, query: Array, candidate: Array) -> Array:
        """Return query · candidate."""
        return total(query * candidate)

    def compare_all(self, query: Array, candidates: Array) -> Array:
        """Return one matrix product; of few queries by one thread, because others would only wait for the memory."""
        if isinstance(query, np.ndarray) and len(query) <= FEW:
            products: Array = np.linalg.vecdot(query[:, None], candidates)
            return products
        return query @ candidates.mT


scorers: Registry[Scorer] = Registry("scorer", "ukge.scorers", more="ukge.models.published")
