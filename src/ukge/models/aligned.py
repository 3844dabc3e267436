"""Tables whose rows begin at a cache line.

NumPy's own begin 16 bytes after one, so that every second vector load of a row crosses two lines.
"""

from __future__ import annotations

import numpy as np

from ukge.models.parameters import Floats

LINE = 64
"""Bytes of a cache line."""


def aligned_zeros(*shape: int) -> Floats:
    """Return a table of zeros that begins at a cache line; its pages are not touched until somebody writes to them."""
    n_bytes = int(np.prod(shape, dtype=np.int64)) * 4
    memory = np.zeros(n_bytes + LINE, dtype=np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start : start + n_bytes].view(np.float32).reshape(shape)
