"""Formulas for NumPy and PyTorch alike, and sums that are the same on every machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from ukge.models.arrays import halves, library, side_by_side, total

WIDTHS = [1, 7, 8, 31, 32, 45, 128, 511, 512, 1100]


def one_by_one(row: npt.NDArray[np.float32]) -> np.float32:
    """Add up a row number by number, in the order that is promised."""
    zero = np.float32(0)
    width, stripes, aside = len(row), [zero] * 32, [zero] * 32
    for at in range(width - width % 32):
        stripes[at % 32] += row[at]
        if (at + 1) % 512 == 0:
            aside, stripes = [a + b for a, b in zip(aside, stripes, strict=True)], [zero] * 32
    stripes = [a + b for a, b in zip(stripes, aside, strict=True)]
    for at in range(width - width % 32, width - width % 8):
        stripes[at % 8] += row[at]
    lanes = [stripes[at] + stripes[at + 8] + stripes[at + 16] + stripes[at + 24] for at in range(8)]
    found = zero
    for value in (*row[width - width % 8 :], *lanes):
        found += value
    return found


def rows(width: int) -> npt.NDArray[np.float32]:
    return np.random.default_rng(width).normal(size=(20, width)).astype(np.float32)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_sum_has_one_order(width: int) -> None:
    values = rows(width)
    expected = np.array([one_by_one(row) for row in values])
    np.testing.assert_array_equal(total(values), expected)
    np.testing.assert_array_equal(total(values[:, None])[:, 0], expected)
    np.testing.assert_array_equal([total(row) for row in values[:3]], expected[:3])
    assert total(values).dtype == np.float32
    assert np.allclose(expected, values.sum(axis=1, dtype=np.float64), atol=1e-4)


@pytest.mark.skipif(torch.backends.cpu.get_cpu_capability() != "AVX2", reason="PyTorch adds up in another order here")
@pytest.mark.parametrize("width", [width for width in WIDTHS if width >= 8])
def test_where_eight_numbers_fit_a_register_the_order_is_that_of_torch(width: int) -> None:
    values = rows(width)
    np.testing.assert_array_equal(total(values), torch.from_numpy(values).sum(-1).numpy())


@pytest.mark.parametrize("kind", [np.asarray, torch.tensor])
def test_rows_are_cut_in_halves_and_joined_again(kind: Any) -> None:
    whole = kind([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]])
    first, second = halves(whole)
    assert first.tolist() == [[1.0, 2.0], [5.0, 6.0]]
    joined = side_by_side(second, first)
    assert type(joined) is type(whole)
    assert joined.tolist() == [[3.0, 4.0, 1.0, 2.0], [7.0, 8.0, 5.0, 6.0]]
    assert library(whole) is (np if kind is np.asarray else torch)
