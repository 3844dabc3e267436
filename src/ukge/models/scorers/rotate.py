"""RotatE: a relation is a rotation of each complex coordinate."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ukge.models.arrays import Array, halves, library, side_by_side, total
from ukge.models.scorers.base import EPS, Part, Scorer, Start, scorers


@dataclass(frozen=True, slots=True)
class RotatE(Scorer):
    """g = −Σᵢ |hᵢ exp(iθᵢ) − tᵢ|; an entity's row holds real parts, then imaginary parts, a relation's the phases θ.

    Sun, Deng, Nie, Tang: RotatE: Knowledge Graph Embedding by Relational Rotation in Complex Space. ICLR 2019.
    """

    inner_product = False
    fused = ("rotation", "modulus")
    phases = True
    entity_parts = (Part("real"), Part("imaginary"))
    relation_parts = (Part("phase", Start.uniform(-math.pi, math.pi)),)

    def tail_query(self, head: Array, relation: Array) -> Array:
        """Return the head turned by θ."""
        return _rotate(head, relation, 1.0)

    def head_query(self, relation: Array, tail: Array) -> Array:
        """Return the tail turned back, which is as far from the head as the turned head is from the tail."""
        return _rotate(tail, relation, -1.0)

    def compare(self, query: Array, candidate: Array) -> Array:
        """Return −Σᵢ |queryᵢ − candidateᵢ| over complex coordinates."""
        xp = library(query)
        real, imaginary = halves(query - candidate)
        distance: Array = xp.sqrt(xp.square(real) + xp.square(imaginary) + EPS)
        return -total(distance)


def _rotate(entity: Array, angle: Array, sense: float) -> Array:
    cos: Array = library(angle).cos(angle)
    sin: Array = library(angle).sin(angle) * sense
    real, imaginary = halves(entity)
    return side_by_side(real * cos - imaginary * sin, real * sin + imaginary * cos)


scorers.register("rotate")(RotatE())
