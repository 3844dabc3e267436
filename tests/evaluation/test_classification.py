"""Classification of strong facts against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    accuracy_score,
    f1_score,
    precision_recall_curve,
    precision_score,
    recall_score,
)

from ukge.errors import DataError
from ukge.evaluation.classification import INVERSE_PENALTY, StrongFacts, classification, precision_recall


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=40))
def test_scores_are_scikit_learns(pairs: list[tuple[bool, bool]]) -> None:
    found, strong = (np.array(column) for column in zip(*pairs, strict=True))
    scores = classification(found, strong)
    assert scores.f1 == pytest.approx(f1_score(strong, found, zero_division=0))
    assert scores.accuracy == pytest.approx(accuracy_score(strong, found))
    assert scores.precision == pytest.approx(precision_score(strong, found, zero_division=0))
    assert scores.recall == pytest.approx(recall_score(strong, found, zero_division=0))


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=2, max_size=40))
def test_the_curve_is_scikit_learns(pairs: list[tuple[int, bool]]) -> None:
    scores, strong = (np.array(column) for column in zip(*pairs, strict=True))
    if not strong.any():
        return
    curve = precision_recall(scores / 6, strong)
    precision, recall, threshold = precision_recall_curve(strong, scores / 6)
    np.testing.assert_allclose(curve.threshold[::-1], threshold)
    np.testing.assert_allclose(curve.precision[::-1], precision[:-1])  # theirs ends with a point without threshold
    np.testing.assert_allclose(curve.recall[::-1], recall[:-1])


def test_the_classifier_is_scikit_learns() -> None:
    rng = np.random.default_rng(0)
    predicted = rng.random(500)
    strong = predicted + 0.2 * rng.normal(size=500) > 0.7
    theirs = LogisticRegression(C=INVERSE_PENALTY).fit(predicted[:, None], strong)
    asked = np.linspace(-1, 2, 301)
    np.testing.assert_array_equal(
        StrongFacts.fit(predicted, strong).predict(asked), theirs.predict(asked[:, None]).astype(bool)
    )


@pytest.mark.parametrize("n", [30, 3000])
def test_what_can_be_told_apart_is_told_apart(n: int) -> None:
    predicted = np.append(np.linspace(0.1, 1.0, n), np.zeros(n))
    assert classification(StrongFacts.fit(predicted, predicted > 0.6).predict(predicted), predicted > 0.6).f1 == 1.0


@pytest.mark.parametrize(("strong", "kind"), [(True, "strong"), (False, "weak or false")])
def test_one_class_is_told(strong: bool, kind: str) -> None:
    with pytest.raises(DataError, match=f"all 5 facts to learn from are {kind}"):
        StrongFacts.fit(np.linspace(0, 1, 5), np.full(5, strong))
