"""The boundary: every fact is checked here once, fully, before it becomes part of a graph."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ukge.errors import SHOWN, DataError, Problem

CONFIDENCE_HINT = (
    "Confidences are numbers from 0 to 1. Normalise other weights when reading, "
    "with scale=... in Python or --normalise on the command line."
)
NAME_HINT = "Every fact needs a head, a relation and a tail; mend or remove these rows."


def bad_confidences(confidence: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return the rows whose confidence is missing, NaN or outside [0, 1]."""
    with np.errstate(invalid="ignore"):
        return np.flatnonzero(~((confidence >= 0.0) & (confidence <= 1.0)))


def check_confidence(
    confidence: npt.NDArray[np.float64],
    *,
    source: str | None = None,
    locate: Callable[[int], int] | None = None,
    place: str = "row",
) -> None:
    """Raise `DataError` unless every confidence lies in [0, 1]; `locate` turns a row into what `place` counts."""
    rows = bad_confidences(confidence)
    if len(rows) == 0:
        return
    problems = []
    for row in rows[:SHOWN]:
        value = float(confidence[row])
        what = "confidence is missing or not a number" if np.isnan(value) else "confidence is outside [0, 1]"
        at = int(row) if locate is None else locate(int(row))
        problems.append(Problem(what, line=at, column="confidence", value=f"{value:g}", place=place))
    raise DataError(
        f"{len(rows):,} of {len(confidence):,} facts have a confidence that is not in [0, 1]",
        source=source,
        problems=problems,
        count=len(rows),
        hint=CONFIDENCE_HINT,
    )


def check_names(
    names: pa.Array | pa.ChunkedArray,
    column: str,
    *,
    source: str | None = None,
    locate: Callable[[int], int] | None = None,
    place: str = "row",
) -> None:
    """Raise `DataError` for missing names and names of nothing but white space."""
    empty = pc.fill_null(pc.equal(pc.binary_length(pc.utf8_trim_whitespace(names)), 0), True)
    if not pc.any(empty).as_py():
        return
    mask = np.asarray(empty)
    rows = np.flatnonzero(mask)
    problems = [
        Problem(
            f"{column} name is empty",
            line=int(row) if locate is None else locate(int(row)),
            column=column,
            value=names[int(row)].as_py(),
            place=place,
        )
        for row in rows[:SHOWN]
    ]
    raise DataError(
        f"{len(rows):,} of {len(names):,} facts have no {column} name",
        source=source,
        problems=problems,
        count=len(rows),
        hint=NAME_HINT,
    )
