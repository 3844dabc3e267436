"""Confidences by boosted trees: does the fact hold at all, and how confident is it if so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ukge.evidence.boosting import Loss, grow
from ukge.evidence.calibration import Calibration
from ukge.evidence.settings import Error, EvidenceSettings
from ukge.evidence.shap import contributions, expected_value
from ukge.evidence.trees import Floats, Matrix, Trees


@dataclass(frozen=True, eq=False)
class Examples:
    """What trees learn from: evidence about validation facts with their confidences, and about negative links."""

    facts: Matrix
    confidence: Floats
    negatives: Matrix

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
    """`base` + the sum of a row of `parts` is the predicted confidence of a fact; a column of `parts` per feature."""

    base: float
    parts: Floats


@dataclass(frozen=True, eq=False)
class ConfidenceRegressor:
    """P(holds) and the confidence if so, joined as the error asks, and calibrated.

    With the squared error the prediction is their product, the mean. With the absolute error it is the median: 0 where
    the fact more likely does not hold. `if_held` calibrates the confidence of facts that are taken to hold, `overall`
    that of any.
    """

    error: Error
    holds: Trees
    level: Trees
    chance: Calibration
    if_held: Calibration
    overall: Calibration

    def predict(self, columns: Matrix, *, assume_holds: bool = False) -> Floats:
        """Return the confidence of each fact, or, with `assume_holds`, its confidence given that it holds."""
        level = np.clip(self.level.predict(columns), 0.0, 1.0)
        if assume_holds:
            return self.if_held(level)
        return self.overall(joined(self.error, self.chance(self.holds.predict(columns)), level))

    def score(self, columns: Matrix) -> Floats:
        """Return what orders facts like the confidence does, but without the ties that calibration makes."""
        return _sigmoid(self.holds.predict(columns)) * np.clip(self.level.predict(columns), 0.0, 1.0)

    def contributions(self, columns: Matrix, *, assume_holds: bool = False) -> Contributions:
        """Return how much each column moved each prediction, exactly.

        The trees' own values are Shapley values. Where predictions are multiplied, clipped and calibrated, a change is
        handed on in proportion, half of a product's change along each way to it.
        """
        level = _Quantity(self.level, columns).through(lambda raw: np.clip(raw, 0.0, 1.0))
        if assume_holds:
            return level.through(self.if_held).result()
        chance = _Quantity(self.holds, columns).through(self.chance)
        if self.error == "squared":
            return chance.times(level).through(self.overall).result()
        return chance.through(lambda p: (p > 0.5).astype(np.float64)).times(level).through(self.overall).result()

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all arrays by name."""
        return {
            f"{name}.{key}": array
            for name in ("holds", "level", "chance", "if_held", "overall")
            for key, array in getattr(self, name).arrays().items()
        }

    @classmethod
    def from_arrays(cls, error: Error, arrays: Mapping[str, npt.NDArray[Any]]) -> ConfidenceRegressor:
        """Make a regressor of what `arrays` returned."""

        def part(name: str) -> dict[str, npt.NDArray[Any]]:
            return {key.removeprefix(f"{name}."): each for key, each in arrays.items() if key.startswith(f"{name}.")}

        trees = [Trees.from_arrays(part(name)) for name in ("holds", "level")]
        lines = [Calibration.from_arrays(part(name)) for name in ("chance", "if_held", "overall")]
        return cls(error, trees[0], trees[1], *lines)


