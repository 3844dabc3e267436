"""The fused CPU engine in Numba."""

from ukge.learning.engines.fused.choices import applies
from ukge.learning.engines.fused.engine import FusedEngine

__all__ = ["FusedEngine", "applies"]
