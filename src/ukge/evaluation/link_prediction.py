"""Link prediction: how high the true entity of a fact ranks among all, plainly and weighted by confidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ukge.evaluation.bootstrap import Means, Measured
from ukge.evaluation.metric import MEAN_RANK, metric
from ukge.evaluation.ranks import Ranks
from ukge.graph.queries import Floats, Numbers

HITS = (1, 3, 10, 20, 40)


@dataclass(frozen=True, slots=True)
class LinkMetrics:
    """Mean rank, mean reciprocal rank and hits at k, and the same weighted by the confidence s of each fact.

    WMR = Σ s·rank / Σ s, WMRR = Σ s/rank / Σ s, WHits@k = Σ s·[rank ≤ k] / Σ s.
    """

    mr: float = metric("MR", "lower", ties=MEAN_RANK, digits=1)
    mrr: float = metric("MRR", "higher", ties=MEAN_RANK)
    hits_1: float = metric("Hits@1", "higher", ties=MEAN_RANK)
    hits_3: float = metric("Hits@3", "higher", ties=MEAN_RANK)
    hits_10: float = metric("Hits@10", "higher", ties=MEAN_RANK)
    hits_20: float = metric("Hits@20", "higher", ties=MEAN_RANK)
    hits_40: float = metric("Hits@40", "higher", ties=MEAN_RANK)
    wmr: float = metric("WMR", "lower", ties=MEAN_RANK, digits=1)
    wmrr: float = metric("WMRR", "higher", ties=MEAN_RANK)
    whits_1: float = metric("WHits@1", "higher", ties=MEAN_RANK)
    whits_3: float = metric("WHits@3", "higher", ties=MEAN_RANK)
    whits_10: float = metric("WHits@10", "higher", ties=MEAN_RANK)
    whits_20: float = metric("WHits@20", "higher", ties=MEAN_RANK)
    whits_40: float = metric("WHits@40", "higher", ties=MEAN_RANK)
    facts: int = 0


def link_metrics(*sides: Ranks, confidence: Numbers) -> LinkMetrics:
    """Return the metrics of ranked facts; given the ranks of both sides, their average."""
    sample = link_sample(*sides, confidence=confidence)
    return LinkMetrics(**sample.point(), facts=sample.units)


def link_sample(*sides: Ranks, confidence: Numbers) -> Means:
    """Return what each fact adds, to draw from; a fact's sides are drawn together."""
    kinds = [np.mean(each, axis=0) for each in zip(*(_kinds(ranks) for ranks in sides), strict=True)]
    weight = np.asarray(confidence, dtype=np.float64)
    return Means([weight, *kinds, *(weight * kind for kind in kinds)], _combine)


def _kinds(ranks: Ranks) -> list[Floats]:
    return [ranks, 1.0 / ranks, *((ranks <= k).astype(np.float64) for k in HITS)]


def _combine(means: Floats) -> Measured:
    names = ["mr", "mrr", *(f"hits_{k}" for k in HITS)]
    plain = {name: means[:, 1 + at] for at, name in enumerate(names)}
    weighted = {f"w{name}": means[:, 1 + len(names) + at] / means[:, 0] for at, name in enumerate(names)}
    return {**plain, **weighted}
