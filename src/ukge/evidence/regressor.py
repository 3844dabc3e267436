"""Confidences by boosted trees: does the fact hold at all, and how confident is it if so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ukge.errors import ConfigError, DataError, RunError
from ukge.evaluation.distribution import NEUTRAL, Asked
from ukge.evidence.binning import Binned
from ukge.evidence.cells import Cells
from ukge.evidence.false_links import FalseLinks, moved, odds_of
from ukge.evidence.settings import Error, EvidenceSettings
from ukge.evidence.shap import contributions, expected_value
from ukge.evidence.trees import Floats, Loss, Matrix, Trees, grow, side_by_side
from ukge.evidence.values import CellTrees, cell_fits

if TYPE_CHECKING:
    from ukge.evidence.evidence import Evidence
    from ukge.graph.given import Facts

RISE = 1e-4
"""How far the line rises beyond its outermost points: enough for an order, too little to be seen."""

FAR = 10.0
"""How far beyond the predictions that it was fitted to the line goes on rising, in spans of these."""

CELL_TREES, CELL_LEAVES = 0.3, 15
"""Trees for each question about cells, for each of the settings', and their leaves: what known facts say is at hand."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """Predictions `x` and what they turned out to mean, `y`; between the points the line is straight.

    It is fitted by centred isotonic regression. Isotonic regression alone is a step function: all facts of a step would
    get the same confidence, and a list of the surest ones would begin with dozens of ties. So a step counts as one
    point, at the mean of its predictions (Oron and Flournoy, 2017); beyond the outermost points the line goes on
    rising, ever so little.
    """

    x: Floats
    y: Floats

    @classmethod
    def fit(cls, predicted: Floats, observed: Floats, weight: Floats | None = None) -> Calibration:
        """Fit the rising line that is nearest to the rising step function of least squared error."""
        from sklearn.isotonic import IsotonicRegression  # noqa: PLC0415 — loading it takes a second

        weights = np.ones(len(predicted)) if weight is None else weight
        steps = IsotonicRegression(out_of_bounds="clip").fit(predicted, observed, sample_weight=weights)
        height, step = np.unique(steps.predict(predicted), return_inverse=True)
        total = np.bincount(step, weights)
        centre = np.bincount(step, weights * predicted) / np.maximum(total, np.finfo(float).tiny)
        low, high = float(np.min(predicted)), float(np.max(predicted))
        beyond = FAR * max(high - low, 1.0)
        inside = np.clip(height, RISE, 1.0 - RISE)
        ends = (low - beyond, inside[0] - RISE / 2), (high + beyond, inside[-1] + RISE / 2)
        x, y = (np.array([ends[0][at], *points, ends[1][at]]) for at, points in enumerate((centre, inside)))
        kept = np.append(True, np.diff(x) > 0)
        return cls(x[kept], y[kept])

    def __call__(self, predicted: Floats) -> Floats:
        """Return what predictions mean."""
        return np.interp(predicted, self.x, self.y)


@dataclass(frozen=True, eq=False)
class Examples:
    """What trees learn from: evidence about validation facts with their confidences, and about negative links."""

    facts: Matrix
    confidence: Floats
    negatives: Matrix

    @property
    def columns(self) -> Matrix:
        """The evidence about all of them, the facts first."""
        return np.concatenate([self.facts, self.negatives])

    @property
    def weight(self) -> Floats:
        """Weights under which the negative links count as much as the facts, however many there are."""
        n, m = len(self.facts), len(self.negatives)
        return np.concatenate([np.ones(n), np.full(m, n / max(m, 1))])

    def with_negatives(self, facts: npt.ArrayLike) -> Floats:
        """Return a value of each: those given of the facts, and 0 of the negative links."""
        return np.concatenate([facts, np.zeros(len(self.negatives))])

    def pick(self, facts: npt.NDArray[np.intp], negatives: npt.NDArray[np.intp]) -> Examples:
        """Return some of the examples."""
        return Examples(self.facts[facts], self.confidence[facts], self.negatives[negatives])


@dataclass(frozen=True, eq=False)
class Reading:
    """Predictions of facts that the trees did not see: of the examples' facts, then of their negative links."""

    holds: Floats
    level: Floats


