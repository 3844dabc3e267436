"""Fitting: from trained models and a data set to evidence with its heads and bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ukge.errors import ConfigError, DataError
from ukge.evidence.backbones import Models, backbones_of
from ukge.evidence.bounds import Bounds
from ukge.evidence.features import Features
from ukge.evidence.gather import gather
from ukge.evidence.kernels import load_compiler
from ukge.evidence.negatives import mixed_negatives
from ukge.evidence.out_of_fold import with_expectation
from ukge.evidence.parts import Parts
from ukge.evidence.ranking import fit_ranker
from ukge.evidence.regressor import Examples, fit_regressor, joined
from ukge.evidence.settings import EvidenceSettings
from ukge.evidence.storage import StoredParts
from ukge.graph.dataset import Dataset
from ukge.graph.uncertain import UncertainGraph
from ukge.progress.steps import Steps, Tell

GATHERING = frozenset({"strong", "min_hit_ratio", "expectation_trees"})
"""Settings that decide what evidence is gathered, not what trees make of it."""

FEWEST_FACTS = 50
"""Validation facts that trees need."""

GATHER, LEARN, HEAD, BOUNDS, RANKING = (
    "mining rules and gathering evidence",
    "learning from the known facts",
    "fitting the confidences",
    "fitting the bounds",
    "fitting the ranking",
)
STEPS = {GATHER: 3, LEARN: 12, HEAD: 55, BOUNDS: 12, RANKING: 18}
"""What fitting does, with the share of its time that each step took on the paper's graphs."""


def fit(
    models: Models,
    dataset: Dataset,
    settings: EvidenceSettings,
    engine: str = "duckdb",
    tell: Tell | None = None,
) -> Parts:
    """Gather evidence from the training facts and fit trees to the validation facts and to negative links."""
    load_compiler()
    steps = Steps(tell, STEPS)
    blind = _blind(dataset)
    backbones = backbones_of(models, blind)
    steps.begin(GATHER)
    features = gather(blind.train, backbones, settings, engine)
    steps.begin(LEARN)
    return _fitted(with_expectation(features, settings, steps.within), dataset, settings, steps)


def refit(parts: Parts | StoredParts, changes: Mapping[str, Any], tell: Tell | None = None) -> Parts:
    """Fit other trees over the same evidence, with some of their settings changed."""
    fixed = sorted(GATHERING & changes.keys())
    if fixed:
        raise ConfigError(f"{', '.join(fixed)} cannot be changed over the same evidence", hint="Use Evidence.fit.")
    steps = Steps(tell, {step: STEPS[step] for step in (HEAD, BOUNDS, RANKING)})
    return _fitted(parts.features, parts.dataset, replace(parts.settings, **changes), steps)


def examples_of(parts: Parts | StoredParts, dataset: Dataset) -> Examples:
    """Return what heads over some evidence learn from, given a data set with the same training facts."""
    return _examples(parts.features, _blind(dataset), parts.settings)[0]


def _fitted(features: Features, dataset: Dataset, settings: EvidenceSettings, steps: Steps) -> Parts:
    blind = _blind(dataset)
    val = blind.val
    steps.begin(HEAD)
    examples, negatives, notes = _examples(features, blind, settings)
    regressor, unseen = fit_regressor(examples, features.rising, settings, steps.within)
    steps.begin(BOUNDS)
    rows = np.random.default_rng(settings.seed).permutation(len(negatives))[: len(val)]
    every = np.concatenate([examples.facts, examples.negatives[rows]])
    at = np.concatenate([np.arange(len(val)), len(val) + rows])
    predicted = regressor.overall(joined(settings.error, unseen.holds[at], unseen.level[at]))
    observed = np.concatenate([val.confidence, np.zeros(len(rows))])
    relation = np.concatenate([val.relation, negatives.relation[rows]])
    bounds = Bounds.fit(every, predicted, observed, relation, settings)
    steps.within(0.6)
    if_held = regressor.if_held(unseen.level[: len(val)])
    held = Bounds.fit(examples.facts, if_held, val.confidence, np.asarray(val.relation), settings)
    steps.begin(RANKING)
    ranker = fit_ranker(features, val, settings, steps.within)
    return Parts(features, regressor, bounds, held, ranker, settings, dataset, tuple(notes))


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
            f"data set {dataset.name!r} has {len(dataset.val)} validation facts, and evidence needs {FEWEST_FACTS}",
            hint="Split the graph with a larger validation part.",
        )
    return replace(dataset, test=dataset.test[:0], negatives=None, queries=None)
