"""Small graphs to judge a predictor on; lets the tests share `tests.evaluation.table_predictor`."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from ukge.graph.dataset import Dataset
from ukge.graph.negatives import with_negatives
from ukge.graph.split import split
from ukge.graph.synthetic import generate

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.evaluation.table_predictor import TablePredictor


def _random_table(dataset: Dataset, decimals: int) -> npt.NDArray[np.float32]:
    """Return random confidences, rounded so that they tie, higher where there is a fact."""
    rng = np.random.default_rng(5)
    n, r = len(dataset.entities), len(dataset.relations)
    table = rng.random((r, n, n)) * 0.6
    whole = dataset.whole()
    table[whole.relation, whole.head, whole.tail] += 0.4 * whole.confidence
    return np.round(table, decimals).astype(np.float32)


@pytest.fixture(scope="session")
def dataset() -> Dataset:
    """A random cut of a synthetic world, with negative links."""
    world = generate(n_entities=200, n_facts=1500, seed=3)
    return with_negatives(split(world.graph, val=0.1, test=0.2, seed=0, undirected="none", name="world"), seed=0)


@pytest.fixture(scope="session")
def safe_dataset() -> Dataset:
    """A leak-safe cut of the same world."""
    world = generate(n_entities=200, n_facts=1500, seed=3)
    return split(world.graph, val=0.1, test=0.2, seed=0, leak_safe=True, undirected="none", name="safe world")


@pytest.fixture
def predictor(dataset: Dataset) -> TablePredictor:
    """A predictor with many ties."""
    return TablePredictor(_random_table(dataset, decimals=1))