@dataclass(frozen=True, eq=False)
class Contributions:
    """`base` + the sum of a row of `parts` is the predicted confidence of a fact; a column of `parts` per name."""

    names: tuple[str, ...]
    base: float
    parts: Floats


@dataclass(frozen=True, eq=False)
class ConfidenceRegressor:
    """P(holds) and the confidence if so, joined as the error asks, and calibrated.

    With the squared error the prediction is their product, the mean. With the absolute error it is the median: 0 where
    the fact more likely does not hold. The level may be told by trees for cells of confidence then. `if_held`
    calibrates the confidence of facts that are taken to hold, `overall` that of any.
    """

    error: Error
    holds: Trees
    level: Trees | CellTrees
    chance: Calibration
    if_held: Calibration
    overall: Calibration
    false: FalseLinks | None = None
    """tells the kinds of negative links apart; None where trees saw one kind alone"""
    asked: Asked = NEUTRAL
    """what links are asked about; trees and calibration saw as many facts as negative links of the mixture"""

    def predict(self, columns: Matrix, *, assume_holds: bool = False) -> Floats:
        """Return the confidence of each fact, or, with `assume_holds`, its confidence given that it holds."""
        level = np.clip(self.level.predict(columns), 0.0, 1.0)
        if assume_holds:
            return self.if_held(level)
        return self.overall(joined(self.error, self._certain(self.chance(self.holds.predict(columns)), columns), level))

    def _certain(self, chance: Floats, columns: Matrix) -> Floats:
        """Return the chance to hold among the links that are asked about, which may be others than the trees saw."""
        if self.asked == NEUTRAL:
            return chance
        return moved(chance, self.asked, self.false.chances(columns) if self.false and self.asked.times else None)

    def likeliest(
        self, columns: Matrix, prior: float | None = None, negatives: Mapping[str, float] | None = None
    ) -> Asked:
        """Return what many links are that are asked about together; see `FalseLinks.likeliest`."""
        odds = odds_of(self.chance(self.holds.predict(columns)))
        return self.false_links().likeliest(odds, columns, prior, negatives)

    def false_links(self) -> FalseLinks:
        """Return what tells the kinds of negative links apart; an error where there is one kind, or old evidence."""
        if self.false is None:
            raise RunError(
                "this evidence knows one kind of false links, or was fitted before kinds were told apart",
                hint="Fit it again: ukge evidence fit RUN",
            )
        return self.false

    def score(self, columns: Matrix) -> Floats:
        """Return what orders facts like the confidence does, but without the ties that calibration makes."""
        return _sigmoid(self.holds.predict(columns)) * np.clip(self.level.predict(columns), 0.0, 1.0)

    def contributions(self, columns: Matrix, names: tuple[str, ...], *, assume_holds: bool = False) -> Contributions:
        """Return how much each column moved each prediction, exactly.

        The trees' own values are Shapley values. Where predictions are multiplied, clipped and calibrated, a change is
        handed on in proportion, half of a product's change along each way to it.
        """
        level = _level(self.level, columns).through(lambda raw: np.clip(raw, 0.0, 1.0))
        if assume_holds:
            found = level.through(self.if_held)
        else:
            chance = _Quantity.of(self.holds, columns).through(self.chance)
            if self.asked != NEUTRAL:  # without evidence, a false link is one of the kinds that are asked about
                plain = Asked(self.asked.prior)
                base = float(moved(np.array([chance.base]), plain, None)[0])
                chance = chance.moved(self._certain(chance.now, columns), base, chance.now - chance.base)
            if self.error == "absolute":
                chance = chance.through(lambda p: (p > 0.5).astype(np.float64))
            found = chance.times(level).through(self.overall)
        return Contributions(names, found.base, found.parts)


