"""ukge: knowledge graphs whose facts carry a confidence.

Names are loaded when they are first used, so that `import ukge` costs nothing.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ukge._version import __version__

# How long threads that wait for each other spin before they sleep. OpenMP's own default is a hundred times as long,
# which makes a step up to ten times slower where other processes need the cores too; never to spin costs PyTorch, whose
# waits are short, half its speed. It has to be said before PyTorch loads OpenMP, whose copy Numba then shares.
os.environ.setdefault("GOMP_SPINCOUNT", "3000")

if TYPE_CHECKING:
    from ukge.asking import Predictor
    from ukge.errors import ConfigError, DataError, RuleError, RunError, UkgeError, UkgeWarning
    from ukge.evidence import Evidence
    from ukge.fusing import Calibrator, Fusion, fuse
    from ukge.graph.audit import audit
    from ukge.graph.catalogue import open_dataset, save_dataset
    from ukge.graph.claims import Claims
    from ukge.graph.dataset import Dataset
    from ukge.graph.readers import read
    from ukge.graph.split import split
    from ukge.graph.uncertain import Fact, UncertainGraph
    from ukge.graph.writers import write
    from ukge.learning.estimator import UKGE
    from ukge.pipeline import add, fit, refresh, undo
    from ukge.settings.config import Config

_HOME = {
    "Calibrator": "ukge.fusing",
    "Claims": "ukge.graph.claims",
    "Config": "ukge.settings.config",
    "ConfigError": "ukge.errors",
    "DataError": "ukge.errors",
    "Dataset": "ukge.graph.dataset",
    "Evidence": "ukge.evidence",
    "Fact": "ukge.graph.uncertain",
    "Fusion": "ukge.fusing",
    "Predictor": "ukge.asking",
    "RuleError": "ukge.errors",
    "RunError": "ukge.errors",
    "UKGE": "ukge.learning.estimator",
    "UkgeError": "ukge.errors",
    "UkgeWarning": "ukge.errors",
    "UncertainGraph": "ukge.graph.uncertain",
    "add": "ukge.pipeline",
    "audit": "ukge.graph.audit",
    "fit": "ukge.pipeline",
    "fuse": "ukge.fusing",
    "open_dataset": "ukge.graph.catalogue",
    "read": "ukge.graph.readers",
    "save_dataset": "ukge.graph.catalogue",
    "refresh": "ukge.pipeline",
    "split": "ukge.graph.split",
    "undo": "ukge.pipeline",
    "write": "ukge.graph.writers",
}

__all__ = [
    "UKGE",
    "Calibrator",
    "Claims",
    "Config",
    "ConfigError",
    "DataError",
    "Dataset",
    "Evidence",
    "Fact",
    "Fusion",
    "Predictor",
    "RuleError",
    "RunError",
    "UkgeError",
    "UkgeWarning",
    "UncertainGraph",
    "__version__",
    "add",
    "audit",
    "fit",
    "fuse",
    "open_dataset",
    "read",
    "refresh",
    "save_dataset",
    "split",
    "undo",
    "write",
]


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    if name not in _HOME:
        raise AttributeError(f"module 'ukge' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__
