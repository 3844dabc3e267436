"""ComplEx: DistMult over complex numbers, which tells head from tail."""

from __future__ import annotations

from dataclasses import dataclass

from ukge.models.arrays import Array, halves, side_by_side
from ukge.models.scorers.base import InnerProduct, Part, scorers


@dataclass(frozen=True, slots=True)
class ComplEx(InnerProduct):
    """g = Re ⟨h, r, conj(t)⟩ over complex numbers; a row holds all real parts, then all imaginary parts.

    Trouillon, Welbl, Riedel, Gaussier, Bouchard: Complex Embeddings for Simple Link Prediction. ICML 2016.
    """

    fused = ("complex product", "dot")
    entity_parts = relation_parts = (Part("real"), Part("imaginary"))

    def tail_query(self, head: Array, relation: Array) -> Array:
        """Return h·r, whose real inner product with t is Re(h·r·conj(t))."""
        (a, b), (c, d) = halves(head), halves(relation)
        return side_by_side(a * c - b * d, a * d + b * c)

    def head_query(self, relation: Array, tail: Array) -> Array:
        """Return conj(r)·t, whose real inner product with h is the same number."""
        (c, d), (e, f) = halves(relation), halves(tail)
        return side_by_side(c * e + d * f, c * f - d * e)


scorers.register("complex")(ComplEx())
