"""What evaluation asks of a predictor: confidences of facts, and scores of all entities for a query."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.integer[Any]]
Numbers = npt.NDArray[np.floating[Any]]
Floats = npt.NDArray[np.float64]


class ConfidencePredictor(Protocol):
    """Says how confident it is of facts, by id."""

    def confidence(self, head: Ids, relation: Ids, tail: Ids) -> Numbers:
        """Return the predicted confidence of each fact."""


class Ranker(Protocol):
    """Scores every entity as the answer to a query, by id; a higher score ranks higher."""

    @property
    def n_entities(self) -> int:
        """How many entities can be an answer."""

    def tail_scores(self, head: Ids, relation: Ids) -> Numbers:
        """Return for each query (h, r, ?) a score of every entity, (n, n_entities)."""

    def head_scores(self, relation: Ids, tail: Ids) -> Numbers:
        """Return for each query (?, r, t) a score of every entity, (n, n_entities)."""


class Predictor(ConfidencePredictor, Ranker, Protocol):
    """Both: what the protocols evaluate."""
