"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Under xdist, let workers compile each kernel once."""
    if hasattr(config, "workerinput"):
        from tests.compiling import compile_once

        compile_once()


@pytest.fixture(scope="session")
def benchmark_data() -> Path:
    """The directory of the benchmark graphs, named by UKGE_DATA; tests that need it skip where it is missing."""
    named = os.environ.get("UKGE_DATA")
    if not named:
        pytest.skip("UKGE_DATA is not set: the benchmark graphs cn15k, nl27k and ppi5k are not here")
    path = Path(named)
    if not (path / "cn15k" / "train.tsv").is_file():
        pytest.skip(f"UKGE_DATA names {path}, which does not hold the benchmark graphs")
    return path
