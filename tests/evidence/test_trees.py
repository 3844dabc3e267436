"""Trees: those that scikit-learn grows, and Shapley values by brute force."""

from __future__ import annotations

from itertools import combinations
from math import factorial
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from ukge.evidence.binning import BINS, Binned
from ukge.evidence.growing import FEWEST_IN_LEAF, L2
from ukge.evidence.settings import EvidenceSettings
from ukge.evidence.shap import contributions, expected_value
from ukge.evidence.trees import Floats, Loss, Matrix, Trees, grow

RISING = np.array([0, 1, 0, 0, 0], dtype=np.int8)
SETTINGS = EvidenceSettings(iterations=12)


def columns(n: int = 600, seed: int = 0) -> Matrix:
    rng = np.random.default_rng(seed)
    found = rng.normal(size=(n, 5)).astype(np.float32)
    found[rng.random(found.shape) < 0.15] = np.nan
    found[:, 0] = rng.integers(0, 40, n)
    return found


def target_of(seen: Matrix) -> Floats:
    filled = np.nan_to_num(seen).astype(np.float64)
    found: Floats = filled[:, 1] * filled[:, 2] + np.sin(filled[:, 0]) + filled[:, 3]
    return found


def scikit_learns(loss: Loss, settings: EvidenceSettings, rising: npt.NDArray[np.int8] | None = None) -> Any:
    kind = HistGradientBoostingClassifier if loss == "log_loss" else HistGradientBoostingRegressor
    return kind(
        loss=loss,
        max_iter=settings.iterations,
        learning_rate=settings.learning_rate,
        max_leaf_nodes=settings.leaves,
        min_samples_leaf=FEWEST_IN_LEAF,
        l2_regularization=L2,
        categorical_features=[0],
        monotonic_cst=rising,
        early_stopping=False,
    )


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "log_loss"])
@pytest.mark.parametrize("rising", [None, RISING])
@pytest.mark.parametrize("weighted", [False, True])
def test_trees_are_those_of_scikit_learn(loss: Loss, rising: npt.NDArray[np.int8] | None, weighted: bool) -> None:
    seen = columns(3_000)
    aim = target_of(seen)
    weight = None
    if weighted and loss != "absolute_error":  # the bins of scikit-learn depend on weights, unless values are few
        seen = np.round(seen, 1)
        weight = np.random.default_rng(1).random(len(seen)) + 0.5
    truth = aim > 0.5 if loss == "log_loss" else aim
    # Slopes of the absolute error are 1 or −1, so partings soon gain the same, and rounding decides between them.
    settings = SETTINGS.replace(iterations=3) if loss == "absolute_error" else SETTINGS
    trees = grow(loss, seen, truth, settings, weight=weight, rising=rising)
    model = scikit_learns(loss, settings, rising).fit(seen, truth, weight)
    for asked in (seen, columns(500, seed=7)):
        expected = model.decision_function(asked) if loss == "log_loss" else model.predict(asked)
        np.testing.assert_allclose(trees.predict(asked), expected, rtol=0, atol=1e-5)
    assert np.ptp(trees.predict(seen)) > 0.5


@pytest.mark.parametrize("leaves", [2, 3, 4])
@pytest.mark.parametrize("rows", [300, 1_000])
def test_small_trees_over_the_same_bins_are_those_of_scikit_learn(leaves: int, rows: int) -> None:
    """Of rounded values there are few, so the bins are the same, and so is all that follows from them."""
    settings = EvidenceSettings(iterations=4, leaves=leaves)
    for seed in range(3):
        seen = np.round(columns(rows, seed), 1)
        expected = scikit_learns("squared_error", settings).fit(seen, target_of(seen)).predict(seen)
        found = grow("squared_error", seen, target_of(seen), settings).predict(seen)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)  # their slopes have 24 bits