class _Quantity:
    """Numbers with the columns' parts in them: now − base = the sum of the parts, for every row."""

    def __init__(self, now: Floats, base: float, parts: Floats) -> None:
        self.now, self.base, self.parts = now, base, parts

    @classmethod
    def of(cls, trees: Trees, columns: Matrix) -> _Quantity:
        return cls(trees.predict(columns), expected_value(trees), contributions(trees, columns))

    def through(self, change: Callable[[Floats], Floats]) -> _Quantity:
        base = float(change(np.array([self.base]))[0])
        return self.moved(change(self.now), base, self.now - self.base)

    def times(self, other: _Quantity) -> _Quantity:
        self.parts = self.parts * (other.now + other.base)[:, None] / 2
        self.parts += other.parts * (self.now + self.base)[:, None] / 2
        self.now, self.base = self.now * other.now, self.base * other.base
        return self

    def moved(self, now: Floats, base: float, before: Floats) -> _Quantity:
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.where(np.abs(before) > 1e-12, (now - base) / before, 0.0)
        parts = self.parts * rate[:, None]
        # Parts that cancel out cannot be scaled; what rounding leaves goes to the columns in equal shares.
        parts += ((now - base - parts.sum(axis=1)) / parts.shape[1])[:, None]
        self.now, self.base, self.parts = now, base, parts
        return self


def _level(level: Trees | CellTrees, columns: Matrix) -> _Quantity:
    """Return the confidence if a fact holds, with the columns' parts in it.

    The questions about cells are answered one after the other, from what is said without evidence to what is said with
    it. What each answer does to the mean is handed on to the columns, and then the mean is to the median.
    """
    if isinstance(level, Trees):
        return _Quantity.of(level, columns)
    cells, answers = level.cells, [_Quantity.of(each, columns) for each in level.trees]
    odds = np.tile([each.base for each in answers], (len(columns), 1))
    unasked = cells.chances(odds[:1] if len(odds) else np.array([[each.base for each in answers]]))
    base = float(cells.mean(unasked)[0])
    mean, parts = np.full(len(columns), base), np.zeros(columns.shape)
    for number, each in enumerate(answers):
        odds[:, number] = each.now
        after = cells.mean(cells.chances(odds))
        moved = after - mean
        gone = each.now - each.base
        rate = np.divide(moved, gone, out=np.zeros_like(gone), where=np.abs(gone) > 1e-12)
        parts += each.parts * rate[:, None]
        mean = after
    found = _Quantity(mean, base, parts)
    return found.moved(cells.median(cells.chances(odds)), float(cells.median(unasked)[0]), mean - base)


def joined(error: Error, chance: Floats, level: Floats) -> Floats:
    """Return the mean (or the median) of a confidence that is 0 unless the fact holds."""
    return chance * level if error == "squared" else np.where(chance > 0.5, level, 0.0)


