"""One fact by name, and many as columns."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy.typing as npt

from ukge.graph.columns import Confidences


class Fact(NamedTuple):
    """One fact by name."""

    head: str
    relation: str
    tail: str
    confidence: float
    source: str | None = None


class FactArrays(NamedTuple):
    """Many facts as NumPy columns; names (object arrays) or ids (int32), as asked for."""

    head: npt.NDArray[Any]
    relation: npt.NDArray[Any]
    tail: npt.NDArray[Any]
    confidence: Confidences
