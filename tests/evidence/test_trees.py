"""Trees taken out of scikit-learn: the same predictions, and Shapley values by brute force."""

from __future__ import annotations

from itertools import combinations
from math import factorial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from ukge.evidence.shap import contributions, expected_value
from ukge.evidence.trees import Matrix, Trees


def columns(n: int = 600, seed: int = 0) -> Matrix:
    rng = np.random.default_rng(seed)
    found = rng.normal(size=(n, 5)).astype(np.float32)
    found[rng.random(found.shape) < 0.15] = np.nan
    found[:, 0] = rng.integers(0, 40, n)
    return found


def fitted(kind: type = HistGradientBoostingRegressor, **settings: Any) -> tuple[Any, Matrix]:
    seen = columns()
    filled = np.nan_to_num(seen)
    target: npt.NDArray[Any] = filled[:, 1] * filled[:, 2] + np.sin(filled[:, 0]) + filled[:, 3]
    if kind is HistGradientBoostingClassifier:
        target = target > 0.5
    chosen = {"max_iter": 30, "categorical_features": [0], "min_samples_leaf": 5, **settings}
    return kind(**chosen).fit(seen, target), seen


def test_regression_is_predicted_as_scikit_learn_does() -> None:
    model, seen = fitted()
    trees = Trees.of(model)
    for asked in (seen, columns(500, seed=7)):
        np.testing.assert_allclose(trees.predict(asked), model.predict(asked), rtol=0, atol=1e-12)


def test_classification_is_predicted_as_scikit_learn_does() -> None:
    model, _ = fitted(HistGradientBoostingClassifier, monotonic_cst=[0, 1, 0, 0, 0])
    asked = columns(500, seed=8)
    np.testing.assert_allclose(Trees.of(model).predict(asked), model.decision_function(asked), rtol=0, atol=1e-12)


def test_values_at_thresholds_and_unknown_categories_go_the_same_way() -> None:
    model, _ = fitted()
    trees = Trees.of(model)
    asked = columns(200, seed=9)
    for node in np.flatnonzero((trees.step == 1) & (trees.category < 0))[:200]:
        asked[node % 200, trees.feature[node]] = np.float32(trees.threshold[node])
    asked[:20, 0] = 200.0
    asked[20:40, 0] = np.nan
    np.testing.assert_allclose(trees.predict(asked), model.predict(asked), rtol=0, atol=1e-12)


@pytest.mark.parametrize("leaves", [2, 31, 32, 33, 64, 65, 200])
def test_any_number_of_leaves_is_predicted_as_scikit_learn_does(leaves: int) -> None:
    seen = columns(4_000)
    target = np.nan_to_num(seen[:, 1] * seen[:, 2]) + np.sin(seen[:, 0]) + np.nan_to_num(seen[:, 3])
    settings: dict[str, Any] = {"max_iter": 4, "max_leaf_nodes": leaves, "min_samples_leaf": 1}
    model = HistGradientBoostingRegressor(categorical_features=[0], **settings).fit(seen, target)
    trees = Trees.of(model)
    assert np.bincount(np.repeat(np.arange(4), np.diff(trees.root))[trees.step == 0]).max() == leaves
    for n in (1, 127, 128, 129, 1_000):
        asked = columns(n, seed=n)
        np.testing.assert_allclose(trees.predict(asked), model.predict(asked), rtol=0, atol=1e-12)


def test_contributions_add_up_to_the_prediction() -> None:
    model, _ = fitted(HistGradientBoostingClassifier)
    trees, asked = Trees.of(model), columns(80, seed=4)
    total = expected_value(trees) + contributions(trees, asked).sum(axis=1)
    np.testing.assert_allclose(total, trees.predict(asked), atol=1e-10)


def test_contributions_are_shapley_values() -> None:
    model, seen = fitted(max_iter=3, max_leaf_nodes=8)
    trees = Trees.of(model)
    for row in seen[:6]:
        np.testing.assert_allclose(contributions(trees, row[None])[0], brute_force(model, row), atol=1e-12)


def brute_force(model: Any, row: Matrix) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return Shapley values by their definition, over scikit-learn's own nodes."""
    n = len(row)
    values = np.zeros(n)
    for column in range(n):
        others = [each for each in range(n) if each != column]
        for size in range(n):
            share = factorial(size) * factorial(n - size - 1) / factorial(n)
            for chosen in combinations(others, size):
                more = known_mean(model, row, {*chosen, column}) - known_mean(model, row, set(chosen))
                values[column] += share * more
    return values


def known_mean(model: Any, row: Matrix, known: set[int]) -> float:
    def mean(predictor: Any, at: int) -> float:
        node = predictor.nodes[at]
        if node["is_leaf"]:
            return float(node["value"])
        left, right = int(node["left"]), int(node["right"])
        if node["feature_idx"] not in known:
            parts = [predictor.nodes[each]["count"] * mean(predictor, each) for each in (left, right)]
            return float(sum(parts) / node["count"])
        return mean(predictor, left if goes_left(predictor, node, float(row[node["feature_idx"]])) else right)

    return sum(mean(trees[0], 0) for trees in model._predictors)


def goes_left(predictor: Any, node: Any, value: float) -> bool:
    if np.isnan(value):
        return bool(node["missing_go_to_left"])
    if node["is_categorical"]:
        words = predictor.raw_left_cat_bitsets[node["bitset_idx"]]
        return bool((int(words[int(value) // 32]) >> (int(value) % 32)) & 1)
    return bool(value <= node["num_threshold"])


def test_the_brute_force_itself_predicts() -> None:
    model, seen = fitted(max_iter=3, max_leaf_nodes=8)
    base = float(np.asarray(model._baseline_prediction).ravel()[0])
    assert base + known_mean(model, seen[0], set(range(5))) == pytest.approx(model.predict(seen[:1])[0])
