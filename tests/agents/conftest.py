"""A run with evidence and sources, and servers of it in processes of their own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.agents.asked_run import make_asked_run


@pytest.fixture(scope="package")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run whose facts say where they come from, with evidence."""
    return make_asked_run(tmp_path_factory.mktemp("agents"))
