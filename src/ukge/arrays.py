"""Formulas for NumPy arrays and PyTorch tensors alike: PyTorch takes a second to load, and an answer needs no gradient.

A formula is written with operators, slices, `abs`, `.sum(-1)` and what `library` gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from torch import Tensor

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
    return rows[..., :middle], rows[..., middle:]


def side_by_side(first: Array, second: Array) -> Array:
    """Return rows whose halves are given."""
    rows: Array = library(first).concat((first, second), axis=-1)
    return rows
