"""The small world of the evidence's tests, asked; and small runs as the service's tests have them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.evidence.conftest import asked, dataset, evidence, model, small
from tests.serve.small_run import make_run

from ukge.asking import Predictor
from ukge.evidence import Evidence

__all__ = ["dataset", "evidence", "model", "small"]


@pytest.fixture(scope="session")
def predictor(evidence: Evidence) -> Predictor:
    """Evidence, ready to be asked."""
    return asked(evidence)


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without evidence."""
    return make_run(tmp_path_factory.mktemp("asked"))
