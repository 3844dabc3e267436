"""The fused CPU engine in Numba."""

import os

# Threads that wait for the next batch must sleep, not spin: on a machine that does other work too, spinning made an
# epoch ten times slower. It has to be said before Numba loads its threading layer.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from ukge.engines.fused.engine import FusedEngine, applies

__all__ = ["FusedEngine", "applies"]
