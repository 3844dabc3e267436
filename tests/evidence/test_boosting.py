"""Growing trees: on as many threads as pay, and the same trees whatever their number."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_info, threadpool_limits

from ukge.evidence import trees as boosting
from ukge.evidence.settings import EvidenceSettings
from ukge.evidence.trees import Loss, Matrix, grow

SETTINGS = EvidenceSettings(iterations=20, leaves=15)


def _examples(rows: int = 900) -> tuple[Matrix, npt.NDArray[np.float64]]:
    rng = np.random.default_rng(3)
    columns = rng.normal(size=(rows, 4)).astype(np.float32)
    columns[:, 0] = rng.integers(0, 6, rows)
    columns[:, 3] = np.nan
    target = 0.3 * columns[:, 1] + (columns[:, 0] == 2) + rng.normal(scale=0.1, size=rows)
    return columns, target.astype(np.float64)


def _threads() -> set[int]:
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "openmp"}


@pytest.mark.parametrize(("fewest", "expected"), [(901, {1}), (900, {2})])
def test_few_rows_are_grown_on_one_thread(monkeypatch: pytest.MonkeyPatch, fewest: int, expected: set[int]) -> None:
    seen: list[set[int]] = []
    fit = HistGradientBoostingRegressor.fit

    def watched(*given: Any) -> Any:
        seen.append(_threads())
        return fit(*given)

    monkeypatch.setattr(HistGradientBoostingRegressor, "fit", watched)
    monkeypatch.setattr(boosting, "FEWEST_FOR_THREADS", fewest)
    with threadpool_limits(2, user_api="openmp"):
        grow("squared_error", *_examples(), SETTINGS)
        assert _threads() == {2}
    assert seen == [expected]


@pytest.mark.parametrize("loss", ["squared_error", "absolute_error", "log_loss"])
def test_threads_do_not_change_the_trees(monkeypatch: pytest.MonkeyPatch, loss: Loss) -> None:
    columns, target = _examples()
    aim = target > 0.4 if loss == "log_loss" else target
    grown = []
    for fewest in (0, len(columns) + 1):
        monkeypatch.setattr(boosting, "FEWEST_FOR_THREADS", fewest)
        with threadpool_limits(2, user_api="openmp"):
            grown.append(grow(loss, columns, aim, SETTINGS))
    one, two = (trees.predict(columns) for trees in grown)
    np.testing.assert_array_equal(one, two)
    assert np.ptp(one) > 0.5


def test_no_tree_asks_for_a_column_that_is_never_known() -> None:
    trees = grow("squared_error", *_examples(), SETTINGS)
    assert set(trees.feature[trees.step == 1]) == {0, 1, 2}


def test_where_a_column_must_not_lower_the_prediction_it_does_not() -> None:
    columns, target = _examples()
    rising = np.array([0, 1, 0, 0], dtype=np.int8)
    asked = np.repeat(columns[:1], 50, axis=0)
    asked[:, 1] = np.linspace(-3, 3, 50)
    told = grow("squared_error", columns, np.abs(target), SETTINGS, rising=rising).predict(asked)
    free = grow("squared_error", columns, np.abs(target), SETTINGS).predict(asked)
    assert np.all(np.diff(told) >= 0)
    assert np.any(np.diff(free) < 0)


def test_rows_count_by_their_weight() -> None:
    columns, target = _examples()
    half = np.arange(len(columns)) % 2 == 0
    weighed = grow("squared_error", columns, np.where(half, target, 5.0), SETTINGS, weight=half.astype(np.float64))
    unweighed = grow("squared_error", columns, np.where(half, target, 5.0), SETTINGS)
    assert abs(weighed.predict(columns).mean() - target[half].mean()) < 0.05
    assert abs(unweighed.predict(columns).mean() - target[half].mean()) > 1.0
