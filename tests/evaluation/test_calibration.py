"""Calibration and rank correlation, by hand and against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from ukge.evaluation.confidence import (
    RankCorrelation,
    calibration,
    calibration_sample,
    equal_mass_bins,
    reliability,
)


def test_ece_by_hand() -> None:
    # Two bins of two facts: means .15 against .5 and .75 against .5, so the error is (.35 + .25) / 2.
    predicted, observed = np.array([0.1, 0.2, 0.7, 0.8]), np.array([1.0, 0.0, 0.4, 0.6])
    assert calibration_sample(predicted, observed, bins=2).point()["ece"] == pytest.approx(0.3)
    curve = reliability(predicted, observed, bins=2)
    np.testing.assert_allclose(curve.predicted, [0.15, 0.75])
    np.testing.assert_allclose(curve.observed, [0.5, 0.5])
    assert curve.facts.tolist() == [2, 2]


def test_equal_predictions_share_a_bin() -> None:
    predicted = np.array([0.0] * 7 + [0.5, 0.6, 0.7])
    bins = equal_mass_bins(predicted, bins=5)
    assert set(bins[:7].tolist()) == {0}
    assert bins[7:].tolist() == [3, 4, 4]
    assert reliability(predicted, predicted, bins=5).facts.tolist() == [7, 1, 2]


def test_bins_have_equal_mass_where_nothing_ties() -> None:
    values = np.random.default_rng(0).permutation(300) / 300
    assert np.bincount(equal_mass_bins(values, 15)).tolist() == [20] * 15


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=40), st.integers(1, 8))
def test_ece_is_the_weighted_gap_of_the_curve(pairs: list[tuple[int, int]], bins: int) -> None:
    predicted, observed = (np.array(column) / 5 for column in zip(*pairs, strict=True))
    curve = reliability(predicted, observed, bins)
    weighted = np.sum(curve.facts * np.abs(curve.predicted - curve.observed)) / len(pairs)
    assert calibration_sample(predicted, observed, bins).point()["ece"] == pytest.approx(weighted, abs=1e-12)


def test_a_perfect_prediction_is_calibrated() -> None:
    values = np.random.default_rng(1).random(200)
    found = calibration(values, values)
    assert found.ece == pytest.approx(0.0, abs=1e-12)
    assert found.spearman == pytest.approx(1.0)
    assert calibration(1 - values, values).spearman == pytest.approx(-1.0)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 3)), min_size=3, max_size=30))
def test_spearman_is_scipys_on_every_draw(rows: list[tuple[int, int, int]]) -> None:
    left, right, times = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    drawn_left, drawn_right = (np.repeat(values, times.astype(int)) for values in (left, right))
    found = RankCorrelation(left, right).measure(times[None, :])["spearman"][0]
    if len(set(drawn_left)) < 2 or len(set(drawn_right)) < 2:
        assert np.isnan(found)
    else:
        assert found == pytest.approx(spearmanr(drawn_left, drawn_right).statistic)
