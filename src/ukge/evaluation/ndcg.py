"""Normalised discounted cumulative gain of ranked tails."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ukge.evaluation.bootstrap import Means
from ukge.evaluation.metric import MEAN_RANK, metric
from ukge.evaluation.ranks import Ranks
from ukge.graph.queries import AnyIds, Floats, Numbers


@dataclass(frozen=True, slots=True)
class Ndcg:
    """Mean nDCG over queries, with linear gain s and with exponential gain 2^s − 1; higher is better."""

    linear: float = metric("nDCG linear", "higher", ties=MEAN_RANK)
    exponential: float = metric("nDCG exponential", "higher", ties=MEAN_RANK)
    queries: int = 0


def ndcg(ranks: Ranks, gains: Numbers, query: AnyIds) -> Ndcg:
    """Return the mean nDCG from the rank and the gain of every relevant tail, ordered by query.

    Tails without a gain add nothing, wherever they stand, so only the relevant ones are given. Queries whose gains are
    all 0 have no order to get right and are left out.
    """
    sample = ndcg_sample(ranks, gains, query)
    return Ndcg(**sample.point(), queries=sample.units)


def ndcg_sample(ranks: Ranks, gains: Numbers, query: AnyIds) -> Means:
    """Return the nDCG query by query, to draw from."""
    confidence = np.asarray(gains, dtype=np.float64)
    linear = per_query_ndcg(ranks, confidence, query)
    exponential = per_query_ndcg(ranks, np.exp2(confidence) - 1.0, query)
    return Means([linear, exponential], lambda means: {"linear": means[:, 0], "exponential": means[:, 1]})


def per_query_ndcg(ranks: Ranks, gains: Floats, query: AnyIds) -> Floats:
    """Return the nDCG of each query that has a gain, in the order of queries."""
    ids, group = np.unique(query, return_inverse=True)
    reached = np.bincount(group, weights=gains / np.log2(1.0 + ranks), minlength=len(ids))
    order = np.lexsort((-gains, group))
    starts = np.searchsorted(group[order], np.arange(len(ids)))
    place = np.arange(len(order)) - starts[group[order]] + 1
    ideal = np.bincount(group[order], weights=gains[order] / np.log2(1.0 + place), minlength=len(ids))
    return reached[ideal > 0] / ideal[ideal > 0]