def test_bins_differ_from_scikit_learns_only_where_a_quantile_falls_between_two_values() -> None:
    """A third of 831 values are 277: the limit is halfway to the next; rounding makes it one of the two for NumPy.

    Small trees over such columns differ visibly: a row more or less goes left.
    """
    known = np.sort(np.random.default_rng(0).normal(size=831)).astype(np.float32)
    (_, limits) = Binned.of(np.stack([np.zeros_like(known), known], axis=1)).limits
    theirs = np.percentile(
        known.astype(np.float64), np.linspace(0, 100, BINS + 1)[1:-1], method="averaged_inverted_cdf"
    )
    differing = np.flatnonzero(np.abs(limits - theirs) > 1e-12)
    assert set(differing) <= {BINS // 3 - 1, 2 * BINS // 3 - 1}
    assert limits[BINS // 3 - 1] == (np.float64(known[276]) + np.float64(known[277])) / 2


def test_values_at_thresholds_go_the_same_way() -> None:
    seen = columns(3_000)
    trees = grow("squared_error", seen, target_of(seen), SETTINGS)
    model = scikit_learns("squared_error", SETTINGS).fit(seen, target_of(seen))
    asked = columns(200, seed=9)
    for node in np.flatnonzero((trees.step == 1) & (trees.category < 0))[:200]:
        asked[node % 200, trees.feature[node]] = np.float32(trees.threshold[node])
    asked[20:40, 0] = np.nan
    np.testing.assert_allclose(trees.predict(asked), model.predict(asked), rtol=0, atol=1e-5)


@pytest.mark.parametrize("leaves", [2, 31, 32, 33, 64, 65, 200])
def test_any_number_of_leaves_is_predicted_as_by_a_walk_from_node_to_node(leaves: int) -> None:
    seen = columns(12_000)
    trees = grow("squared_error", seen, target_of(seen), EvidenceSettings(iterations=4, leaves=leaves))
    assert np.bincount(np.repeat(np.arange(4), np.diff(trees.root))[trees.step == 0]).max() == leaves
    for n in (1, 127, 128, 129, 300):
        asked = columns(n, seed=n)
        walked = [trees.baseline[0] + known_mean(trees, row, set(range(5))) for row in asked]
        np.testing.assert_allclose(trees.predict(asked), walked, rtol=0, atol=1e-12)


def grown(loss: Loss = "squared_error", **settings: Any) -> tuple[Trees, Matrix]:
    seen = columns()
    aim = target_of(seen)
    return grow(loss, seen, aim > 0.5 if loss == "log_loss" else aim, EvidenceSettings(**settings)), seen


def test_contributions_add_up_to_the_prediction() -> None:
    (trees, _), asked = grown("log_loss", iterations=30), columns(80, seed=4)
    total = expected_value(trees) + contributions(trees, asked).sum(axis=1)
    np.testing.assert_allclose(total, trees.predict(asked), atol=1e-10)


def test_contributions_are_shapley_values() -> None:
    trees, seen = grown(iterations=3, leaves=8)
    for row in seen[:6]:
        np.testing.assert_allclose(contributions(trees, row[None])[0], brute_force(trees, row), atol=1e-12)


def brute_force(trees: Trees, row: Matrix) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return Shapley values by their definition."""
    n = len(row)
    values = np.zeros(n)
    for column in range(n):
        others = [each for each in range(n) if each != column]
        for size in range(n):
            share = factorial(size) * factorial(n - size - 1) / factorial(n)
            for chosen in combinations(others, size):
                more = known_mean(trees, row, {*chosen, column}) - known_mean(trees, row, set(chosen))
                values[column] += share * more
    return values


def known_mean(trees: Trees, row: Matrix, known: set[int]) -> float:
    def mean(node: int) -> float:
        if trees.step[node] == 0:
            return float(trees.value[node])
        left, right = int(trees.left[node]), int(trees.left[node]) + 1
        if trees.feature[node] not in known:
            return float(sum(trees.count[each] * mean(each) for each in (left, right)) / trees.count[node])
        return mean(left if goes_left(trees, node, float(row[trees.feature[node]])) else right)

    return sum(mean(int(root)) for root in trees.root[:-1])


def goes_left(trees: Trees, node: int, value: float) -> bool:
    if np.isnan(value):
        return bool(trees.missing_left[node])
    if trees.category[node] >= 0:
        word = int(trees.bits[trees.category[node] + int(value) // 32])
        return bool((word >> (int(value) % 32)) & 1)
    return bool(value <= trees.threshold[node])


def test_the_brute_force_itself_predicts() -> None:
    trees, seen = grown(iterations=3, leaves=8)
    told = trees.baseline[0] + known_mean(trees, seen[0], set(range(5)))
    assert told == pytest.approx(trees.predict(seen[:1])[0])
