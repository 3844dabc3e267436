"""Between NumPy and Arrow without pandas: PyArrow's own ways load it wherever it is installed, for half a second."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc


def from_numpy(values: npt.NDArray[Any]) -> pa.Array:
    """Return whole or real numbers as an Arrow array that shares their memory."""
    kept = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(kept.dtype), len(kept), [None, pa.py_buffer(kept)])


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


def from_names(names: Sequence[str]) -> pa.Array:
    """Return names as an Arrow array."""
    encoded = [name.encode() for name in names]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int64)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.large_string(), len(encoded), buffers)
