"""Lets the tests of ranks share their modules, however pytest is started, and skips them without TorchRec."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))


@pytest.fixture(scope="session")
def torchrec() -> None:
    if importlib.util.find_spec("torchrec") is None or importlib.util.find_spec("fbgemm_gpu") is None:
        pytest.skip("TorchRec is not installed: see docs/distributed.md")
