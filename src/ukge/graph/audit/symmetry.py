"""How symmetric each relation is: whether (t, r, h) is a fact where (h, r, t) is one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ukge.graph.index import FactIndex
from ukge.graph.undirected import mirrors


@dataclass(frozen=True, slots=True)
class Symmetry:
    """One relation over all parts.

    `facts` are its distinct triples between two different entities, `share` of them have their inverse in the graph,
    and `gap` is the mean absolute difference of the two confidences.
    """

    relation: str
    facts: int
    share: float
    gap: float | None


def find_symmetry(facts: FactIndex) -> tuple[Symmetry, ...]:
    """Return the symmetry of every used relation, those with most facts first."""
    total, both, gap = mirrors(facts)
    names = facts.graph.relations.decode(np.arange(facts.n_relations)).to_pylist()
    return tuple(
        Symmetry(names[r], int(total[r]), float(both[r] / total[r]), float(gap[r] / both[r]) if both[r] else None)
        for r in np.argsort(-total, kind="stable")
        if total[r]
    )
