"""The fused CPU engine in Numba."""

from ukge.learning.engines.fused.engine import FusedEngine, applies

__all__ = ["FusedEngine", "applies"]
