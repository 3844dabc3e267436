"""Fusion of two opinions: the rule without labels by hand, and what is learnt from labels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ukge.errors import ConfigError, DataError
from ukge.evidence.fuse import EDGE, Floats, Fusion, logit

Shares = st.floats(0.01, 0.99)


def _drawn(n: int, seed: int = 0, trust: float = 1.0) -> tuple[Floats, Floats, Floats]:
    """Two independent opinions about facts of which half hold; the extractor's logits are `trust` times too large."""
    rng = np.random.default_rng(seed)
    label = (rng.random(n) < 0.5).astype(np.float64)
    # Signals from N(±1, 1): their log-odds are twice the signal.
    graph, text = (2.0 * ((2 * label - 1) + rng.standard_normal(n)) for _ in range(2))
    return 1 / (1 + np.exp(-graph)), 1 / (1 + np.exp(-trust * text)), label


def _loss(confidence: Floats, label: Floats) -> float:
    kept = np.clip(confidence, 1e-6, 1 - 1e-6)
    return float(-np.mean(label * np.log(kept) + (1 - label) * np.log(1 - kept)))


def test_odds_multiply() -> None:
    # odds 4 and 3/2 at a prior of 1/2: 6 to 1
    assert Fusion.by_prior()(np.array([0.8]), np.array([0.6])) == pytest.approx([6 / 7])
    # the same at a prior of 1/5 (odds 1/4): 24 to 1
    assert Fusion.by_prior(0.2)(np.array([0.8]), np.array([0.6])) == pytest.approx([24 / 25])


@given(Shares, Shares, Shares)
@settings(deadline=None, max_examples=50)
def test_an_opinion_that_says_the_prior_changes_nothing(graph: float, extractor: float, prior: float) -> None:
    fusion = Fusion.by_prior(prior)
    assert fusion(np.array([graph]), np.array([prior])) == pytest.approx([graph])
    assert fusion(np.array([prior]), np.array([extractor])) == pytest.approx([extractor])
    assert fusion(np.array([np.nan]), np.array([extractor])) == pytest.approx([extractor])


def test_no_opinion_settles_a_fact() -> None:
    assert Fusion.by_prior()(np.array([0.0]), np.array([1.0])) == pytest.approx([0.5])
    assert np.isfinite(logit(np.array([0.0, 1.0]))).all()
    assert logit(np.array([0.0])) == pytest.approx(np.log(EDGE / (1 - EDGE)))


def test_independent_opinions_are_fused_as_well_as_can_be() -> None:
    graph, text, label = _drawn(4000)
    fused = Fusion.by_prior()(graph, text)
    assert _loss(fused, label) < min(_loss(graph, label), _loss(text, label))
    for low, high in ((0.2, 0.4), (0.4, 0.6), (0.6, 0.8)):
        rows = (fused >= low) & (fused < high)
        assert label[rows].mean() == pytest.approx(fused[rows].mean(), abs=0.1)


def test_an_overconfident_extractor_is_weighed_less() -> None:
    graph, text, label = _drawn(1000, trust=3.0)
    fusion = Fusion.fit(graph, text, label)
    assert fusion.graph == pytest.approx(1.0, abs=0.25)
    assert 0.25 < fusion.extractor < 0.6  # a third, or more where its logits are cut off
    asked = _drawn(2000, seed=1, trust=3.0)
    assert _loss(fusion(*asked[:2]), asked[2]) < _loss(Fusion.by_prior()(*asked[:2]), asked[2])
    assert fusion.calibration is not None


def test_a_contrary_extractor_gets_no_weight() -> None:
    graph, text, label = _drawn(150)
    fusion = Fusion.fit(graph, 1.0 - text, label)
    assert fusion.extractor == 0.0
    assert fusion.graph > 0.5
    assert fusion.calibration is None
    grid = np.linspace(0, 1, 11)
    assert (np.diff(fusion(grid, np.full(11, 0.5))) >= 0).all()


def test_mistakes_are_named() -> None:
    graph, text, label = _drawn(30)
    with pytest.raises(ConfigError, match="prior"):
        Fusion.by_prior(1.0)
    with pytest.raises(DataError, match="too few"):
        Fusion.fit(graph[:5], text[:5], label[:5])
    with pytest.raises(DataError, match="all labels are equal"):
        Fusion.fit(graph, text, np.ones(30))
