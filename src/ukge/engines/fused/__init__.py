"""The fused CPU engine in Numba."""

from ukge.engines.fused.engine import FusedEngine, applies

__all__ = ["FusedEngine", "applies"]
