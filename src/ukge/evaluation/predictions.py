"""What evaluation asks of a predictor: confidences of facts, and scores of all entities for a query."""

from __future__ import annotations

from typing import Protocol

from ukge.graph.queries import AnyIds, Numbers, Ranker


class ConfidencePredictor(Protocol):
    """Says how confident it is of facts, by id."""

    def confidence(self, head: AnyIds, relation: AnyIds, tail: AnyIds) -> Numbers:
        """Return the predicted confidence of each fact."""


class Predictor(ConfidencePredictor, Ranker, Protocol):
    """Both: what the protocols evaluate."""
