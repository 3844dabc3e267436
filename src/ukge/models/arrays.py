"""Formulas for NumPy arrays and PyTorch tensors alike: PyTorch takes a second to load, and an answer needs no gradient.

A formula is written with operators, slices, `abs`, `total`, and functions that both of what `library` gives have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from torch import Tensor

LANES, STRIPE, BLOCK = 8, 32, 512
"""Numbers that `total` adds up side by side: in a register, in four of them, and until their sum is put aside."""

FLAT = 30.0
"""Beyond it, log(1 + exp(x)) is x to double precision, or nearly so."""

Array = TypeVar("Array", npt.NDArray[np.floating[Any]], "Tensor")


def library(array: npt.NDArray[np.floating[Any]] | Tensor) -> Any:
    """Return the module whose functions take such an array: `numpy`, or `torch`."""
    if isinstance(array, (np.ndarray, np.generic)):
        return np
    import torch  # noqa: PLC0415 — loaded by now: the tensor is its own

    return torch


def halves(rows: Array) -> tuple[Array, Array]:
    """Return the first and the second half of each row: real and imaginary parts."""
    middle = rows.shape[-1] // 2
    if isinstance(rows, (np.ndarray, np.generic)):
        return rows[..., :middle], rows[..., middle:]
    first, second = library(rows).split(rows, middle, dim=-1)  # one gradient for both, where two slices have one each
    return first, second


def side_by_side(first: Array, second: Array) -> Array:
    """Return rows whose halves are given."""
    rows: Array = library(first).concat((first, second), axis=-1)
    return rows


def softplus(numbers: Array, scale: float = 1.0) -> Array:
    """Return scale × log(1 + exp(x / scale)): what is above 0, with a soft corner of that scale."""
    if isinstance(numbers, (np.ndarray, np.generic)):
        soft: Array = scale * np.logaddexp(numbers / scale, 0)
        return soft
    from torch.nn import functional  # noqa: PLC0415 — loaded by now

    return functional.softplus(numbers, beta=1.0 / scale, threshold=FLAT)


def total(rows: Array) -> Array:
    """Return the sum of each row."""
    return _in_order(rows) if isinstance(rows, np.ndarray) else rows.sum(-1)


def _in_order(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Add up each row in the order that PyTorch has where eight numbers fit a register.

    So both give the same bits, and every machine does: evidence draws lots by them.
    """
    width, shape = rows.shape[-1], rows.shape[:-1]
    stripes, aside = np.zeros((2, *shape, STRIPE), rows.dtype)
    whole, lanes = width - width % STRIPE, width - width % LANES
    for at in range(0, whole, STRIPE):
        stripes += rows[..., at : at + STRIPE]
        if (at + STRIPE) % BLOCK == 0:
            aside += stripes
            stripes[:] = 0
    stripes += aside
    first, *others = (stripes[..., at : at + LANES] for at in range(0, STRIPE, LANES))
    for at in range(whole, lanes, LANES):
        first += rows[..., at : at + LANES]
    for other in others:
        first += other
    found = np.zeros(shape, rows.dtype)
    for last in (rows[..., lanes:], first):
        for at in range(last.shape[-1]):
            found += last[..., at]
    return found
