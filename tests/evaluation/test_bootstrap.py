"""Intervals against plain resampling, fact by fact."""

from __future__ import annotations

import numpy as np
import pytest

from ukge.errors import ConfigError
from ukge.evaluation import metric as module
from ukge.evaluation.classification import classification_sample
from ukge.evaluation.confidence import RankCorrelation
from ukge.evaluation.metric import Bootstrap, Interval, Means
from ukge.evaluation.ranking import link_sample


def ratio(left: np.ndarray, right: np.ndarray) -> Means:
    return Means([left, right], lambda means: {"ratio": means[:, 0] / means[:, 1]})


def test_intervals_are_those_of_plain_resampling() -> None:
    rng = np.random.default_rng(0)
    left, right = rng.random(57), rng.random(57) + 0.5
    found = ratio(left, right).intervals(Bootstrap(300, 0.9, seed=4))["ratio"]
    draws = np.random.default_rng(4)
    values = []
    for _ in range(300):
        rows = draws.integers(0, 57, 57)
        values.append(left[rows].sum() / right[rows].sum())
    low, high = np.percentile(values, [5, 95])
    assert found.low == pytest.approx(low)
    assert found.high == pytest.approx(high)


def test_the_mean_has_the_interval_of_the_normal_distribution() -> None:
    values = np.random.default_rng(1).normal(3.0, 2.0, 4000)
    found = Means([values], lambda means: {"mean": means[:, 0]}).intervals(Bootstrap(2000, seed=0))["mean"]
    error = values.std() / np.sqrt(4000)
    assert found.low == pytest.approx(values.mean() - 1.96 * error, abs=0.15 * error)
    assert found.high == pytest.approx(values.mean() + 1.96 * error, abs=0.15 * error)


def test_blocks_and_kept_draws_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    sample = ratio(rng.random(40), rng.random(40) + 1)
    whole = sample.intervals(Bootstrap(100, seed=9))
    monkeypatch.setattr(module, "KEPT_BYTES", 0)
    monkeypatch.setattr(module, "BLOCK_BYTES", 40 * 8 * 7)
    assert sample.intervals(Bootstrap(100, seed=9)) == whole
    assert sample.intervals(Bootstrap(100, seed=10)) != whole


def test_a_certain_metric_has_an_interval_without_width() -> None:
    right = np.ones(50, dtype=np.bool_)
    limits = classification_sample(right, right).intervals(Bootstrap(50))
    assert limits["f1"] == limits["accuracy"] == Interval(1.0, 1.0)


def test_every_interval_holds_its_value() -> None:
    rng = np.random.default_rng(3)
    ranks, weight = rng.integers(1, 60, 400).astype(np.float64), rng.random(400)
    for sample in (link_sample(ranks, ranks[::-1].copy(), confidence=weight), RankCorrelation(ranks, weight)):
        point, limits = sample.point(), sample.intervals(Bootstrap(400))
        assert set(point) == set(limits)
        for name, value in point.items():
            assert limits[name].low <= value <= limits[name].high, name


def test_no_replicates_no_intervals() -> None:
    assert ratio(np.ones(3), np.ones(3)).intervals(Bootstrap(0)) == {}
    with pytest.raises(ConfigError, match="make no interval"):
        Bootstrap(-1)
    with pytest.raises(ConfigError, match="make no interval"):
        Bootstrap(100, level=1.0)
