"""A small world as a frame, and a model that was trained on it in a moment."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from ukge.graph.synthetic import generate
from ukge.learning.estimator import UKGE

QUICK: dict[str, Any] = {"dim": 8, "epochs": 4, "every": 2, "lr": 0.02, "batch_size": 256, "threads": 1}


@pytest.fixture(scope="session")
def quick() -> dict[str, Any]:
    """Settings of a training that takes a moment."""
    return dict(QUICK)


@pytest.fixture(scope="session")
def frame() -> pd.DataFrame:
    """1,000 facts as a pandas user has them, under an index of their own."""
    facts = generate(n_entities=200, n_facts=1000, seed=0).graph.facts("pandas")
    return facts.set_axis(range(5000, 6000), axis=0)


@pytest.fixture(scope="session")
def model(frame: pd.DataFrame) -> UKGE:
    """A trained model."""
    return UKGE(**QUICK).fit(frame)
