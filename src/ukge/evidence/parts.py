"""What evidence is made of."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from ukge.evidence.bounds import Bounds
from ukge.evidence.features import Features
from ukge.evidence.head import Head
from ukge.evidence.ranking import RankHead
from ukge.evidence.settings import EvidenceSettings

if TYPE_CHECKING:
    from ukge.evidence.storage import StoredParts


@dataclass(frozen=True, eq=False)
class Parts:
    """Evidence that was fitted. `StoredParts` of a file have the same names, and are read when they are asked for."""

    features: Features
    head: Head
    bounds: Bounds
    bounds_if_held: Bounds
    rank_head: RankHead | None
    settings: EvidenceSettings
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, parts: Parts | StoredParts) -> Parts:
        """Return all parts, read now where they are in a file."""
        return cls(**{each.name: getattr(parts, each.name) for each in fields(cls)})
