"""Not one number but a distribution of the confidence: its quantiles, and how good they are.

What a prediction turns out to mean is read off links whose confidence is known and that the predictor did not learn
from: those with a like prediction, and a like expected error where one is known, make a cell. A link that belongs to a
cell is as likely to be anywhere among its links, so the quantiles of the cell hold the share that they promise.

An interval is made of the same links. How far out an observed confidence lies in its own distribution is known of
every link, from the others; as far as it takes to hold the promised share of them, so far the interval reaches
(distributional conformal prediction; Chernozhukov, Wüthrich and Zhu, 2021). Where many confidences are a few round
numbers, two quantiles hold more than their levels say, and those of lower levels do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ukge.evaluation.metric import Means, metric
from ukge.graph.keys import find
from ukge.graph.queries import AnyIds, Floats

FINE = 20
"""Bands of like predictions that have quantiles of their own, at most."""

COARSE = 5
"""Bands of like predictions within which intervals keep their coverage, at most."""

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

FACT = -1
"""The kind of a link that is a fact; those of negative links count from 0."""

Form = Literal["values", "errors"]


@runtime_checkable
class Distributed(Protocol):
    """A predictor that brings its own distributions and intervals, calibrated on links it did not learn from."""

    def confidence_quantiles(self, head: AnyIds, relation: AnyIds, tail: AnyIds, levels: Sequence[float]) -> Floats:
        """Return the quantiles of the confidence of each fact, by ids, a column per level."""

    def confidence_bounds(self, head: AnyIds, relation: AnyIds, tail: AnyIds, coverage: float) -> tuple[Floats, Floats]:
        """Return the lower and the upper bound of the confidence of each fact, by ids."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What links are asked about, beside those that predictions are calibrated on: facts and negative links by half."""

    prior: float = 0.5
    """share of facts among them"""
    times: tuple[float, ...] = ()
    """how many times as common as among those negative links each kind is, by its number; nothing: as common"""

    def weight(self, observed: Floats, kind: npt.NDArray[np.integer] | None) -> Floats:
        """Return for how much each of the known links counts."""
        of_kind = 1.0 if kind is None or not self.times else np.append(self.times, 1.0)[kind]
        return np.where(observed > 0.0, self.prior, (1.0 - self.prior) * of_kind)


