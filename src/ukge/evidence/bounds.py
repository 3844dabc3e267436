"""Bounds around predicted confidences that hold with a chosen coverage: conformal prediction.

Quantiles and intervals are those of facts that the trees did not see, with a like prediction and a like expected error
(`ukge.evaluation.distribution`), so sure predictions get narrow intervals. The Mondrian kinds keep the coverage within
each confidence band, or within each relation, not only on average.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ukge.errors import ConfigError, UkgeWarning
from ukge.evaluation.distribution import NEUTRAL, Asked, Outcomes
from ukge.evidence.binning import Binned
from ukge.evidence.settings import EvidenceSettings
from ukge.evidence.trees import Floats, Matrix, Trees, grow, side_by_side

By = Literal["band", "relation", "all"]
KINDS: tuple[By, ...] = ("band", "relation", "all")

FEWEST = 200
"""Calibration facts that a relation needs for bounds of its own; smaller ones share theirs."""

EASE = 0.01
"""Least expected error, so that facts which look certain keep some width."""

UNTOLD: npt.NDArray[np.int8] = np.zeros(0, dtype=np.int8)
"""The kinds of negative links where they are not told apart."""

TREES = 100
"""Trees that tell how large a fact's error will be."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """Errors of facts the trees did not see, with their expected errors, bands and relations.

    `difficulty` predicts expected errors: trees per fold, each fitted to the facts of the other folds. What they say of
    the facts of their own fold is what errors are measured in, and any other fact is given to one of them by lot. Trees
    fitted to all facts, or the mean of these, would be surer than those that the calibration rests on: where most facts
    have one and the same confidence, 90 % became 96 %. An interval is for one reading: that of any link, or
    that of facts taken to hold.
    """

    error: Floats
    expected: Floats
    predicted: Floats
    relation: npt.NDArray[np.int32]
    difficulty: tuple[Trees, ...]
    kind: npt.NDArray[np.int8]
    """the kind of each negative link, `FACT` of facts; nothing where kinds were not told apart"""

    @classmethod
    def fit(
        cls,
        columns: Matrix,
        predicted: Floats,
        observed: Floats,
        relation: npt.NDArray[np.int32],
        settings: EvidenceSettings,
        kind: npt.NDArray[np.int8] = UNTOLD,
    ) -> Bounds:
        """Learn how large errors are, and keep them; `predicted` must be of facts that the trees did not see."""
        error = observed - predicted
        smaller = replace(settings, iterations=min(TREES, settings.iterations), leaves=min(15, settings.leaves))
        binned = Binned.of(columns)
        fold = np.random.default_rng(settings.seed + 1).permutation(len(error)) % settings.folds

        def learn(number: int) -> Trees:
            rows = np.flatnonzero(fold != number)
            return grow("squared_error", binned.pick(rows), np.abs(error[rows]), smaller)

        difficulty = tuple(side_by_side([partial(learn, number) for number in range(settings.folds)]))
        return cls(error, _expected(difficulty, columns, fold), predicted, relation, difficulty, kind)

    def interval(
        self,
        columns: Matrix,
        predicted: Floats,
        relation: npt.NDArray[Any],
        coverage: float,
        by: By,
        among: Asked = NEUTRAL,
    ) -> tuple[Floats, Floats]:
        """Return the lower and the upper bound of each fact's confidence; `predicted` and `among` as for quantiles."""
        check_bounds(coverage, by)
        own, asked = self._categories(self.predicted, self.relation, by), self._categories(predicted, relation, by)
        reach = self.outcomes.reach(own, asked, coverage, among)
        if np.isinf(reach).any():
            needed = math.ceil(1.0 / (1.0 - coverage))
            warnings.warn(
                f"{int(np.isinf(reach).sum()):,} of {len(reach):,} intervals are from 0 to 1: for a coverage of "
                f"{coverage:g} the errors of about {needed:,} validation facts like theirs must be known",
                UkgeWarning,
                stacklevel=2,
            )
        return self.outcomes.between(predicted, self._difficulty_of(columns), reach, among)

    def quantiles(
        self, columns: Matrix, predicted: Floats, levels: Sequence[float] | Floats, among: Asked = NEUTRAL
    ) -> Floats:
        """Return the quantiles of each fact's confidence, a column per level.

        They are those of facts that the trees did not see, with a like prediction and a like expected error. `among`
        are the links that are asked about; `predicted` is what is said of such as the trees saw.
        """
        return self.outcomes.quantiles(predicted, self._difficulty_of(columns), levels, among)

    @cached_property
    def outcomes(self) -> Outcomes:
        """What facts turned out to be, by prediction and expected error."""
        observed = np.clip(self.predicted + self.error, 0.0, 1.0)
        return Outcomes.of(self.predicted, observed, self.expected, self.kind if len(self.kind) else None)

    def _difficulty_of(self, columns: Matrix) -> Floats:
        return _expected(self.difficulty, columns, _lots(columns, len(self.difficulty)))

    def _categories(self, predicted: Floats, relation: npt.NDArray[Any], by: By) -> npt.NDArray[np.int64]:
        if by == "all":
            return np.zeros(len(predicted), dtype=np.int64)
        if by == "band":
            return self.outcomes.bands(predicted)
        count = np.bincount(self.relation, minlength=int(relation.max(initial=0)) + 1)
        return np.where(count[relation] >= FEWEST, relation.astype(np.int64), -1)


def _expected(difficulty: tuple[Trees, ...], columns: Matrix, fold: npt.NDArray[np.int64]) -> Floats:
    """Return the expected error of each fact, by the trees of its fold."""
    found = np.empty(len(columns))
    for number, trees in enumerate(difficulty):
        rows = fold == number
        if rows.any():  # else the trees of this fold need not even be read
            found[rows] = trees.predict(columns[rows])
    return np.maximum(found, 0.0) + EASE


def _lots(columns: Matrix, n: int) -> npt.NDArray[np.int64]:
    """Draw a number below n for each fact; facts with the same evidence draw the same one, on every machine."""
    known = np.where(np.isnan(columns), np.float32(-1.5), columns).astype(np.float32) + np.float32(0.0)  # −0 is 0
    factors = np.random.Generator(np.random.Philox(0)).integers(1, 1 << 63, known.shape[1], dtype=np.uint64)
    mixed = (known.view(np.uint32).astype(np.uint64) * factors).sum(axis=1, dtype=np.uint64)
    lots: npt.NDArray[np.int64] = ((mixed >> np.uint64(33)) % np.uint64(n)).astype(np.int64)
    return lots


def check_bounds(coverage: float, by: str) -> None:
    """Refuse a coverage that no interval has, and an unknown kind of interval."""
    if not 0.0 < coverage < 1.0:
        raise ConfigError(f"a coverage is a number between 0 and 1, not {coverage:g}", hint="0.9 is a good value.")
    if by not in KINDS:
        raise ConfigError(f"unknown kind of interval {by!r}", hint=f"Known: {', '.join(KINDS)}.")
