"""One fact by name, many as rows, and many as columns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy.typing as npt

from ukge.errors import DataError, Problem
from ukge.graph.columns import Confidences

TRIPLE = ("head", "relation", "tail")
REQUIRED = (*TRIPLE, "confidence")
ROLES = (*REQUIRED, "source")
"""What columns of facts are for, in their usual order."""


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


def rows_of(facts: Iterable[Any], fewest: int) -> list[tuple[Any, ...]]:
    """Return facts given as tuples or the like, each of `fewest` to 5 parts."""
    rows, problems = [], []
    for at, fact in enumerate(facts):
        row = () if isinstance(fact, (str, bytes)) or not hasattr(fact, "__len__") else tuple(fact)
        if not fewest <= len(row) <= len(Fact._fields):
            problems.append(Problem(f"no fact of {fewest} to 5 parts", at, None, str(fact), "fact"))
        rows.append(row)
    if problems:
        raise DataError(
            f"{len(problems):,} facts have the wrong number of parts",
            problems=problems,
            hint=f"One fact is a tuple ({', '.join(Fact._fields[:fewest])}), several are a list of such tuples.",
        )
    return rows
