"""Bounds of a model without evidence cover the share of links that they promise."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ukge.asking import Predictor
from ukge.asking.judges import negatives_like
from ukge.evaluation.distribution import Outcomes
from ukge.graph.uncertain import concat


def test_an_interval_is_as_wide_as_the_error_at_its_place() -> None:
    errors = np.linspace(0.01, 0.19, 19)
    bounds = Outcomes(np.full(19, 0.5), np.ones(19), 0.5 + errors, "errors")
    low, high = bounds.interval(np.array([0.5, 0.05, 0.95]), np.ones(3), 0.9)
    # The smallest error that at least 0.9 · 20 = 18 of 19 + 1 links do not pass is the 18th.
    assert low == pytest.approx([0.32, 0.0, 0.77])
    assert high == pytest.approx([0.68, 0.23, 1.0])
    low, high = bounds.interval(np.array([0.5]), np.ones(1), 0.99)
    assert (low[0], high[0]) == (0.0, 1.0)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10_000), coverage=st.sampled_from([0.5, 0.8, 0.9]))
def test_bounds_cover_new_links_in_every_band(seed: int, coverage: float) -> None:
    draw = np.random.default_rng(seed)
    predicted = draw.random(8_000)
    observed = np.clip(predicted + draw.normal(size=8_000) * 0.3 * predicted, 0, 1)
    bounds = Outcomes.of(predicted[:4_000], observed[:4_000])
    low, high = bounds.interval(predicted[4_000:], np.ones(4_000), coverage)
    inside = (low <= observed[4_000:]) & (observed[4_000:] <= high)
    for start in (0.0, 0.2, 0.4, 0.6, 0.8):
        band = (predicted[4_000:] >= start) & (predicted[4_000:] < start + 0.2)
        assert inside[band].mean() == pytest.approx(coverage, abs=0.12)
    assert (high - low)[predicted[4_000:] < 0.2].mean() < (high - low)[predicted[4_000:] > 0.8].mean()


def test_a_run_has_them_of_its_validation_facts(run: Path) -> None:
    opened = Predictor.open(run)
    test = concat([opened.dataset.test, negatives_like(opened.dataset, opened.dataset.test)])
    judged = opened.judge(test.head, test.relation, test.tail, 0.8)
    inside = (judged.low <= test.confidence) & (test.confidence <= judged.high)
    assert opened.bounds_from == "validation"
    assert np.mean(inside) > 0.7
    assert ((judged.low <= judged.confidence) & (judged.confidence <= judged.high)).all()
    assert np.mean(judged.high - judged.low) < 0.8


def test_half_of_a_first_evidence_does_not_disable_a_run(run: Path, tmp_path: Path) -> None:
    """A fit that was killed left a directory without the file that says everything, and no question was answered."""
    half = Path(shutil.copytree(run, tmp_path / "run"))
    (half / "evidence").mkdir()
    (half / "evidence" / "weights-0.safetensors").write_bytes(b"cut short")
    opened, whole = Predictor.open(half), Predictor.open(run)
    assert opened.judged_by == "model"
    assert opened.predict(opened.dataset.test[0]) == whole.predict(whole.dataset.test[0])
