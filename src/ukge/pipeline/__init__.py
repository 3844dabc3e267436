"""From a file to calibrated answers in one call: what the other rooms do, one after the other, within a time.

What belongs here decides which of them is asked for how long, and keeps how far it came. It trains, fits and judges
nothing itself.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ukge.pipeline.additions import add, undo
    from ukge.pipeline.refreshing import Refreshed, refresh
    from ukge.pipeline.stages import Fitted, fit

_HOME = {
    "Fitted": "ukge.pipeline.stages",
    "Refreshed": "ukge.pipeline.refreshing",
    "add": "ukge.pipeline.additions",
    "fit": "ukge.pipeline.stages",
    "refresh": "ukge.pipeline.refreshing",
    "undo": "ukge.pipeline.additions",
}

__all__ = ["Fitted", "Refreshed", "add", "fit", "refresh", "undo"]


def __getattr__(name: str) -> Any:
    """Load a public name from its module: adding needs nothing of a search."""
    if name not in _HOME:
        raise AttributeError(f"module 'ukge.pipeline' has no attribute '{name}'")
    return getattr(import_module(_HOME[name]), name)
