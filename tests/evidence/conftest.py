"""A small world with a trained model, and evidence fitted to it: made once, for all tests that ask it."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from ukge.asking import Predictor
from ukge.evidence import Evidence
from ukge.graph.dataset import Dataset
from ukge.graph.split import split
from ukge.graph.synthetic import generate
from ukge.learning.estimator import UKGE

_TREES = {"iterations": 15, "leaves": 7, "folds": 3, "negatives_per_fact": 1.0, "expectation_trees": 10}
SMALL: dict[str, Any] = {**_TREES, "rank_queries": 60, "rank_candidates": 10}


def asked(evidence: Evidence) -> Predictor:
    """Return evidence, ready to be asked."""
    return Predictor(lambda: evidence.dataset, evidence=evidence)


@cache
def _world() -> tuple[Dataset, UKGE, Evidence]:
    dataset = split(generate(n_entities=300, n_facts=3500, seed=3).graph, val=0.15, test=0.1, seed=1, name="world")
    model = UKGE("ukge-rect", dim=8, epochs=3, batch_size=256, lr=0.01, every=3, seed=0, engine="torch").fit(dataset)
    return dataset, model, Evidence.fit([model], dataset, **SMALL)


@pytest.fixture(scope="session")
def dataset() -> Dataset:
    """The cut facts of a synthetic world."""
    return _world()[0]


@pytest.fixture(scope="session")
def model() -> UKGE:
    """A quickly trained model."""
    return _world()[1]


@pytest.fixture(scope="session")
def small() -> dict[str, Any]:
    """Settings of trees that are fitted in a moment."""
    return SMALL


@pytest.fixture(scope="session")
def evidence() -> Evidence:
    """Evidence of a few trees."""
    return _world()[2]
