"""Normalised discounted cumulative gain of ranked tails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ukge.evaluation.ranks import Ranks

Gains = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class Ndcg:
    """Mean nDCG over queries, with linear gain s and with exponential gain 2^s − 1; higher is better."""

    linear: float
    exponential: float
    queries: int


def ndcg(ranks: Ranks, gains: Gains, query: npt.NDArray[np.integer[Any]]) -> Ndcg:
    """Return the mean nDCG from the rank and the gain of every relevant tail, ordered by query.

    Tails without a gain add nothing, wherever they stand, so only the relevant ones are given. Queries whose gains are
    all 0 have no order to get right and are left out.
    """
    confidence = np.asarray(gains, dtype=np.float64)
    linear = per_query_ndcg(ranks, confidence, query)
    exponential = per_query_ndcg(ranks, np.exp2(confidence) - 1.0, query)
    return Ndcg(float(np.mean(linear)), float(np.mean(exponential)), len(linear))


def per_query_ndcg(
    ranks: Ranks, gains: npt.NDArray[np.float64], query: npt.NDArray[np.integer[Any]]
) -> npt.NDArray[np.float64]:
    """Return the nDCG of each query that has a gain, in the order of queries."""
    ids, group = np.unique(query, return_inverse=True)
    reached = np.bincount(group, weights=gains / np.log2(1.0 + ranks), minlength=len(ids))
    order = np.lexsort((-gains, group))
    starts = np.searchsorted(group[order], np.arange(len(ids)))
    place = np.arange(len(order)) - starts[group[order]] + 1
    ideal = np.bincount(group[order], weights=gains[order] / np.log2(1.0 + place), minlength=len(ids))
    return reached[ideal > 0] / ideal[ideal > 0]
