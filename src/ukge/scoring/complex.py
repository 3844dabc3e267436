"""ComplEx: DistMult over complex numbers, which tells head from tail."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ukge.scoring.base import InnerProduct, scorers


@dataclass(frozen=True, slots=True)
class ComplEx(InnerProduct):
    """g = Re ⟨h, r, conj(t)⟩ over complex numbers; a row holds all real parts, then all imaginary parts.

    Trouillon, Welbl, Riedel, Gaussier, Bouchard: Complex Embeddings for Simple Link Prediction. ICML 2016.
    """

    entity_parts = relation_parts = ("real", "imaginary")

    def tail_query(self, head: Tensor, relation: Tensor) -> Tensor:
        """Return h·r, whose real inner product with t is Re(h·r·conj(t))."""
        a, b = head.chunk(2, dim=-1)
        c, d = relation.chunk(2, dim=-1)
        return torch.cat([a * c - b * d, a * d + b * c], dim=-1)

    def head_query(self, relation: Tensor, tail: Tensor) -> Tensor:
        """Return conj(r)·t, whose real inner product with h is the same number."""
        c, d = relation.chunk(2, dim=-1)
        e, f = tail.chunk(2, dim=-1)
        return torch.cat([c * e + d * f, c * f - d * e], dim=-1)


scorers.register("complex")(ComplEx())
