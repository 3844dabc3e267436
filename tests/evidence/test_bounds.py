"""Conformal bounds by themselves: the coverage asked for, in every band, whatever the confidences look like."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest
from crepes import ConformalRegressor

from ukge.errors import UkgeWarning
from ukge.evaluation.distribution import holding
from ukge.evidence.bounds import Bounds
from ukge.evidence.settings import EvidenceSettings


def test_mondrian_bounds_hold_within_each_band() -> None:
    rng = np.random.default_rng(0)
    n = 8000
    columns = np.column_stack([np.zeros(n), rng.random(n)]).astype(np.float32)
    predicted = columns[:, 1].astype(np.float64)
    observed = np.clip(predicted + rng.normal(size=n) * np.where(predicted > 0.5, 0.3, 0.02), 0, 1)
    half, rest = slice(0, n // 2), slice(n // 2, n)
    relation = np.zeros(n, dtype=np.int32)
    chosen = EvidenceSettings(iterations=2, folds=2)
    bounds = Bounds.fit(columns[half], predicted[half], observed[half], relation[half], chosen)
    low, high = bounds.interval(columns[rest], predicted[rest], relation[rest], 0.9, "band")
    held = (low <= observed[rest]) & (observed[rest] <= high)
    bands = bounds.outcomes.bands(predicted[rest])
    for band in range(5):
        assert held[bands == band].mean() == pytest.approx(0.9, abs=0.03)


def test_bounds_hold_where_nearly_all_facts_have_one_confidence() -> None:
    # 96 of 100 facts have 1 and all are predicted 0.998
    rng = np.random.default_rng(5)
    n = 24_000
    columns = np.column_stack([np.zeros(n), rng.normal(size=(n, 12))]).astype(np.float32)
    columns[rng.random(columns.shape) < 0.1] = np.nan
    observed = np.where(rng.random(n) < 0.96, 1.0, rng.random(n))
    predicted, relation = np.full(n, 0.998), np.zeros(n, dtype=np.int32)
    half, rest = slice(0, n // 3), slice(n // 3, n)
    chosen = EvidenceSettings(iterations=40, folds=5)
    bounds = Bounds.fit(columns[half], predicted[half], observed[half], relation[half], chosen)
    low, high = bounds.interval(columns[rest], predicted[rest], relation[rest], 0.9, "band")
    held = (low <= observed[rest]) & (observed[rest] <= high)
    # Bounds that hold 1 hold 96 %: no narrower ones hold 90 %, and wider ones need not be.
    assert held.mean() == pytest.approx(0.96, abs=0.01)
    assert (high - low).max() == 0.0


def test_bands_are_of_a_size_even_where_many_facts_have_one_prediction() -> None:
    rng = np.random.default_rng(6)
    predicted = np.sort(np.concatenate([rng.random(50) * 0.1, np.full(3_000, 0.4), 0.5 + rng.random(6_950) / 2]))
    columns = np.column_stack([np.zeros(10_000), predicted]).astype(np.float32)
    bounds = Bounds.fit(columns, predicted, predicted, np.zeros(10_000, np.int32), EvidenceSettings(iterations=1))
    bands = bounds.outcomes.bands(predicted)
    assert (np.diff(bands) >= 0).all()
    assert np.bincount(bands).min() >= 150
    assert len(np.unique(bands[predicted == 0.4])) == 1
    even = replace(bounds, predicted=rng.random(10_000))
    np.testing.assert_array_equal(np.bincount(even.outcomes.bands(even.predicted)), 2_000)


@pytest.mark.parametrize("coverage", [0.01, 0.5, 0.8, 0.9, 0.95, 0.99, 0.9999])
@pytest.mark.parametrize("n", [1, 2, 9, 10, 99, 100, 1000])
def test_quantiles_are_those_of_another_hand(n: int, coverage: float) -> None:
    rng = np.random.default_rng(n)
    error, expected = rng.normal(size=n), rng.random(n) + 0.01
    error[rng.random(n) < 0.2] = 0.0
    predicted, difficulty = rng.random(50), rng.random(50) + 0.01
    for bins in (1, 4):
        own, asked = rng.integers(bins, size=n), rng.integers(bins, size=50)
        asked = asked[np.isin(asked, own)]
        predicted, difficulty = predicted[: len(asked)], difficulty[: len(asked)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it warns where bounds are infinite
            theirs = ConformalRegressor().fit(error, sigmas=expected, bins=own if bins > 1 else None)
            low, high = theirs.predict_int(
                predicted, sigmas=difficulty, bins=asked if bins > 1 else None, confidence=coverage - 1e-9
            ).T
        reach = holding(np.abs(error) / expected, np.ones(n), own, asked, coverage) * difficulty
        np.testing.assert_array_equal(predicted - reach, low)
        np.testing.assert_array_equal(predicted + reach, high)


def test_of_nineteen_errors_three_quarters_stay_within_the_fifth_largest() -> None:
    error = np.arange(1.0, 20.0)
    one = np.zeros(19, dtype=np.int64)
    assert holding(error, np.ones(19), one, one[:1], 0.75).tolist() == [15.0]
    assert holding(error, np.ones(19), one, one[:1], 0.96).tolist() == [np.inf]


def test_facts_like_no_fact_with_a_known_error_have_no_bounds() -> None:
    # Of the relation asked for nothing was calibrated, nor of any other small one: from 0 to 1, not from 0 to 0.
    n = 400
    columns, predicted = np.zeros((n, 2), dtype=np.float32), np.full(n, 0.5)
    chosen = EvidenceSettings(iterations=1, folds=2)
    bounds = Bounds.fit(columns, predicted, predicted, np.zeros(n, dtype=np.int32), chosen)
    with pytest.warns(UkgeWarning, match="1 of 2 intervals are from 0 to 1"):
        low, high = bounds.interval(columns[:2], predicted[:2], np.array([0, 7]), 0.9, "relation")
    assert (low[1], high[1]) == (0.0, 1.0)
    assert (low[0], high[0]) == (0.5, 0.5)
