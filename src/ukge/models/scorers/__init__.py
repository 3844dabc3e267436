"""Plausibility functions g(h, r, t), one file each."""

from __future__ import annotations

from ukge.models.scorers.base import Part, Scorer, SharedPart, Start, scorers
from ukge.models.scorers.complex import ComplEx
from ukge.models.scorers.distmult import DistMult
from ukge.models.scorers.dot import Dot
from ukge.models.scorers.rotate import RotatE
from ukge.models.scorers.transe import TransE

__all__ = ["ComplEx", "DistMult", "Dot", "Part", "RotatE", "Scorer", "SharedPart", "Start", "TransE", "scorers"]
