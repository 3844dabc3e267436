"""How the parts of evidence that are learnt are fitted: the head, the bounds and the head for ranking."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ukge.errors import DataError
from ukge.evidence.bounds import Bounds
from ukge.evidence.features import Features
from ukge.evidence.head import Examples, Head, fit_head, joined
from ukge.evidence.mixture import mixed_negatives
from ukge.evidence.ranking import RankHead, fit_rank_head
from ukge.evidence.settings import EvidenceSettings
from ukge.graph.dataset import Dataset
from ukge.graph.uncertain import UncertainGraph
from ukge.steps import Steps

FEWEST_FACTS = 50
"""Validation facts that a head needs."""

GATHER, LEARN, HEAD, BOUNDS, RANKING = (
    "mining rules and gathering evidence",
    "learning from the known facts",
    "fitting the head",
    "fitting the bounds",
    "fitting the ranking",
)
STEPS = {GATHER: 3, LEARN: 12, HEAD: 55, BOUNDS: 12, RANKING: 18}
"""What fitting does, with the share of its time that each step took on the paper's graphs."""


class Parts(NamedTuple):
    """What is learnt, as `Evidence` takes it."""

    head: Head
    bounds: Bounds
    bounds_if_held: Bounds
    rank_head: RankHead | None
    settings: EvidenceSettings
    notes: list[str]


def fit_parts(features: Features, blind: Dataset, chosen: EvidenceSettings, steps: Steps) -> Parts:
    """Fit everything to the validation facts and to negative links."""
    val = blind.val
    steps.begin(HEAD)
    examples, negatives, notes = examples_of(features, blind, chosen)
    head, unseen = fit_head(examples, features.rising, chosen, steps.within)
    steps.begin(BOUNDS)
    rows = np.random.default_rng(chosen.seed).permutation(len(negatives))[: len(val)]
    every = np.concatenate([examples.facts, examples.negatives[rows]])
    at = np.concatenate([np.arange(len(val)), len(val) + rows])
    predicted = head.overall(joined(chosen.error, unseen.holds[at], unseen.level[at]))
    observed = np.concatenate([val.confidence, np.zeros(len(rows))])
    relation = np.concatenate([val.relation, negatives.relation[rows]])
    bounds = Bounds.fit(every, predicted, observed, relation, chosen)
    steps.within(0.6)
    if_held = head.if_held(unseen.level[: len(val)])
    held = Bounds.fit(examples.facts, if_held, val.confidence, np.asarray(val.relation), chosen)
    steps.begin(RANKING)
    rank_head = fit_rank_head(features, val, chosen, steps.within)
    return Parts(head, bounds, held, rank_head, chosen, notes)


def examples_of(
    features: Features, blind: Dataset, settings: EvidenceSettings
) -> tuple[Examples, UncertainGraph, list[str]]:
    """Return what heads learn from, the negative links among it, and what is to be said of them."""
    negatives, notes = mixed_negatives(blind, settings)
    columns = [features.columns(each.head, each.relation, each.tail) for each in (blind.val, negatives)]
    return Examples(columns[0], blind.val.confidence, columns[1]), negatives, notes


def without_test(dataset: Dataset) -> Dataset:
    """Return a data set without its test part, checked for enough validation facts."""
    if len(dataset.val) < FEWEST_FACTS:
        raise DataError(
            f"data set {dataset.name!r} has {len(dataset.val)} validation facts, and a head needs {FEWEST_FACTS}",
            hint="Split the graph with a larger validation part.",
        )
    return replace(dataset, test=dataset.test[:0], negatives=None, queries=None)
