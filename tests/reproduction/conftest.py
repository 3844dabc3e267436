"""A small data set; lets the tests share `tests.reproduction.made_up`."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ukge.graph.catalogue import save_dataset
from ukge.graph.negatives import with_negatives
from ukge.graph.split import split
from ukge.graph.synthetic import generate

sys.path.insert(0, str(Path(__file__).parents[2]))


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a data set of 1,500 facts."""
    path = tmp_path_factory.mktemp("data") / "world"
    graph = generate(n_entities=200, n_facts=1500, seed=3).graph
    save_dataset(with_negatives(split(graph, seed=0, name="world"), seed=0), path)
    return path
