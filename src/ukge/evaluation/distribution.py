"""Not one number but a distribution of the confidence: its quantiles, and how good they are.

What a prediction turns out to mean is read off links whose confidence is known and that the predictor did not learn
from: those with a like prediction, and a like expected error where one is known, make a cell. A link that belongs to a
cell is as likely to be anywhere among its links, so the quantiles of the cell hold the share that they promise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ukge.evaluation.metric import Means, metric
from ukge.graph.queries import AnyIds, Floats

BANDS = 20
"""Bands of like predictions at most."""

PARTS = 4
"""Parts of a band by expected error at most."""

FEWEST = 150
"""Links that a cell has at least, if there are as many."""

LEVELS: Floats = (np.arange(100) + 0.5) / 100
"""Quantiles that stand for a distribution where it is scored."""

CELLS = 20
"""Cells of confidences above 0 that the log score tells apart; exactly 0 is one more."""

TRIED = 5_000
"""Links that decide at most which form of a distribution is the better one."""

NEUTRAL = 0.5
"""Share of facts among what predictions are calibrated on: the rest are negative links."""

Form = Literal["values", "errors"]


@runtime_checkable
class Distributed(Protocol):
    """A predictor that brings its own distributions and intervals, calibrated on links it did not learn from."""

    def confidence_quantiles(self, head: AnyIds, relation: AnyIds, tail: AnyIds, levels: Sequence[float]) -> Floats:
        """Return the quantiles of the confidence of each fact, by ids, a column per level."""

    def confidence_bounds(self, head: AnyIds, relation: AnyIds, tail: AnyIds, coverage: float) -> tuple[Floats, Floats]:
        """Return the lower and the upper bound of the confidence of each fact, by ids."""


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Predictions of links that were not learnt from, how large their errors were expected to be, and what they were.

    The form says what is taken from the links of a cell: their confidences as they are (where these are a few round
    numbers, the distribution is over those), or their errors, in units of the expected one, around the prediction.
    """

    predicted: Floats
    expected: Floats
    observed: Floats
    form: Form = "values"

    @classmethod
    def of(cls, predicted: Floats, observed: Floats, expected: Floats | None = None) -> Outcomes:
        """Keep what was predicted and observed, in the form whose quantiles score better on some of the links."""
        both = [
            cls(predicted, np.ones(len(predicted)) if expected is None else expected, observed, form)
            for form in ("values", "errors")
        ]
        rows = np.random.default_rng(0).permutation(len(observed))[:TRIED]
        return min(both, key=lambda each: float(np.mean(crps(each.of_rows(rows), observed[rows]))))

    def of_rows(self, rows: npt.NDArray[np.int64]) -> Floats:
        """Return the quantiles at `LEVELS` of some of its own links."""
        return self.quantiles(self.predicted[rows], self.expected[rows], LEVELS)

    def quantiles(
        self, predicted: Floats, expected: Floats, levels: Floats | Sequence[float], prior: float = NEUTRAL
    ) -> Floats:
        """Return the quantiles of predictions with these expected errors, a column per level.

        `prior` is the share of facts among the links that are asked about: those of a cell that are facts count for
        as much, the others for the rest. Levels below ½ are rounded down and the others up, so that an interval
        between two of them holds at least its share.
        """
        wanted = np.asarray(levels, dtype=np.float64)
        own, asked = self._cell(self.predicted, self.expected), self._cell(predicted, expected)
        found = np.empty((len(predicted), len(wanted)))
        values = self.observed if self.form == "values" else (self.observed - self.predicted) / self.expected
        weight = np.where(self.observed > 0.0, prior, 1.0 - prior)
        for cell in np.unique(asked):
            rows = own == cell
            found[asked == cell] = weighted_quantiles(values[rows], weight[rows], wanted)
        if self.form == "errors":
            found = predicted[:, None] + expected[:, None] * found
        return np.clip(found, 0.0, 1.0)

    def interval(
        self, predicted: Floats, expected: Floats, coverage: float, prior: float = NEUTRAL
    ) -> tuple[Floats, Floats]:
        """Return the bounds between which the middle share of the distribution lies."""
        low, high = self.quantiles(predicted, expected, middle(coverage), prior).T
        return low, high

    def _cell(self, predicted: Floats, expected: Floats) -> npt.NDArray[np.int64]:
        """Return the cell of each prediction."""
        band = np.searchsorted(self._edges, predicted, side="right")
        part = np.zeros(len(predicted), dtype=np.int64)
        for number, edges in enumerate(self._parts):
            rows = band == number
            part[rows] = np.searchsorted(edges, expected[rows], side="right")
        return band * PARTS + part

    @cached_property
    def _edges(self) -> Floats:
        return _edges(self.predicted, BANDS)

    @cached_property
    def _parts(self) -> list[Floats]:
        """The edges of the parts of each band, by expected error."""
        band = np.searchsorted(self._edges, self.predicted, side="right")
        return [_edges(self.expected[band == number], PARTS) for number in range(len(self._edges) + 1)]


