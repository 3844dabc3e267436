"""Who says how confident a fact is: fitted evidence, or the model alone where a run has none.

A fact is never evidence for itself: one that the graph holds is judged by the others, unless `count_itself` is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np

from ukge.evidence import Evidence
from ukge.graph.queries import AnyIds, Floats
from ukge.models.model import Model

if TYPE_CHECKING:
    from ukge.asking.error_bounds import ErrorBounds

COVERAGE = 0.9
"""Share of facts that an interval covers unless another is asked for."""

BoundsFrom = Literal["evidence", "validation", "nothing"]
"""Whether bounds come from evidence, from the model's errors on validation facts, or are not known."""

BLOCK = 20_000
"""Facts that are judged at once."""


class Judged(NamedTuple):
    """Confidences with their bounds (NaN where none are known), and what orders facts as they do but without ties."""

    confidence: Floats
    low: Floats
    high: Floats
    strength: Floats


class Judge(Protocol):
    """Somebody who says how confident facts are, by ids."""

    kind: Literal["model", "evidence"]

    @property
    def bounds(self) -> BoundsFrom:
        """What bounds are taken from."""

    def judge(
        self,
        head: AnyIds,
        relation: AnyIds,
        tail: AnyIds,
        coverage: float = COVERAGE,
        *,
        assume_holds: bool = False,
        count_itself: bool = False,
    ) -> Judged:
        """Judge facts; with `assume_holds`, each is taken to be a fact of the graph, and asked how confident a one."""


class EvidenceJudge:
    """Calibrated confidences and bounds."""

    kind: Literal["model", "evidence"] = "evidence"
    bounds: BoundsFrom = "evidence"

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence

    def judge(
        self,
        head: AnyIds,
        relation: AnyIds,
        tail: AnyIds,
        coverage: float = COVERAGE,
        *,
        assume_holds: bool = False,
        count_itself: bool = False,
    ) -> Judged:
        """Judge facts by the evidence about them."""
        evidence = self.evidence
        found = []
        for begin in range(0, max(len(head), 1), BLOCK):
            h, r, t = (column[begin : begin + BLOCK].astype(np.int32) for column in (head, relation, tail))
            columns = evidence.matrix(h, r, t, count_itself=count_itself)
            low, high = evidence.interval_of(columns, r, coverage, assume_holds=assume_holds)
            confidence = evidence.regressor.predict(columns, assume_holds=assume_holds)
            found.append(Judged(confidence, low, high, evidence.regressor.score(columns)))
        return Judged(*(np.concatenate(parts) for parts in zip(*found, strict=True)))


class ModelJudge:
    """What the model alone says; bounds are as wide as its errors on validation facts and negative links."""

    kind: Literal["model", "evidence"] = "model"

    def __init__(self, model: Model, bounds: Callable[[], ErrorBounds | None]) -> None:
        self.model = model
        self._bounds = bounds

    @property
    def bounds(self) -> BoundsFrom:
        """What bounds are taken from."""
        return "nothing" if self._bounds() is None else "validation"

    def judge(
        self,
        head: AnyIds,
        relation: AnyIds,
        tail: AnyIds,
        coverage: float = COVERAGE,
        *,
        assume_holds: bool = False,  # noqa: ARG002 — a model has one reading
        count_itself: bool = False,  # noqa: ARG002 — what it has learnt cannot be left out
    ) -> Judged:
        """Judge facts by the model."""
        confidence = self.model.confidence(head, relation, tail).astype(np.float64)
        bounds = self._bounds()
        unknown = np.full(len(confidence), np.nan)
        low, high = (unknown, unknown) if bounds is None else bounds.interval(confidence, coverage)
        return Judged(confidence, low, high, self.model.strength(head, relation, tail).astype(np.float64))
