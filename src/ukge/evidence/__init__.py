"""Evidence: what the graph itself says about a fact, joined with trained models into a calibrated confidence."""

from ukge.evidence.evidence import Evidence, FactContributions
from ukge.evidence.settings import EvidenceSettings

__all__ = ["Evidence", "EvidenceSettings", "FactContributions"]
