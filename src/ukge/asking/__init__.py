"""What can be asked of a run: how confident a fact is, within which bounds, which answers fit, why, what is missing.

The command line, Python and the service all ask here, and so get the same answers. Whether a run has fitted evidence
or only its model is known to the judges of this room and to nobody who asks.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ukge.asking.predictor import Predictor

__all__ = ["Predictor"]


def __getattr__(name: str) -> Any:
    """Load a name when it is first used."""
    if name != "Predictor":
        raise AttributeError(f"module 'ukge.asking' has no attribute '{name}'")
    return import_module("ukge.asking.predictor").Predictor
