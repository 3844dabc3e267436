"""TransE: a relation is a translation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ukge.scoring.base import EPS, Scorer, scorers


@dataclass(frozen=True, slots=True)
class TransE(Scorer):
    """g = −‖h + r − t‖ in the norm L1 (`p=1`) or L2 (`p=2`); never positive, the link's w and b map it to [0, 1].

    Bordes, Usunier, García-Durán, Weston, Yakhnenko: Translating Embeddings for Modeling Multi-relational Data.
    NeurIPS 2013.
    """

    p: Literal[1, 2] = 1

    inner_product = False

    def tail_query(self, head: Tensor, relation: Tensor) -> Tensor:
        """Return h + r."""
        return head + relation

    def head_query(self, relation: Tensor, tail: Tensor) -> Tensor:
        """Return t − r."""
        return tail - relation

    def compare(self, query: Tensor, candidate: Tensor) -> Tensor:
        """Return −‖query − candidate‖."""
        difference = query - candidate
        if self.p == 1:
            return -difference.abs().sum(dim=-1)
        return -(difference.square().sum(dim=-1) + EPS).sqrt()

    def compare_all(self, query: Tensor, candidates: Tensor) -> Tensor:
        """Return all distances without holding the differences; not by a matrix product, which rounds near 0."""
        distance = torch.cdist(query, candidates, p=self.p, compute_mode="donot_use_mm_for_euclid_dist")
        return -distance if self.p == 1 else -(distance.square() + EPS).sqrt()


scorers.register("transe")(TransE(1))
scorers.register("transe-l1")(TransE(1))
scorers.register("transe-l2")(TransE(2))