def fit_regressor(
    examples: Examples,
    rising: npt.NDArray[np.int8],
    settings: EvidenceSettings,
    on_share: Callable[[float], None] = lambda _: None,
    cells: Cells | None = None,
) -> tuple[ConfidenceRegressor, Reading]:
    """Fit trees to all examples, calibrated on folds that trees fitted to the other folds predicted.

    Also returns these predictions, which bounds are made of. With cells, the confidence of a fact that holds is told by
    trees for them, if those err less on the folds.
    """
    n, m = len(examples.facts), len(examples.negatives)
    rng = np.random.default_rng(settings.seed)
    fold, negative_fold = rng.permutation(n) % settings.folds, rng.permutation(m) % settings.folds
    every, binned = np.arange(n + m), BinnedExamples.of(examples)
    parts = [np.concatenate([fold != number, negative_fold != number]) for number in range(settings.folds)]
    jobs = [binned.fits(np.flatnonzero(seen), rising, settings, cells) for seen in (*parts, every >= 0)]
    grown = side_by_side([job for each in jobs for job in each], on_share)
    heads = [_heads(grown[at : at + len(jobs[0])], cells) for at in range(0, len(grown), len(jobs[0]))]
    holds, levels = np.empty(n + m), [np.empty(n + m) for _ in heads[0][1]]
    for seen, (does_hold, how_sure) in zip(parts, heads[:-1], strict=True):
        asked = examples.columns[~seen]
        holds[~seen] = does_hold.predict(asked)
        for level, each in zip(levels, how_sure, strict=True):
            level[~seen] = np.clip(each.predict(asked), 0.0, 1.0)
    best = int(np.argmin([np.abs(each[:n] - examples.confidence).sum() for each in levels]))
    level = levels[best]
    weight, confidence = examples.weight, examples.with_negatives(examples.confidence)
    chance = Calibration.fit(holds, examples.with_negatives(np.ones(n)), weight)
    probable = joined(settings.error, chance(holds), level)
    if settings.error == "squared":
        if_held = Calibration.fit(level[:n], examples.confidence)
        overall = Calibration.fit(probable, confidence, weight)
    else:  # isotonic regression gives means, which would undo the medians
        if_held = overall = Calibration(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    does_hold, how_sure = heads[-1]
    head = ConfidenceRegressor(settings.error, does_hold, how_sure[best], chance, if_held, overall)
    return head, Reading(chance(holds), level)


def _heads(grown: Sequence[Trees], cells: Cells | None) -> tuple[Trees, list[Trees | CellTrees]]:
    """Return the trees of one fit: whether a fact holds, and what may say how confident it is then."""
    holds, level, *of_cells = grown
    return holds, [level] if cells is None else [level, CellTrees(cells, tuple(of_cells))]


@dataclass(frozen=True, eq=False)
class BinnedExamples:
    """Examples in bins, which are made once for the trees of all folds; facts alone have bins of their own."""

    examples: Examples
    every: Binned
    facts: Binned

    @classmethod
    def of(cls, examples: Examples) -> BinnedExamples:
        """Put examples into bins."""
        return cls(examples, Binned.of(examples.columns), Binned.of(examples.facts))

    def fits(
        self,
        seen: npt.NDArray[np.intp],
        rising: npt.NDArray[np.int8],
        settings: EvidenceSettings,
        cells: Cells | None,
    ) -> list[Callable[[], Trees]]:
        """Return fits to some of the examples: whether a fact holds, how confident it is then, and in which cell."""
        n = len(self.examples.facts)
        facts, negatives = seen[seen < n], seen[seen >= n] - n
        some = self.examples.pick(facts, negatives)
        truth = some.with_negatives(np.ones(len(facts)))
        loss: Loss = "squared_error" if settings.error == "squared" else "absolute_error"
        own = self.facts.pick(facts)
        found: list[Callable[[], Trees]] = [
            lambda: grow("log_loss", self.every.pick(seen), truth, settings, weight=some.weight, rising=rising),
            lambda: grow(loss, own, some.confidence, settings, rising=rising),
        ]
        if cells is None:
            return found
        iterations = max(1, round(CELL_TREES * settings.iterations))
        trees = replace(settings, iterations=iterations, leaves=min(settings.leaves, CELL_LEAVES))
        return found + cell_fits(cells, own, some.confidence, trees, rising)


def _sigmoid(raw: Floats) -> Floats:
    return 1.0 / (1.0 + np.exp(-raw))


@dataclass(frozen=True, eq=False)
class StrongClassifier:
    """Says how likely facts have a confidence above `tau`, links that may be false among them.

    The mean confidence is a poor guide to that. A fact that is certain if it holds, and does so with a chance of 0.8,
    has the mean of one that is known to have 0.8; where confidences are a few round numbers, the mean lies between.
    """

    evidence: Evidence
    trees: Trees
    tau: float

    def chance(self, facts: Facts, *, count_itself: bool = False) -> Floats:
        """Return the chance of each fact to be a strong one; `count_itself` as in `Evidence.predict`."""
        return self.chance_of(self.evidence.matrix(*self.evidence.ids(facts), count_itself=count_itself))

    def chance_of(self, columns: Matrix) -> Floats:
        """Return the chance of facts whose evidence is given."""
        return _sigmoid(self.trees.predict(columns))


def fit_strong_classifier(evidence: Evidence, examples: Examples, tau: float) -> StrongClassifier:
    """Fit trees to strong validation facts against the weak ones and negative links."""
    if not 0.0 <= tau < 1.0:
        raise ConfigError(f"τ is {tau:g}", hint="Give a confidence of at least 0 and below 1.")
    strong = examples.confidence > tau
    if not strong.any() or (strong.all() and not len(examples.negatives)):
        raise DataError(f"no validation fact has a confidence above {tau:g}", hint="Give a lower τ.")
    truth = examples.with_negatives(strong)
    trees = grow("log_loss", examples.columns, truth, evidence.settings, weight=examples.weight)
    return StrongClassifier(evidence, trees, tau)
