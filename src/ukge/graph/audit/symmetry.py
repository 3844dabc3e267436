"""How symmetric each relation is: whether (t, r, h) is a fact where (h, r, t) is one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ukge.graph.index import FactIndex
from ukge.graph.undirected import FEWEST, ends_shared, mirrors

SAME_ENDS = 0.8
"""Share of a relation's entities that are both heads and tails from which on it may have no direction."""


@dataclass(frozen=True, slots=True)
class Symmetry:
    """One relation over all parts.

    `facts` are its distinct triples between two different entities, `share` of them have their inverse in the graph,
    and `gap` is the mean absolute difference of the two confidences. `undirected` says whether the graph takes it to
    have no direction, `perhaps` whether it may have none: nearly all its entities are heads and tails, but no fact has
    its inverse, as where each was written down once, in any order.
    """

    relation: str
    facts: int
    share: float
    gap: float | None
    undirected: bool = False
    perhaps: bool = False


def find_symmetry(facts: FactIndex) -> tuple[Symmetry, ...]:
    """Return the symmetry of every used relation, those with most facts first."""
    total, both, gap = mirrors(facts)
    names = facts.graph.relations.decode(np.arange(facts.n_relations)).to_pylist()
    return tuple(
        Symmetry(
            names[r],
            int(total[r]),
            float(both[r] / total[r]),
            float(gap[r] / both[r]) if both[r] else None,
            undirected=names[r] in facts.graph.undirected,
            perhaps=bool(total[r] >= FEWEST and both[r] == 0 and ends_shared(facts, int(r)) >= SAME_ENDS),
        )
        for r in np.argsort(-total, kind="stable")
        if total[r]
    )