class _Quantity:
    """Numbers with the columns' parts in them: now − base = the sum of the parts, for every row."""

    def __init__(self, trees: Trees, columns: Matrix) -> None:
        self.now = trees.predict(columns)
        self.base = expected_value(trees)
        self.parts = contributions(trees, columns)

    def through(self, change: Callable[[Floats], Floats]) -> _Quantity:
        base = float(change(np.array([self.base]))[0])
        return self._moved(change(self.now), base, self.now - self.base)

    def times(self, other: _Quantity) -> _Quantity:
        self.parts = self.parts * (other.now + other.base)[:, None] / 2
        self.parts += other.parts * (self.now + self.base)[:, None] / 2
        self.now, self.base = self.now * other.now, self.base * other.base
        return self

    def result(self) -> Contributions:
        return Contributions(self.base, self.parts)

    def _moved(self, now: Floats, base: float, before: Floats) -> _Quantity:
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = np.where(np.abs(before) > 1e-12, (now - base) / before, 0.0)
        parts = self.parts * rate[:, None]
        # Parts that cancel out cannot be scaled; what rounding leaves goes to the columns in equal shares.
        parts += ((now - base - parts.sum(axis=1)) / parts.shape[1])[:, None]
        self.now, self.base, self.parts = now, base, parts
        return self


def joined(error: Error, chance: Floats, level: Floats) -> Floats:
    """Return the mean (or the median) of a confidence that is 0 unless the fact holds."""
    return chance * level if error == "squared" else np.where(chance > 0.5, level, 0.0)


def fit_regressor(
    examples: Examples,
    rising: npt.NDArray[np.int8],
    settings: EvidenceSettings,
    on_share: Callable[[float], None] = lambda _: None,
) -> tuple[ConfidenceRegressor, Reading]:
    """Fit trees to all examples, calibrated on folds that trees fitted to the other folds predicted.

    Also returns these predictions, which bounds are made of.
    """
    n, m = len(examples.facts), len(examples.negatives)
    rng = np.random.default_rng(settings.seed)
    fold, negative_fold = rng.permutation(n) % settings.folds, rng.permutation(m) % settings.folds
    holds, level = np.empty(n + m), np.empty(n + m)
    for number in range(settings.folds):
        seen = examples.pick(np.flatnonzero(fold != number), np.flatnonzero(negative_fold != number))
        rows = np.concatenate([fold == number, negative_fold == number])
        asked = np.concatenate([examples.facts[fold == number], examples.negatives[negative_fold == number]])
        does_hold, how_sure = _trees(seen, rising, settings)
        holds[rows] = does_hold.predict(asked)
        level[rows] = np.clip(how_sure.predict(asked), 0.0, 1.0)
        on_share((number + 1) / (settings.folds + 1))
    truth = np.concatenate([np.ones(n), np.zeros(m)])
    weight = even_weights(n, m)
    chance = Calibration.fit(holds, truth, weight)
    confidence = np.concatenate([examples.confidence, np.zeros(m)])
    probable = joined(settings.error, chance(holds), level)
    if settings.error == "squared":
        if_held = Calibration.fit(level[:n], examples.confidence)
        overall = Calibration.fit(probable, confidence, weight)
    else:  # isotonic regression gives means, which would undo the medians
        if_held = overall = Calibration(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    head = ConfidenceRegressor(settings.error, *_trees(examples, rising, settings), chance, if_held, overall)
    return head, Reading(chance(holds), level)


def even_weights(facts: int, negatives: int) -> Floats:
    """Return weights under which the negative links count as much as the facts, however many there are."""
    return np.concatenate([np.ones(facts), np.full(negatives, facts / max(negatives, 1))])


def _trees(examples: Examples, rising: npt.NDArray[np.int8], settings: EvidenceSettings) -> tuple[Trees, Trees]:
    n, m = len(examples.facts), len(examples.negatives)
    both = np.concatenate([examples.facts, examples.negatives])
    truth = np.concatenate([np.ones(n), np.zeros(m)])
    holds = grow("log_loss", both, truth, settings, weight=even_weights(n, m), rising=rising)
    loss: Loss = "squared_error" if settings.error == "squared" else "absolute_error"
    return holds, grow(loss, examples.facts, examples.confidence, settings, rising=rising)


def _sigmoid(raw: Floats) -> Floats:
    return 1.0 / (1.0 + np.exp(-raw))