def _edges(values: Floats, most: int) -> Floats:
    """Return the lowest value of every group but the first: at most so many groups, of about the same size."""
    distinct, count = np.unique(values, return_counts=True)
    below = np.cumsum(count) - count
    groups = min(most, len(values) // FEWEST)
    kept: list[float] = []
    last = 0
    for wanted in len(values) * np.arange(1, groups) / max(groups, 1):
        nearest = int(np.argmin(np.abs(below - wanted)))
        if min(below[nearest] - last, len(values) - below[nearest]) >= FEWEST:
            kept.append(float(distinct[nearest]))
            last = int(below[nearest])
    return np.array(kept, dtype=np.float64)


def middle(coverage: float) -> tuple[float, float]:
    """Return the two levels between which the middle share of a distribution lies."""
    return (1.0 - coverage) / 2.0, (1.0 + coverage) / 2.0


def weighted_quantiles(values: Floats, weight: Floats, levels: Floats) -> Floats:
    """Return the quantiles of weighted values and one more, unknown one of mean weight; infinite where that is needed.

    Of n values with equal weights that is the ⌊level · (n + 1)⌋-th smallest below ½, and the ⌈level · (n + 1)⌉-th else.
    """
    kept = weight > 0.0
    values, weight = values[kept], weight[kept]
    if not len(values):
        return np.where(levels < 0.5, -np.inf, np.inf)
    order = np.argsort(values, kind="stable")
    heap = np.cumsum(weight[order])
    reached = levels * (heap[-1] + weight.mean())
    slack = 1e-9 * heap[-1]
    ends = np.concatenate([[-np.inf], values[order], [np.inf]])
    down = np.searchsorted(heap, reached + slack, side="right")
    up = np.searchsorted(heap, reached - slack, side="left") + 1
    found: Floats = ends[np.where(levels < 0.5, down, up)]
    return found


def crps(quantiles: Floats, observed: Floats) -> Floats:
    """Return the continuous ranked probability score of each row, of M quantiles at the levels (k − ½) / M.

    It is that of a distribution which has each of the M with the same chance: mean |X − y| − ½ mean |X − X'|.
    """
    m = quantiles.shape[1]
    gap = observed[:, None] - quantiles
    levels = (np.arange(m) + 0.5) / m
    score: Floats = 2.0 * np.mean(np.where(gap >= 0, levels, levels - 1.0) * gap, axis=1)
    return score


def log_score(quantiles: Floats, observed: Floats) -> Floats:
    """Return −ln of the chance of the cell that the observed confidence lies in: 0, or one of 20 above it.

    The chance is the share of the M quantiles that lie in the cell, and of one more that is as likely in any cell: what
    seemed impossible costs ln((M + 1) · 21), and not everything.
    """
    n_cells = CELLS + 1
    inside = np.sum(_cells(quantiles) == _cells(observed)[:, None], axis=1)
    score: Floats = -np.log((inside + 1.0 / n_cells) / (quantiles.shape[1] + 1.0))
    return score


def _cells(values: Floats) -> npt.NDArray[np.int64]:
    return np.where(values > 0.0, np.minimum(np.ceil(values * CELLS - 1e-9), CELLS), 0.0).astype(np.int64)


@dataclass(frozen=True, slots=True)
class DistributionScores:
    """Continuous ranked probability score and log score of predicted distributions; lower is better."""

    crps: float = metric("CRPS", "lower", digits=5)
    log_score: float = metric("log score", "lower")


def distribution_sample(quantiles: Floats, observed: Floats) -> Means:
    """Return the scores of quantiles at `LEVELS` fact by fact, to draw from."""
    columns = [crps(quantiles, observed), log_score(quantiles, observed)]
    return Means(columns, lambda means: {"crps": means[:, 0], "log_score": means[:, 1]})


@dataclass(frozen=True, slots=True)
class IntervalScores:
    """Share of observed confidences that lie within their bounds, and how far these are apart."""

    coverage: float = metric("coverage", "higher")
    width: float = metric("width", "lower")


def interval_sample(low: Floats, high: Floats, observed: Floats) -> Means:
    """Return what intervals hold, and their widths, fact by fact, to draw from."""
    held = (low <= observed) & (observed <= high)
    return Means([held, high - low], lambda means: {"coverage": means[:, 0], "width": means[:, 1]})
