"""Figures broken down: errors by relation and by confidence band, ranking by the size of the query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ukge.graph.queries import Floats, Numbers
from ukge.graph.uncertain import UncertainGraph

BANDS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
SIZES = ((1, 1), (2, 2), (3, 5), (6, 10), (11, 20), (21, 50), (51, 100), (101, None))


@dataclass(frozen=True, slots=True)
class Group:
    """Facts or queries that belong together: how many, and a mean over them with its standard error."""

    name: str
    count: int
    mean: float
    error: float
    bias: float = 0.0


def errors_by_relation(facts: UncertainGraph, predicted: Numbers, most: int) -> list[Group]:
    """Return the mean absolute error of the relations with most facts, the most frequent first."""
    gap = np.asarray(predicted, dtype=np.float64) - facts.confidence
    count = np.bincount(facts.relation, minlength=facts.n_relations)
    chosen = [int(r) for r in np.argsort(-count, kind="stable")[:most] if count[r]]
    return [_group(facts.relations[relation], gap[facts.relation == relation]) for relation in chosen]


def errors_by_band(observed: Numbers, predicted: Numbers) -> list[Group]:
    """Return the mean absolute error of facts by observed confidence; those with confidence 0 are a band of their own.

    Bands are named by their upper ends. The bias of a band is its mean signed error: above 0 where confidences are
    predicted too high.
    """
    gap = np.asarray(predicted, dtype=np.float64) - observed
    groups = [_group("0", gap[observed == 0.0])]
    low = 0.0
    for high in BANDS:
        groups.append(_group(f"≤ {high:.1f}", gap[(observed > low) & (observed <= high)]))
        low = high
    return [group for group in groups if group.count]


def by_query_size(sizes: Floats, values: Floats) -> list[Group]:
    """Return the mean of a value per query by how many tails the query has."""
    groups = []
    for low, high in SIZES:
        chosen = values[(sizes >= low) & (sizes <= (high or np.inf))]
        name = f"{low}+" if high is None else str(low) if low == high else f"{low}–{high}"
        if len(chosen):
            error = float(chosen.std() / np.sqrt(len(chosen)))
            groups.append(Group(name, len(chosen), float(chosen.mean()), error))
    return groups


def _group(name: str, gap: Floats) -> Group:
    if len(gap) == 0:
        return Group(name, 0, np.nan, np.nan)
    size = np.abs(gap)
    return Group(name, len(gap), float(size.mean()), float(size.std() / np.sqrt(len(gap))), float(gap.mean()))
