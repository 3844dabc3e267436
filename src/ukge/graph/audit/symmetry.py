"""How symmetric each relation is: whether (t, r, h) is a fact where (h, r, t) is one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ukge.graph.audit.lookup import ByTriple
from ukge.graph.uncertain import UncertainGraph


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


def find_symmetry(graph: UncertainGraph, facts: ByTriple) -> tuple[Symmetry, ...]:
    """Return the symmetry of every used relation, those with most facts first."""
    rows = facts.order[facts.start]
    apart = graph.head[rows] != graph.tail[rows]
    rows = rows[apart]
    means = facts.mean()
    at = facts.find(graph.inverse_keys()[rows])
    mirrored = at >= 0
    gaps = np.where(mirrored, np.abs(means[apart] - means[at]), 0.0) if len(rows) else np.zeros(0)
    relation = graph.relation[rows]
    n = graph.n_relations
    total = np.bincount(relation, minlength=n)
    both = np.bincount(relation, weights=mirrored, minlength=n)
    gap = np.bincount(relation, weights=gaps, minlength=n)
    names = graph.relations.decode(np.arange(n)).to_pylist()
    return tuple(
        Symmetry(names[r], int(total[r]), float(both[r] / total[r]), float(gap[r] / both[r]) if both[r] else None)
        for r in np.argsort(-total, kind="stable")
        if total[r]
    )
