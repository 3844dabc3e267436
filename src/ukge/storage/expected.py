"""What arrays must be before anything computes with them: the one door between a file and compiled code.

A digest says that a file is what somebody wrote. It does not say that what was written is fit for use: compiled code
does not look at the ids it is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ukge.errors import RunError
from ukge.storage.arrays import Arrays
from ukge.storage.files import DAMAGED


@dataclass(frozen=True, slots=True)
class Expected:
    """What one array must be.

    A size in `shape` is a number, None where any will do, or a name: sizes of one name are the same in all arrays that
    are checked together. `low` and `high` are the least and the greatest value allowed. Floats must be finite, unless
    `finite` is False. `rising` numbers never fall: places in another array, sorted keys.
    """

    dtype: str | tuple[str, ...]
    shape: tuple[int | str | None, ...]
    low: float | None = None
    high: float | None = None
    finite: bool = True
    rising: bool = False
    optional: bool = False


def checked(
    source: str | Path,
    arrays: Mapping[str, npt.NDArray[Any]],
    expected: Mapping[str, Expected],
    *,
    sizes: Mapping[str, int] | None = None,
    hint: str = DAMAGED,
) -> Arrays:
    """Return the arrays that are expected, each as it must be; anything else is a `RunError` that names it.

    `sizes` are those that are known by name already.
    """
    known = dict(sizes or {})
    unknown = sorted(arrays.keys() - expected.keys())
    wrong = f"'{unknown[0]}' is not one of its arrays" if unknown else None
    for name, wanted in expected.items():
        if wrong is None and (name in arrays or not wanted.optional):
            wrong = _wrong(name, arrays[name], wanted, known) if name in arrays else f"'{name}' is missing"
    if wrong is not None:
        raise RunError(f"{source} cannot be used: {wrong}", hint=hint)
    return {name: arrays[name] for name in expected if name in arrays}


def _wrong(name: str, array: npt.NDArray[Any], wanted: Expected, known: dict[str, int]) -> str | None:
    """Return what is wrong with an array; sizes that it is the first to have are known from then on."""
    kinds = (wanted.dtype,) if isinstance(wanted.dtype, str) else wanted.dtype
    if array.dtype.name not in kinds or array.ndim != len(wanted.shape):
        return f"'{name}' is {array.dtype} {array.shape}, not {' or '.join(kinds)} {_told(wanted.shape, known)}"
    for size, said in zip(array.shape, wanted.shape, strict=True):
        right = known.setdefault(said, size) if isinstance(said, str) else said
        if right is not None and size != right:
            return f"'{name}' has the shape {array.shape}, not {_told(wanted.shape, known)}"
    return _wrong_values(name, array, wanted) if array.size else None


def _wrong_values(name: str, array: npt.NDArray[Any], wanted: Expected) -> str | None:
    least, greatest = array.min(), array.max()  # both are NaN if anything is
    if wanted.finite and not (np.isfinite(least) and np.isfinite(greatest)):
        return f"'{name}' holds numbers that are not finite"
    if wanted.low is not None and least < wanted.low:
        return f"'{name}' holds {least}, which is below {wanted.low:g}"
    if wanted.high is not None and greatest > wanted.high:
        return f"'{name}' holds {greatest}, which is above {wanted.high:g}"
    if wanted.rising and (array[1:] < array[:-1]).any():
        return f"'{name}' is not in rising order"
    return None


def _told(shape: tuple[int | str | None, ...], known: Mapping[str, int]) -> str:
    sizes = ("any" if size is None else str(known.get(size, size) if isinstance(size, str) else size) for size in shape)
    return f"({', '.join(sizes)}{',' if len(shape) == 1 else ''})"
