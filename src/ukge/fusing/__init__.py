"""Fusing: claims of many sources made into one calibrated confidence per fact, and those of one source calibrated.

It knows claims and the graph that they make; what a trained run says of their facts is given to it as numbers. Names
are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ukge.fusing.calibrating import Calibrator
    from ukge.fusing.fusion import Fused, Fusion, fuse

_HOME = {
    "Calibrator": "ukge.fusing.calibrating",
    "Fused": "ukge.fusing.fusion",
    "Fusion": "ukge.fusing.fusion",
    "fuse": "ukge.fusing.fusion",
}

__all__ = ["Calibrator", "Fused", "Fusion", "fuse"]


def __getattr__(name: str) -> Any:
    """Load a public name from its module."""
    if name not in _HOME:
        raise AttributeError(f"module 'ukge.fusing' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)
