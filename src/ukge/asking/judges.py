"""How facts are judged: by fitted evidence, or by the model alone, with bounds by what it said of other links."""

from __future__ import annotations

import logging
from typing import Literal, NamedTuple

import numpy as np

from ukge.errors import DataError
from ukge.evaluation.distribution import Outcomes
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
    model: Model, ids: tuple[AnyIds, AnyIds, AnyIds], outcomes: Outcomes | None, coverage: float
) -> Judged:
    """Judge facts by the model: it has one reading, and what it has learnt of a fact cannot be left out."""
    confidence = model.confidence(*ids).astype(np.float64)
    unknown = np.full(len(confidence), np.nan)
    low, high = unknown, unknown
    if outcomes is not None:
        low, high = outcomes.interval(confidence, np.ones(len(confidence)), coverage)
        low, high = np.minimum(low, confidence), np.maximum(high, confidence)
    return Judged(confidence, low, high, model.strength(*ids).astype(np.float64))


def outcomes_of(model: Model, dataset: Dataset) -> Outcomes | None:
    """Return what a model's predictions turned out to mean, None if its data set has too few validation facts.

    They are of the validation facts with their confidences and of as many negative links, as for evidence.
    """
    if len(dataset.val) < FEWEST:
        return None
    links = concat([dataset.val, negatives_like(dataset, dataset.val)])
    predicted = model.confidence(links.head, links.relation, links.tail).astype(np.float64)
    return Outcomes.of(predicted, links.confidence)


def negatives_like(dataset: Dataset, part: UncertainGraph) -> UncertainGraph:
    """Return as many negative links as a part has facts; fewer, or none, where the graph leaves no room for them."""
    try:
        return negative_links(dataset, like=part, kind="mixture")
    except DataError as error:
        log.warning("no negative links: %s", error.what.splitlines()[0])
        return part[:0]
