"""Quantiles, CRPS, log score, coverage and answer sets: by hand, by definition, and as promised."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ukge.evaluation.distribution import (
    LEVELS,
    Asked,
    Outcomes,
    crps,
    distribution_sample,
    interval_sample,
    log_score,
    weighted_quantiles,
)


def test_quantiles_of_nine_values() -> None:
    # With one more value, ten: the 2nd, the 5th and the 9th smallest bound 20, 50 and 90 %; of 95 % nothing is known.
    values, one = np.arange(1.0, 10.0), np.ones(9)
    levels = np.array([0.05, 0.2, 0.25, 0.5, 0.9, 0.95])
    assert weighted_quantiles(values, one, levels).tolist() == [-np.inf, 2.0, 2.0, 5.0, 9.0, np.inf]
    # A value that counts for three is three values.
    thrice = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 3.0])
    repeated = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 7.0, 7.0])
    inner = np.array([0.2, 0.7])
    by_weight = weighted_quantiles(np.arange(1.0, 8.0), thrice, inner)
    assert by_weight.tolist() == weighted_quantiles(repeated, one, inner).tolist() == [2.0, 7.0]


def test_scores_by_hand() -> None:
    # X is .2 or .6. mean |X − .4| − ½ mean |X − X'| = .2 − ½ · .2; at 1: .6 − .1.
    quantiles = np.array([[0.2, 0.6], [0.2, 0.6]])
    np.testing.assert_allclose(crps(quantiles, np.array([0.4, 1.0])), [0.1, 0.5])
    # .2 is in the cell (.15, .2], where one of two quantiles lies; .4 in one where none does.
    found = log_score(quantiles, np.array([0.2, 0.4]))
    np.testing.assert_allclose(found, [-math.log((1 + 1 / 21) / 3), -math.log((1 / 21) / 3)])
    # Exactly 0 is a cell of its own.
    sure = np.zeros((2, 2))
    np.testing.assert_allclose(log_score(sure, np.array([0.0, 0.01])), [-math.log((2 + 1 / 21) / 3), math.log(63)])
    point = distribution_sample(quantiles, np.array([0.4, 1.0])).point()
    assert point["crps"] == pytest.approx(0.3)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 12), st.integers(0, 2**31))
def test_crps_is_what_its_definition_says(m: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    quantiles, observed = np.sort(rng.random((5, m)), axis=1), rng.random(5)
    own = np.abs(quantiles - observed[:, None]).mean(axis=1)
    apart = np.abs(quantiles[:, :, None] - quantiles[:, None, :]).mean(axis=(1, 2))
    np.testing.assert_allclose(crps(quantiles, observed), own - apart / 2, atol=1e-12)


def test_coverage_and_width_by_hand() -> None:
    low, high = np.array([0.1, 0.2, 0.5, 0.0]), np.array([0.3, 0.4, 0.6, 1.0])
    found = interval_sample(low, high, np.array([0.3, 0.5, 0.5, 0.0])).point()
    assert found == pytest.approx({"coverage": 0.75, "width": (0.2 + 0.2 + 0.1 + 1.0) / 4})


@pytest.mark.parametrize("round_numbers", [True, False])
def test_quantiles_hold_the_share_that_they_promise(round_numbers: bool) -> None:
    rng = np.random.default_rng(1)
    predicted, expected = rng.random(24_000), 0.01 + 0.2 * rng.random(24_000)
    observed = np.clip(predicted + expected * rng.normal(size=24_000), 0, 1)
    if round_numbers:  # a few values, and false links among them
        observed = np.where(rng.random(24_000) < predicted, np.ceil(predicted * 4) / 4, 0.0)
    half = slice(0, 12_000), slice(12_000, 24_000)
    outcomes = Outcomes.of(predicted[half[0]], observed[half[0]], expected[half[0]])
    assert outcomes.form == ("values" if round_numbers else "errors")
    for coverage in (0.8, 0.9, 0.95):
        low, high = outcomes.interval(predicted[half[1]], expected[half[1]], coverage)
        held = (low <= observed[half[1]]) & (observed[half[1]] <= high)
        assert held.mean() >= coverage - 0.01
        if not round_numbers:
            assert held.mean() <= coverage + 0.02
            for band in (predicted[half[1]] < 0.3, expected[half[1]] > 0.15):
                assert held[band].mean() == pytest.approx(coverage, abs=0.025)
    rows = np.arange(0, 12_000, 7)
    flat = np.tile(np.quantile(observed[half[0]], LEVELS), (len(rows), 1))
    own, of_all = (crps(each, observed[half[0]][rows]).mean() for each in (outcomes.of_rows(rows), flat))
    assert own < 0.8 * of_all


def test_a_prior_moves_the_weight_of_facts() -> None:
    # Of 200 links with one prediction half are facts with .8; if one in ten of the asked links holds, 90 % are 0.
    observed = np.repeat([0.0, 0.8], 100)
    outcomes = Outcomes(np.full(200, 0.4), np.ones(200), observed)
    asked = np.array([0.4]), np.ones(1), [0.3, 0.6, 0.85, 0.93]
    assert outcomes.quantiles(*asked)[0].tolist() == [0.0, 0.8, 0.8, 0.8]
    assert outcomes.quantiles(*asked, Asked(0.1))[0].tolist() == [0.0, 0.0, 0.0, 0.8]
    assert outcomes.quantiles(*asked, Asked(0.9))[0].tolist() == [0.8, 0.8, 0.8, 0.8]
