"""How facts are judged: by fitted evidence, or by the model alone, with bounds as wide as its errors on other links."""

from __future__ import annotations

import logging
import math
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from ukge.errors import DataError
from ukge.evidence import Evidence
from ukge.graph.dataset import Dataset
from ukge.graph.negatives import negative_links
from ukge.graph.queries import AnyIds, Floats
from ukge.graph.uncertain import UncertainGraph, concat
from ukge.models.model import Model

log = logging.getLogger("ukge")

COVERAGE = 0.9
"""Share of facts that an interval covers unless another is asked for."""

BoundsFrom = Literal["evidence", "validation", "nothing"]
"""Whether bounds come from evidence, from the model's errors on validation facts, or are not known."""

BLOCK = 20_000
"""Facts that are judged at once."""

FEWEST = 50
"""Validation facts that bounds need."""

FEWEST_IN_BAND = 20
"""Links that a band needs for bounds of its own; a smaller one, as where a link clamps, has those of all."""

BANDS = 5
"""Bands of predicted confidence with bounds of their own, each with as many links."""


class Judged(NamedTuple):
    """Confidences with their bounds (NaN where none are known), and what orders facts as they do but without ties."""

    confidence: Floats
    low: Floats
    high: Floats
    strength: Floats


def judge_by_evidence(
    evidence: Evidence, ids: tuple[AnyIds, AnyIds, AnyIds], coverage: float, *, assume_holds: bool, count_itself: bool
) -> Judged:
    """Judge facts by the evidence about them."""
    found = []
    for begin in range(0, max(len(ids[0]), 1), BLOCK):
        h, r, t = (column[begin : begin + BLOCK].astype(np.int32) for column in ids)
        columns = evidence.matrix(h, r, t, count_itself=count_itself)
        low, high = evidence.interval_of(columns, r, coverage, assume_holds=assume_holds)
        confidence = evidence.regressor.predict(columns, assume_holds=assume_holds)
        found.append(Judged(confidence, low, high, evidence.regressor.score(columns)))
    return Judged(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


def judge_by_model(
    model: Model, ids: tuple[AnyIds, AnyIds, AnyIds], bounds: ErrorBounds | None, coverage: float
) -> Judged:
    """Judge facts by the model: it has one reading, and what it has learnt of a fact cannot be left out."""
    confidence = model.confidence(*ids).astype(np.float64)
    unknown = np.full(len(confidence), np.nan)
    low, high = (unknown, unknown) if bounds is None else bounds.interval(confidence, coverage)
    return Judged(confidence, low, high, model.strength(*ids).astype(np.float64))


class ErrorBounds:
    """Split conformal prediction: within a band, an interval is as wide as the share of errors that it shall cover.

    A share of links like those that the errors were taken from lies within: validation facts with their confidences
    and as many negative links, as for the bounds of evidence.
    """

    def __init__(self, predicted: Floats, observed: Floats) -> None:
        self._edges = np.unique(np.quantile(predicted, np.linspace(0, 1, BANDS + 1)[1:-1]))
        band = self._bands(predicted)
        error = np.abs(observed - predicted)
        every = np.sort(error)
        own = [np.sort(error[band == number]) for number in range(len(self._edges) + 1)]
        self._errors = [errors if len(errors) >= FEWEST_IN_BAND else every for errors in own]

    @classmethod
    def of(cls, model: Model, dataset: Dataset) -> ErrorBounds | None:
        """Return the bounds of a model, None if its data set has too few validation facts."""
        if len(dataset.val) < FEWEST:
            return None
        links = concat([dataset.val, negatives_like(dataset, dataset.val)])
        return cls(model.confidence(links.head, links.relation, links.tail).astype(np.float64), links.confidence)

    def interval(self, predicted: Floats, coverage: float) -> tuple[Floats, Floats]:
        """Return the lower and the upper bound of each predicted confidence."""
        widths = np.array([_width(errors, coverage) for errors in self._errors])
        width = widths[self._bands(predicted)]
        return np.maximum(0.0, predicted - width), np.minimum(1.0, predicted + width)

    def _bands(self, predicted: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        return np.searchsorted(self._edges, predicted, side="right")


def negatives_like(dataset: Dataset, part: UncertainGraph) -> UncertainGraph:
    """Return as many negative links as a part has facts; fewer, or none, where the graph leaves no room for them."""
    try:
        return negative_links(dataset, like=part, kind="mixture")
    except DataError as error:
        log.warning("no negative links: %s", error.what.splitlines()[0])
        return part[:0]


def _width(errors: Floats, coverage: float) -> float:
    """Return the error that the given share of new links does not pass; 1, that of any link, if there are too few."""
    place = math.ceil((len(errors) + 1) * coverage)
    return float(errors[place - 1]) if place <= len(errors) else 1.0
