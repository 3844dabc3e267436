"""A small world with a trained model, and evidence fitted to it."""

from __future__ import annotations

from typing import Any

import pytest

from ukge.asking import Predictor
from ukge.evidence import Evidence
from ukge.graph.dataset import Dataset
from ukge.graph.split import split
from ukge.graph.synthetic import generate
from ukge.learning.estimator import UKGE


def asked(evidence: Evidence) -> Predictor:
    """Return evidence, ready to be asked."""
    return Predictor(lambda: evidence.dataset, evidence=evidence)


@pytest.fixture(scope="session")
def dataset() -> Dataset:
    """The cut facts of a synthetic world."""
    return split(generate(n_entities=300, n_facts=3500, seed=3).graph, val=0.15, test=0.1, seed=1, name="world")


@pytest.fixture(scope="session")
def model(dataset: Dataset) -> UKGE:
    """A quickly trained model."""
    return UKGE("ukge-rect", dim=8, epochs=3, batch_size=256, lr=0.01, every=3, seed=0).fit(dataset)


@pytest.fixture(scope="session")
def small() -> dict[str, Any]:
    """Settings of a head that is fitted in a moment."""
    trees = {"iterations": 15, "leaves": 7, "folds": 3, "negatives_per_fact": 1.0, "expectation_trees": 10}
    return {**trees, "rank_queries": 60, "rank_candidates": 10}


@pytest.fixture(scope="session")
def evidence(dataset: Dataset, model: UKGE, small: dict[str, Any]) -> Evidence:
    """Evidence with a small head."""
    return Evidence.fit([model], dataset, **small)
