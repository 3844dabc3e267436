"""DistMult, the paper's own scorer."""

from __future__ import annotations

from dataclasses import dataclass

from ukge.models.arrays import Array
from ukge.models.scorers.base import InnerProduct, scorers


@dataclass(frozen=True, slots=True)
class DistMult(InnerProduct):
    """g = r · (h ∘ t) (eq. 1), symmetric in head and tail.

    Yang, Yih, He, Gao, Deng: Embedding Entities and Relations for Learning and Inference in Knowledge Bases. ICLR 2015.
    """

    symmetric = True
    fused = ("product", "dot")

    def tail_query(self, head: Array, relation: Array) -> Array:
        """Return h ∘ r."""
        return head * relation

    def head_query(self, relation: Array, tail: Array) -> Array:
        """Return r ∘ t."""
        return relation * tail


scorers.register("distmult")(DistMult())
