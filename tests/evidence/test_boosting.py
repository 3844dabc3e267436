"""Growing trees: over bins, side by side, and the same trees in whatever order."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt
import pytest

from ukge.evidence.binning import BINS, Binned
from ukge.evidence.settings import EvidenceSettings
from ukge.evidence.trees import Loss, Matrix, Trees, grow, side_by_side

SETTINGS = EvidenceSettings(iterations=20, leaves=15)


def _examples(rows: int = 900) -> tuple[Matrix, npt.NDArray[np.float64]]:
    rng = np.random.default_rng(3)
    columns = rng.normal(size=(rows, 4)).astype(np.float32)
    columns[:, 0] = rng.integers(0, 6, rows)
    columns[:, 3] = np.nan
    target = 0.3 * columns[:, 1] + (columns[:, 0] == 2) + rng.normal(scale=0.1, size=rows)
    return columns, target.astype(np.float64)


def test_fits_side_by_side_are_those_one_after_the_other() -> None:
    columns, target = _examples()
    losses: tuple[Loss, ...] = ("squared_error", "absolute_error", "log_loss")
    shares: list[float] = []

    def fits() -> list[Callable[[], Trees]]:
        aims = [target, target, target > 0.4]
        return [partial(grow, loss, columns, aim, SETTINGS) for loss, aim in zip(losses, aims, strict=True)]

    alone = [fit() for fit in fits()]
    for one, other in zip(alone, side_by_side(fits(), shares.append), strict=True):
        np.testing.assert_array_equal(one.value, other.value)
        np.testing.assert_array_equal(one.threshold, other.threshold)
        assert np.ptp(one.predict(columns)) > 0.5
    assert shares == pytest.approx([1 / 3, 2 / 3, 1])


def test_a_fit_tells_how_far_it_is() -> None:
    shares: list[float] = []
    grow("squared_error", *_examples(), SETTINGS, on_share=shares.append)
    assert shares == pytest.approx(np.arange(20) / 20)


def test_a_fit_that_fails_is_heard_of() -> None:
    def fail() -> Trees:
        raise ArithmeticError("no trees")

    with pytest.raises(ArithmeticError, match="no trees"):
        side_by_side([fail, fail])


def test_values_are_put_into_bins_halfway_between_them() -> None:
    columns = np.array([[3, 0.5], [0, np.nan], [254, -1.0], [3, 0.5]], dtype=np.float32)
    binned = Binned.of(columns)
    np.testing.assert_array_equal(binned.codes, [[3, 0, 254, 3], [1, 255, 0, 1]])
    np.testing.assert_array_equal(binned.limits[1], [-0.25])
    np.testing.assert_array_equal(binned.missing, [False, True])
    # by row, the usual values 3 and 0.5 are left out; a bin for missing values stands behind those of each column
    np.testing.assert_array_equal(binned.start, [0, 0, 2, 4, 4])
    np.testing.assert_array_equal(binned.entry, [0, 256 + 2, 254, 256 + 0])


def test_many_values_are_put_into_bins_of_one_size() -> None:
    values = np.random.default_rng(0).permutation(5_100).astype(np.float32) ** 2
    binned = Binned.of(np.stack([np.zeros_like(values), values], axis=1))
    assert set(np.bincount(binned.codes[1])) == {5_100 // BINS}
    assert np.all(np.diff(binned.codes[1][np.argsort(values)].astype(int)) >= 0)


def test_picked_rows_keep_their_bins() -> None:
    columns, _ = _examples()
    rows = np.array([5, 700, 31])
    whole = Binned.of(columns)
    picked = whole.pick(rows)
    np.testing.assert_array_equal(picked.codes, whole.codes[:, rows])
    np.testing.assert_array_equal(picked.first, whole.first)
    assert len(picked) == 3


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
