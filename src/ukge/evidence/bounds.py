"""Bounds around predicted confidences that hold with a chosen coverage: conformal prediction, by crepes.

A conformal interval is as wide as the errors on facts that the head did not see. Errors are measured in units of a
fact's expected error, so sure predictions get narrow intervals. The Mondrian kinds keep the coverage within each
confidence band, or within each relation, not only on average.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ukge.errors import ConfigError
from ukge.evidence.head import boosted, known_columns
from ukge.evidence.settings import EvidenceSettings
from ukge.evidence.trees import Floats, Matrix, Trees

By = Literal["band", "relation", "all"]
KINDS: tuple[By, ...] = ("band", "relation", "all")

BANDS = 5
"""Confidence bands, each with as many calibration facts."""

FEWEST = 200
"""Calibration facts that a relation needs for bounds of its own; smaller relations share theirs."""

EASE = 0.01
"""Least expected error, so that facts which look certain keep some width."""

TREES = 100
"""Trees that tell how large a fact's error will be."""


@dataclass(frozen=True, eq=False)
class Bounds:
    """Errors of facts the head did not see, with their expected errors, bands and relations.

    `difficulty` predicts the expected error of any fact. An interval is for one reading of the head: that of any
    link, or that of facts taken to hold.
    """

    error: Floats
    expected: Floats
    predicted: Floats
    relation: npt.NDArray[np.int32]
    difficulty: Trees

    @classmethod
    def fit(
        cls,
        columns: Matrix,
        predicted: Floats,
        observed: Floats,
        relation: npt.NDArray[np.int32],
        settings: EvidenceSettings,
    ) -> Bounds:
        """Learn how large errors are, and keep them; `predicted` must be of facts that the head did not see."""
        error = observed - predicted
        smaller = replace(settings, iterations=min(TREES, settings.iterations), leaves=min(15, settings.leaves))

        def learn(rows: npt.NDArray[np.bool_]) -> Trees:
            model = boosted("Regressor", "squared_error", None, smaller)
            return Trees.of(model.fit(known_columns(columns[rows]), np.abs(error[rows])))

        fold = np.random.default_rng(settings.seed + 1).permutation(len(error)) % settings.folds
        expected = np.empty(len(error))
        for number in range(settings.folds):
            expected[fold == number] = learn(fold != number).predict(columns[fold == number])
        every = learn(np.ones(len(error), dtype=np.bool_))
        return cls(error, np.maximum(expected, 0.0) + EASE, predicted, relation, every)

    def interval(
        self, columns: Matrix, predicted: Floats, relation: npt.NDArray[Any], coverage: float, by: By
    ) -> tuple[Floats, Floats]:
        """Return the lower and the upper bound of each fact's confidence."""
        check_bounds(coverage, by)
        regressor = conformal()
        expected = np.maximum(self.difficulty.predict(columns), 0.0) + EASE
        own = None if by == "all" else self._categories(self.predicted, self.relation, by)
        asked = None if by == "all" else self._categories(predicted, relation, by)
        regressor.fit(self.error, sigmas=self.expected, bins=own)
        found = regressor.predict_int(predicted, sigmas=expected, bins=asked, confidence=coverage, y_min=0.0, y_max=1.0)
        return np.asarray(found[:, 0], np.float64), np.asarray(found[:, 1], np.float64)

    def bands(self, predicted: Floats) -> npt.NDArray[np.int64]:
        """Return the confidence band of each prediction."""
        edges = np.unique(np.quantile(self.predicted, np.linspace(0.0, 1.0, BANDS + 1)[1:-1]))
        return np.searchsorted(edges, predicted, side="right")

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all arrays by name."""
        own = {name: getattr(self, name) for name in ("error", "expected", "predicted", "relation")}
        return {**own, **{f"difficulty.{name}": each for name, each in self.difficulty.arrays().items()}}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Bounds:
        """Make bounds of what `arrays` returned."""
        prefix = "difficulty."
        trees = {name.removeprefix(prefix): each for name, each in arrays.items() if name.startswith(prefix)}
        own = {name: arrays[name] for name in ("error", "expected", "predicted", "relation")}
        return cls(**own, difficulty=Trees.from_arrays(trees))

    def _categories(self, predicted: Floats, relation: npt.NDArray[Any], by: By) -> npt.NDArray[np.int64]:
        if by == "band":
            return self.bands(predicted)
        count = np.bincount(self.relation, minlength=int(relation.max(initial=0)) + 1)
        return np.where(count[relation] >= FEWEST, relation.astype(np.int64), -1)


def check_bounds(coverage: float, by: str) -> None:
    """Refuse a coverage that no interval has, and an unknown kind of interval."""
    if not 0.0 < coverage < 1.0:
        raise ConfigError(f"a coverage is a number between 0 and 1, not {coverage:g}", hint="0.9 is a good value.")
    if by not in KINDS:
        raise ConfigError(f"unknown kind of interval {by!r}", hint=f"Known: {', '.join(KINDS)}.")


def conformal() -> Any:
    """Return a conformal regressor, or say how to install it."""
    try:
        from crepes import ConformalRegressor  # noqa: PLC0415 — an extra
    except ImportError:
        raise ConfigError("intervals need crepes, which is not there", hint="pip install 'ukge[evidence]'") from None
    return ConformalRegressor()
