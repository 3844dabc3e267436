"""The plain inner product of two entities, blind to the relation."""

from __future__ import annotations

from dataclasses import dataclass

from ukge.models.arrays import Array
from ukge.models.scorers.base import InnerProduct, scorers


@dataclass(frozen=True, slots=True)
class Dot(InnerProduct):
    """g = h · t, whatever the relation: matrix factorisation with first-order proximity.

    Hu, Cheng, Huang, Fang, Luo: On Embedding Uncertain Graphs (URGE). CIKM 2017.
    """

    symmetric = True
    fused = ("copy", "dot")

    def tail_query(self, head: Array, relation: Array) -> Array:  # noqa: ARG002
        """Return h."""
        return head

    def head_query(self, relation: Array, tail: Array) -> Array:  # noqa: ARG002
        """Return t."""
        return tail


scorers.register("dot")(Dot())
