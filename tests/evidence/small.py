"""Evidence over a small world, fitted in a moment: for tests of how it is kept, not of what it says."""

from __future__ import annotations

from ukge.evidence import Evidence
from ukge.graph.split import split
from ukge.graph.synthetic import generate
from ukge.learning.estimator import UKGE

TREES = {"iterations": 3, "leaves": 5, "folds": 2, "expectation_trees": 2, "rank_queries": 20, "rank_candidates": 5}


def make_small_evidence() -> Evidence:
    """Train a model for an epoch, and fit a few trees."""
    world = generate(n_entities=160, n_facts=900, seed=3).graph
    dataset = split(world, val=0.15, test=0.1, seed=1, name="world")
    model = UKGE("ukge-rect", dim=4, epochs=1, every=1, engine="torch").fit(dataset)
    return Evidence.fit([model], dataset, **TREES)  # type: ignore[arg-type]
