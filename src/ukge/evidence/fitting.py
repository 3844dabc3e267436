"""Fitting: from trained models and a data set to evidence with its heads and bounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ukge.errors import ConfigError, DataError
from ukge.estimator import UKGE
from ukge.evidence.backbones import backbones_of
from ukge.evidence.bounds import Bounds
from ukge.evidence.features import Features
from ukge.evidence.gather import gather
from ukge.evidence.head import Examples, fit_head, joined
from ukge.evidence.impartial import with_expectation
from ukge.evidence.kernels import load_compiler
from ukge.evidence.mixture import mixed_negatives
from ukge.evidence.parts import Parts
from ukge.evidence.ranking import fit_rank_head
from ukge.evidence.settings import EvidenceSettings
from ukge.evidence.storage import StoredParts
from ukge.graph.dataset import Dataset
from ukge.graph.uncertain import UncertainGraph
from ukge.steps import Steps, Tell

GATHERING = frozenset({"strong", "min_hit_ratio", "expectation_trees"})
"""Settings that decide what evidence is gathered, not what a head makes of it."""

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


def fit(
    models: UKGE | str | Path | Sequence[UKGE | str | Path],
    dataset: Dataset,
    settings: EvidenceSettings,
    engine: str = "duckdb",
    tell: Tell | None = None,
) -> Parts:
    """Gather evidence from the training facts and fit a head to the validation facts and to negative links."""
    load_compiler()
    steps = Steps(tell, STEPS)
    blind = _blind(dataset)
    backbones = backbones_of(models, blind)
    steps.begin(GATHER)
    features = gather(blind.train, backbones, settings, engine)
    steps.begin(LEARN)
    return _fitted(with_expectation(features, settings, steps.within), blind, settings, steps)


def refit(parts: Parts | StoredParts, dataset: Dataset, changes: Mapping[str, Any], tell: Tell | None = None) -> Parts:
    """Fit another head over the same evidence, with some of the head's settings changed."""
    fixed = sorted(GATHERING & changes.keys())
    if fixed:
        raise ConfigError(f"{', '.join(fixed)} cannot be changed over the same evidence", hint="Use Evidence.fit.")
    steps = Steps(tell, {step: STEPS[step] for step in (HEAD, BOUNDS, RANKING)})
    return _fitted(parts.features, _own(parts, dataset), replace(parts.settings, **changes), steps)


def examples_of(parts: Parts | StoredParts, dataset: Dataset) -> Examples:
    """Return what heads over some evidence learn from."""
    return _examples(parts.features, _own(parts, dataset), parts.settings)[0]


def _own(parts: Parts | StoredParts, dataset: Dataset) -> Dataset:
    """Return the data set that the evidence was gathered from, without its test part."""
    if dataset.train.fingerprint != parts.features.index.graph.fingerprint:
        raise DataError(
            f"the training facts of data set {dataset.name!r} are not those that the evidence was gathered from",
            hint="Fit new evidence with Evidence.fit.",
        )
    return _blind(dataset)


def _fitted(features: Features, blind: Dataset, settings: EvidenceSettings, steps: Steps) -> Parts:
    val = blind.val
    steps.begin(HEAD)
    examples, negatives, notes = _examples(features, blind, settings)
    head, unseen = fit_head(examples, features.rising, settings, steps.within)
    steps.begin(BOUNDS)
    rows = np.random.default_rng(settings.seed).permutation(len(negatives))[: len(val)]
    every = np.concatenate([examples.facts, examples.negatives[rows]])
    at = np.concatenate([np.arange(len(val)), len(val) + rows])
    predicted = head.overall(joined(settings.error, unseen.holds[at], unseen.level[at]))
    observed = np.concatenate([val.confidence, np.zeros(len(rows))])
    relation = np.concatenate([val.relation, negatives.relation[rows]])
    bounds = Bounds.fit(every, predicted, observed, relation, settings)
    steps.within(0.6)
    if_held = head.if_held(unseen.level[: len(val)])
    held = Bounds.fit(examples.facts, if_held, val.confidence, np.asarray(val.relation), settings)
    steps.begin(RANKING)
    rank_head = fit_rank_head(features, val, settings, steps.within)
    return Parts(features, head, bounds, held, rank_head, settings, tuple(notes))


def _examples(
    features: Features, blind: Dataset, settings: EvidenceSettings
) -> tuple[Examples, UncertainGraph, list[str]]:
    """Return what heads learn from, the negative links among it, and what is to be said of them."""
    negatives, notes = mixed_negatives(blind, settings)
    columns = [features.columns(each.head, each.relation, each.tail) for each in (blind.val, negatives)]
    return Examples(columns[0], blind.val.confidence, columns[1]), negatives, notes


def _blind(dataset: Dataset) -> Dataset:
    """Return a data set without its test part, checked for enough validation facts."""
    if len(dataset.val) < FEWEST_FACTS:
        raise DataError(
            f"data set {dataset.name!r} has {len(dataset.val)} validation facts, and a head needs {FEWEST_FACTS}",
            hint="Split the graph with a larger validation part.",
        )
    return replace(dataset, test=dataset.test[:0], negatives=None, queries=None)
