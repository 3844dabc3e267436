"""Evidence: what the graph itself says about a fact, joined with trained models into a calibrated confidence.

Names are loaded when they are first used: whether a run keeps evidence is told without what reads it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ukge.evidence.evidence import Evidence
    from ukge.evidence.regressor import Contributions
    from ukge.evidence.settings import EvidenceSettings

_HOME = {
    "Evidence": "ukge.evidence.evidence",
    "EvidenceSettings": "ukge.evidence.settings",
    "Contributions": "ukge.evidence.regressor",
}

__all__ = ["Contributions", "Evidence", "EvidenceSettings"]


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    if name not in _HOME:
        raise AttributeError(f"module 'ukge.evidence' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)
