"""A small world, cut, and runs of it: what commands that ask a run are asked about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ukge.evidence import Evidence
from ukge.graph.dataset import Dataset
from ukge.graph.split import split
from ukge.graph.synthetic import generate
from ukge.learning.estimator import UKGE

TREES: dict[str, Any] = {"iterations": 10, "leaves": 7, "folds": 3, "negatives_per_fact": 1.0}
SMALL = {**TREES, "rank_queries": 40, "rank_candidates": 5}


@pytest.fixture(scope="session")
def dataset() -> Dataset:
    """The cut facts of a small world."""
    return split(generate(n_entities=200, n_facts=1500, seed=3).graph, val=0.15, test=0.1, seed=1, name="world")


@pytest.fixture(scope="session")
def home(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a run that has evidence, and one that has none."""
    path = tmp_path_factory.mktemp("home")
    model = UKGE("ukge-rect", dim=8, epochs=2, batch_size=256, every=2).fit(dataset, out=path / "run")
    model.save(path / "plain")
    Evidence.fit([model], dataset, **SMALL).save(path / "run" / "evidence")
    return path
