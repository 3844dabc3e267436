"""What evidence is made of."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from ukge.evidence.bounds import Bounds
from ukge.evidence.features import Features
from ukge.evidence.ranking import CandidateRanker
from ukge.evidence.regressor import ConfidenceRegressor
from ukge.evidence.settings import EvidenceSettings
from ukge.graph.dataset import Dataset

if TYPE_CHECKING:
    from ukge.evidence.storage import StoredParts


@dataclass(frozen=True, eq=False)
class Parts:
    """Evidence that was fitted. `StoredParts` of a file have the same names, and are read when they are asked for."""

    features: Features
    regressor: ConfidenceRegressor
    bounds: Bounds
    bounds_if_held: Bounds
    ranker: CandidateRanker | None
    settings: EvidenceSettings
    dataset: Dataset
    """what it belongs to: the known facts are its training facts"""
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, parts: Parts | StoredParts) -> Parts:
        """Return all parts, read now where they are in a file."""
        return cls(**{each.name: getattr(parts, each.name) for each in fields(cls)})
