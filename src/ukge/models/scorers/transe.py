"""TransE: a relation is a translation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from ukge.models.arrays import Array, library, total
from ukge.models.scorers.base import EPS, Scorer, scorers


@dataclass(frozen=True, slots=True)
class TransE(Scorer):
    """g = −‖h + r − t‖ in the norm L1 (`p=1`) or L2 (`p=2`); never positive, the link's w and b map it to [0, 1].

    Bordes, Usunier, García-Durán, Weston, Yakhnenko: Translating Embeddings for Modeling Multi-relational Data.
    NeurIPS 2013.
    """

    p: Literal[1, 2] = 1

    inner_product = False

    @property
    def fused(self) -> tuple[str, str]:
        """A translation, compared in its norm."""
        return "translation", f"l{self.p}"

    def tail_query(self, head: Array, relation: Array) -> Array:
        """Return h + r."""
        return head + relation

    def head_query(self, relation: Array, tail: Array) -> Array:
        """Return t − r."""
        return tail - relation

    def compare(self, query: Array, candidate: Array) -> Array:
        """Return −‖query − candidate‖."""
        xp, difference = library(query), query - candidate
        distance: Array = total(abs(difference)) if self.p == 1 else xp.sqrt(total(xp.square(difference)) + EPS)
        return -distance

    def compare_all(self, query: Array, candidates: Array) -> Array:
        """Return all distances without holding the differences; not by a matrix product, which rounds near 0."""
        if isinstance(query, np.ndarray):
            return Scorer.compare_all(self, query, candidates)
        xp = library(query)
        distance: Array = xp.cdist(query, candidates, p=self.p, compute_mode="donot_use_mm_for_euclid_dist")
        return -distance if self.p == 1 else -xp.sqrt(xp.square(distance) + EPS)


scorers.register("transe")(TransE(1))
scorers.register("transe-l1")(TransE(1))
scorers.register("transe-l2")(TransE(2))
