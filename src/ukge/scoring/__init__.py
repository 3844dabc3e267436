"""Plausibility functions g(h, r, t), one file each."""

from __future__ import annotations

from ukge.scoring.base import Scorer, scorers
from ukge.scoring.complex import ComplEx
from ukge.scoring.distmult import DistMult
from ukge.scoring.dot import Dot
from ukge.scoring.rotate import RotatE
from ukge.scoring.transe import TransE

__all__ = ["ComplEx", "DistMult", "Dot", "RotatE", "Scorer", "TransE", "scorers"]