NEUTRAL = Asked()


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
    kind: npt.NDArray[np.integer] | None = None
    """the kind of each negative link, if kinds are told apart"""

    @classmethod
    def of(
        cls,
        predicted: Floats,
        observed: Floats,
        expected: Floats | None = None,
        kind: npt.NDArray[np.integer] | None = None,
    ) -> Outcomes:
        """Keep what was predicted and observed, in the form whose quantiles score better on some of the links."""
        both = [
            cls(predicted, np.ones(len(predicted)) if expected is None else expected, observed, form, kind)
            for form in ("values", "errors")
        ]
        rows = np.random.default_rng(0).permutation(len(observed))[:TRIED]
        return min(both, key=lambda each: float(np.mean(crps(each.of_rows(rows), observed[rows]))))

    def of_rows(self, rows: npt.NDArray[np.int64]) -> Floats:
        """Return the quantiles at `LEVELS` of some of its own links."""
        return self.quantiles(self.predicted[rows], self.expected[rows], LEVELS)

    def quantiles(
        self, predicted: Floats, expected: Floats, levels: Floats | Sequence[float], among: Asked = NEUTRAL
    ) -> Floats:
        """Return the quantiles of predictions with these expected errors, a column per level.

        Each link may have levels of its own, a row of them. The links of a cell count for as much as `among` says that
        there are such among those that are asked about. Levels below ½ are rounded down and the others up, so that an
        interval between two of them holds at least its share.
        """
        wanted = np.asarray(levels, dtype=np.float64)
        own, asked = self._cell(self.predicted, self.expected), self._cell(predicted, expected)
        found = np.empty((len(predicted), wanted.shape[-1]))
        values, weight = self._values(among), self._weight(among)
        for cell in np.unique(asked):
            rows, theirs = own == cell, asked == cell
            levels_there = wanted if wanted.ndim == 1 else wanted[theirs]
            found[theirs] = weighted_quantiles(values[rows], weight[rows], levels_there)
        if self._is_of_errors(among):
            found = predicted[:, None] + expected[:, None] * found
        return np.clip(found, 0.0, 1.0)

    def interval(
        self, predicted: Floats, expected: Floats, coverage: float, among: Asked = NEUTRAL
    ) -> tuple[Floats, Floats]:
        """Return bounds that hold the given share of links, within each band of predictions."""
        reach = self.reach(self.bands(self.predicted), self.bands(predicted), coverage, among)
        return self.between(predicted, expected, reach, among)

    def reach(
        self, own: npt.NDArray[np.int64], asked: npt.NDArray[np.int64], coverage: float, among: Asked = NEUTRAL
    ) -> Floats:
        """Return how far out bounds have to be to hold the given share within each category; infinite if it is unknown.

        `own` are the categories of its links, `asked` those of the links that are asked about.
        """
        return holding(self._scores(among), self._weight(among), own, asked, coverage)

    def between(
        self, predicted: Floats, expected: Floats, reach: Floats, among: Asked = NEUTRAL
    ) -> tuple[Floats, Floats]:
        """Return bounds that reach so far: the middle share of the distribution, or errors around the prediction."""
        if self._is_of_errors(among):
            return np.clip(predicted - reach * expected, 0.0, 1.0), np.clip(predicted + reach * expected, 0.0, 1.0)
        share = np.minimum(reach, 1.0)[:, None]
        low, high = self.quantiles(predicted, expected, 0.5 + share * np.array([-0.5, 0.5]), among).T
        return low, high

    def bands(self, predicted: Floats) -> npt.NDArray[np.int64]:
        """Return the band within which the interval of each prediction keeps its coverage."""
        return np.searchsorted(self._coarse, predicted, side="right")

    def _is_of_errors(self, among: Asked) -> bool:
        """Return whether it is about errors around predictions; of other links the predictions are not these."""
        return self.form == "errors" and among == NEUTRAL

    def _weight(self, among: Asked) -> Floats:
        return among.weight(self.observed, self.kind)

    def _scores(self, among: Asked) -> Floats:
        """Return how far out each of its links lies: its error, or the middle share that just holds its confidence.

        A link has no part in the distribution that it is judged by: those of one half are judged by the other.
        """
        if self._is_of_errors(among):
            return np.abs(self.observed - self.predicted) / self.expected
        values, weight = self._values(among), self._weight(among)
        half = np.random.default_rng(0).permutation(len(values)) % 2
        found = np.ones(len(values))
        cells = self._cell(self.predicted, self.expected)
        for cell in np.unique(cells):
            for number in range(2):
                judged, others = (np.flatnonzero((cells == cell) & (half == each)) for each in (number, 1 - number))
                found[judged] = _middle_share(values[others], weight[others], values[judged])
        return found

    def _values(self, among: Asked) -> Floats:
        """Return what is taken from the links of a cell."""
        return (self.observed - self.predicted) / self.expected if self._is_of_errors(among) else self.observed

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
        return _edges(self.predicted, FINE)

    @cached_property
    def _coarse(self) -> Floats:
        return _edges(self.predicted, COARSE)

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


def holding(
    score: Floats, weight: Floats, category: npt.NDArray[np.int64], asked: npt.NDArray[np.int64], coverage: float
) -> Floats:
    """Return what the given share of scores of each asked category stays within; infinite where too few are known.

    Of n scores with equal weights that is the ⌈coverage · (n + 1)⌉-th smallest: with one more, as likely to be anywhere
    among them, the share still holds.
    """
    known = np.unique(category)
    reach = np.full(len(known) + 1, np.inf)  # the last, at −1, is that of categories without scores
    for number, each in enumerate(known):
        rows = np.flatnonzero((category == each) & (weight > 0.0))
        if not len(rows):
            continue
        rows = rows[np.argsort(score[rows], kind="stable")]
        heap = np.cumsum(weight[rows])
        place = np.searchsorted(heap, coverage * (heap[-1] + weight[rows].mean()) - 1e-9 * heap[-1])
        if place < len(rows):
            reach[number] = score[rows[place]]
    return reach[find(known, asked)]


def _middle_share(values: Floats, weight: Floats, observed: Floats) -> Floats:
    """Return the middle share of weighted values that just reaches each observed one; 1 where there are none."""
    values, weight = values[weight > 0.0], weight[weight > 0.0]
    if not len(values):
        return np.ones(len(observed))
    order = np.argsort(values, kind="stable")
    heap = np.concatenate([[0.0], np.cumsum(weight[order])])
    below, until = (heap[np.searchsorted(values[order], observed, side=side)] / heap[-1] for side in ("left", "right"))
    share: Floats = np.maximum(np.maximum(1.0 - 2.0 * until, 2.0 * below - 1.0), 0.0)
    return share


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
