"""The weights of a model, as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.integer[Any]]
State = dict[str, npt.NDArray[Any]]

LINE = 64
"""Bytes of a cache line."""


@dataclass
class Parameters:
    """The weights of a model, as plain arrays that both engines and every predictor share.

    `entity` and `relation` hold one row per name; `link` holds the weight w and the bias b of φ (eq. 3 and 4).
    """

    entity: Floats
    relation: Floats
    link: Floats = field(default_factory=lambda: np.array([1.0, 0.0], dtype=np.float32))

    def copy(self) -> Parameters:
        """Return parameters that share nothing with these."""
        return Parameters(self.entity.copy(), self.relation.copy(), self.link.copy())

    def as_dict(self) -> State:
        """Return the arrays by name."""
        return {"entity": self.entity, "relation": self.relation, "link": self.link}

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.as_dict().values())


def aligned_zeros(*shape: int) -> Floats:
    """Return a table of zeros that begins at a cache line; its pages are not touched until somebody writes to them.

    NumPy's own begin 16 bytes after one, so that every second vector load of a row crosses two lines.
    """
    n_bytes = int(np.prod(shape, dtype=np.int64)) * 4
    memory = np.zeros(n_bytes + LINE, dtype=np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start : start + n_bytes].view(np.float32).reshape(shape)
