"""The edges of a graph by head, and what attention needs of them: products, weights and sums, edge by edge.

One layer needs no more of the graph than the edges of the entities asked for. What edges share, the relation and the
tail, stands once: a neighbourhood has fewer such pairs than edges, and what is wide is computed for pairs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional

Ids = npt.NDArray[np.integer[Any]]


class Bags(NamedTuple):
    """Members of bags, one bag after another: those of bag i are `member[start[i]:start[i + 1]]`."""

    start: Tensor
    member: Tensor

    def sums(self, weight: Tensor, rows: Tensor) -> Tensor:
        """Return for each bag the sum of its members' rows × weights."""
        return functional.embedding_bag(
            self.member, rows, self.start, mode="sum", per_sample_weights=weight, include_last_offset=True
        )

    def products(self, bags: Tensor, rows: Tensor) -> Tensor:
        """Return the inner product of each member's row with its bag's: what the sums grow by with its weight."""
        with torch.enable_grad():
            weight = rows.new_zeros(len(self.member), requires_grad=True)
            return torch.autograd.grad(self.sums(weight, rows.detach()), weight, bags.detach())[0]


class Neighbourhood(NamedTuple):
    """The edges of u entities: each leads from one of these to one of p pairs of a relation and a tail."""

    own: Tensor
    """(u,) where the entities are in their table"""
    relation: Tensor
    """(p,) of pairs"""
    tail: Tensor
    """(p,) of pairs, where it is in the table of entities"""
    entity: Tensor
    """(e,) of edges: which of the u entities, rising"""
    edges: Bags
    """the pairs of each entity, edge by edge"""
    back: Bags
    """the entities of each pair"""
    order: Tensor
    """(e,) where the edges of `back` are among those of `edges`"""

    def products(self, of_entities: Tensor, of_pairs: Tensor) -> Tensor:
        """Return for each edge the inner product of its entity's row (u, d) and its pair's (p, d)."""
        found: Tensor = _Products.apply(self, of_entities, of_pairs)  # type: ignore[no-untyped-call]
        return found

    def sums(self, weight: Tensor, of_pairs: Tensor) -> Tensor:
        """Return for each entity the sum of its pairs' rows × their edges' weights."""
        found: Tensor = _Sums.apply(self, weight, of_pairs)  # type: ignore[no-untyped-call]
        return found

    def softmax(self, score: Tensor, baseline: Tensor) -> tuple[Tensor, Tensor]:
        """Return the shares of each edge and of each entity's baseline, which together are 1 for each entity."""
        highest = baseline.detach().clone().scatter_reduce_(0, self.entity, score.detach(), "amax")
        edge, base = (score - highest[self.entity]).exp(), (baseline - highest).exp()
        total = base.index_add(0, self.entity, edge)
        return edge / total[self.entity], base / total


class _Products(Function):
    """`Neighbourhood.products`; rows are never copied edge by edge, which would take more memory than anything else."""

    @staticmethod
    def forward(ctx: Any, near: Neighbourhood, of_entities: Tensor, of_pairs: Tensor) -> Tensor:
        ctx.near = near
        ctx.save_for_backward(of_entities, of_pairs)
        return near.edges.products(of_entities, of_pairs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor, Tensor]:
        near, (of_entities, of_pairs) = ctx.near, ctx.saved_tensors
        gradient = gradients[0].contiguous()
        return None, near.edges.sums(gradient, of_pairs), near.back.sums(gradient[near.order], of_entities)


class _Sums(Function):
    """`Neighbourhood.sums`, likewise."""

    @staticmethod
    def forward(ctx: Any, near: Neighbourhood, weight: Tensor, of_pairs: Tensor) -> Tensor:
        ctx.near = near
        ctx.save_for_backward(weight, of_pairs)
        return near.edges.sums(weight, of_pairs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor, Tensor]:
        near, (weight, of_pairs) = ctx.near, ctx.saved_tensors
        gradient = gradients[0].contiguous()
        return None, near.edges.products(gradient, of_pairs), near.back.sums(weight[near.order], gradient)


class Edges:
    """All edges of a graph, each once, sorted by head."""

    def __init__(self, head: Ids, relation: Ids, tail: Ids, n_entities: int, device: torch.device) -> None:
        pairs, pair = np.unique(relation.astype(np.int64) * n_entities + tail, return_inverse=True)
        keys = np.unique(head.astype(np.int64) * max(1, len(pairs)) + pair)
        heads, places = np.divmod(keys, max(1, len(pairs)))
        start = np.searchsorted(heads, np.arange(n_entities + 1))
        self._start, self._pair, self._relation, self._tail = (
            torch.from_numpy(np.ascontiguousarray(each)).to(device)
            for each in (start, places, pairs // n_entities, pairs % n_entities)
        )

    def __len__(self) -> int:
        return len(self._pair)

    def around(self, entities: Tensor) -> Neighbourhood:
        """Return the edges of some entities, each given once."""
        begin = self._start[entities]
        size = self._start[entities + 1] - begin
        start = functional.pad(size.cumsum(0), (1, 0))
        entity = torch.arange(len(entities), device=size.device).repeat_interleave(size)
        within = torch.arange(len(entity), device=size.device) - start[entity]
        found = self._pair[begin[entity] + within]
        used = torch.zeros(len(self._relation), dtype=torch.bool, device=size.device)
        used[found] = True
        pairs = used.nonzero().squeeze(1)
        pair = (used.cumsum(0) - 1)[found]
        order = pair.argsort(stable=True)
        starts = torch.searchsorted(pair[order], torch.arange(len(pairs) + 1, device=size.device))
        return Neighbourhood(
            own=entities,
            relation=self._relation[pairs],
            tail=self._tail[pairs],
            entity=entity,
            edges=Bags(start, pair),
            back=Bags(starts, entity[order]),
            order=order,
        )
