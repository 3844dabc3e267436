"""Between NumPy and Arrow without pandas: PyArrow's own ways load it wherever it is installed, for half a second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def from_numpy(values: npt.NDArray[Any], known: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    """Return whole or real numbers as an Arrow array that shares their memory; those not `known` are missing."""
    kept = np.ascontiguousarray(values)
    buffers = [_validity(known), pa.py_buffer(kept)]
    return pa.Array.from_buffers(pa.from_numpy_dtype(kept.dtype), len(kept), buffers)


def to_numpy(array: pa.Array, missing: int | None = None) -> npt.NDArray[Any]:
    """Return whole or real numbers of an Arrow array, read-only and without a copy unless some are `missing`."""
    dtype = np.dtype(array.type.to_pandas_dtype())
    if len(array) == 0:
        return np.zeros(0, dtype)
    found = np.frombuffer(array.buffers()[1], dtype, len(array), array.offset * dtype.itemsize)
    if array.null_count:
        found = np.where(to_numpy(pc.is_null(array).cast(pa.int8())), np.asarray(missing, dtype), found)
    found.flags.writeable = False
    return found


def from_floats(values: Sequence[float | None]) -> pa.Array:
    """Return numbers as an Arrow array; None stands for one that is missing."""
    known = np.array([value is not None for value in values], dtype=np.bool_)
    return from_numpy(np.array([0.0 if value is None else value for value in values], dtype=np.float64), known)


def from_names(names: Sequence[str | None]) -> pa.Array:
    """Return names as an Arrow array; None stands for one that is missing."""
    known = np.array([name is not None for name in names], dtype=np.bool_)
    encoded = [b"" if name is None else name.encode() for name in names]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    buffers = [_validity(known), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.large_string(), len(encoded), buffers)


def _validity(known: npt.NDArray[np.bool_] | None) -> pa.Buffer | None:
    """Return a bit per value, as Arrow keeps them; None where all are known."""
    return None if known is None or known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
