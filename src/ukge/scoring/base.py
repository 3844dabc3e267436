"""What a scorer is: a query for either missing entity, and a comparator between the query and a candidate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from ukge.registry import Registry

BLOCK = 1 << 22
"""Elements that one block of `Scorer.compare_all` may hold."""

EPS = 1e-12
"""Added below square roots, so that the gradient of a distance of 0 is finite."""


class Scorer(ABC):
    """A plausibility function g(h, r, t) without state, as pure functions on `(..., width)` tensors.

    The plausibility of a fact is `compare(tail_query(h, r), t)`, and also `compare(head_query(r, t), h)`: training,
    ranking and top-k search are one expression, whichever entity is missing.
    """

    inner_product: ClassVar[bool]
    """Whether `compare` is the inner product, so that many candidates are one matrix product."""

    phases: ClassVar[bool] = False
    """Whether a relation's row holds angles in radians."""

    entity_parts: ClassVar[tuple[str, ...]] = ("x",)
    """What an entity's row holds, one after another, each of k numbers."""

    relation_parts: ClassVar[tuple[str, ...]] = ("x",)
    """What a relation's row holds, one after another, each of k numbers."""

    def entity_width(self, dim: int) -> int:
        """Return how many numbers an entity's row holds."""
        return dim * len(self.entity_parts)

    def relation_width(self, dim: int) -> int:
        """Return how many numbers a relation's row holds."""
        return dim * len(self.relation_parts)

    @abstractmethod
    def tail_query(self, head: Tensor, relation: Tensor) -> Tensor:
        """Return the query of (h, r, ?), as wide as an entity's row."""

    @abstractmethod
    def head_query(self, relation: Tensor, tail: Tensor) -> Tensor:
        """Return the query of (?, r, t), as wide as an entity's row."""

    @abstractmethod
    def compare(self, query: Tensor, candidate: Tensor) -> Tensor:
        """Return the plausibility of each candidate for its query; leading dimensions broadcast."""

    def compare_all(self, query: Tensor, candidates: Tensor) -> Tensor:
        """Return the plausibility of all m candidates for all n queries, `(n, w), (m, w) → (n, m)`.

        Works block by block. Blocks are computed again for the gradient rather than kept.
        """
        blocks = torch.split(candidates, max(1, BLOCK // max(1, query.numel())))
        queries = query[:, None]
        if not torch.is_grad_enabled():
            return torch.cat([self.compare(queries, block) for block in blocks], dim=1)
        again: dict[str, Any] = {"use_reentrant": False, "preserve_rng_state": False}
        return torch.cat([checkpoint(self.compare, queries, block, **again) for block in blocks], dim=1)

    def plausibility(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        """Return g(h, r, t)."""
        return self.compare(self.tail_query(head, relation), tail)


class InnerProduct(Scorer):
    """A scorer whose comparator is the inner product of query and candidate."""

    inner_product = True

    def compare(self, query: Tensor, candidate: Tensor) -> Tensor:
        """Return query · candidate."""
        product: Tensor = torch.linalg.vecdot(query, candidate)
        return product

    def compare_all(self, query: Tensor, candidates: Tensor) -> Tensor:
        """Return one matrix product."""
        return query @ candidates.mT


scorers: Registry[Scorer] = Registry("scorer")
