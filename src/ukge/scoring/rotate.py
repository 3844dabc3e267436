"""RotatE: a relation is a rotation of each complex coordinate."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ukge.scoring.base import EPS, Scorer, scorers


@dataclass(frozen=True, slots=True)
class RotatE(Scorer):
    """g = −Σᵢ |hᵢ exp(iθᵢ) − tᵢ|; an entity's row holds real parts, then imaginary parts, a relation's the phases θ.

    Sun, Deng, Nie, Tang: RotatE: Knowledge Graph Embedding by Relational Rotation in Complex Space. ICLR 2019.
    """

    inner_product = False
    phases = True
    entity_parts = ("real", "imaginary")
    relation_parts = ("phase",)

    def tail_query(self, head: Tensor, relation: Tensor) -> Tensor:
        """Return the head turned by θ."""
        return _rotate(head, relation.cos(), relation.sin())

    def head_query(self, relation: Tensor, tail: Tensor) -> Tensor:
        """Return the tail turned back, which is as far from the head as the turned head is from the tail."""
        return _rotate(tail, relation.cos(), -relation.sin())

    def compare(self, query: Tensor, candidate: Tensor) -> Tensor:
        """Return −Σᵢ |queryᵢ − candidateᵢ| over complex coordinates."""
        real, imaginary = (query - candidate).chunk(2, dim=-1)
        return -(real.square() + imaginary.square() + EPS).sqrt().sum(dim=-1)


def _rotate(entity: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    real, imaginary = entity.chunk(2, dim=-1)
    return torch.cat([real * cos - imaginary * sin, real * sin + imaginary * cos], dim=-1)


scorers.register("rotate")(RotatE())
