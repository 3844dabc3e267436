"""The boundary: every fact is checked here once, fully, before it becomes part of a graph."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ukge.errors import SHOWN, DataError, Problem
from ukge.graph.arrow import to_numpy

Rows = npt.NDArray[np.int64]

CONFIDENCE_HINT = (
    "Confidences are numbers from 0 to 1. Normalise other weights when reading, for example with ‹scale='minmax:0,1'›."
)
MANY = 100_000
"""Problems of a source after which it is not worth reading on."""
NAME_HINT = "Every fact needs a head, a relation and a tail; mend or remove these rows."
UTF8_HINT = "Names are UTF-8 text; convert the data to UTF-8 first, for example with iconv."


# Exactly what Arrow's CSV reader takes for a number, so that all readers agree: no 0_1, no digits of other scripts.
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(nan|inf|infinity)", re.IGNORECASE)


def as_number(text: str) -> float | None:
    """Return the number that a text is, or None if it is none."""
    return float(text) if _NUMBER.fullmatch(text) else None


@dataclass(frozen=True)
class Where:
    """Where rows came from, so that an error can name the file and the line.

    `lines` turns rows (counted from 0) into what `place` counts; without it a problem names the row itself.
    """

    source: str | None = None
    place: str = "row"
    lines: Callable[[Rows], Sequence[int]] | None = None

    def locate(self, rows: Rows) -> list[int]:
        """Return the line, or whatever `place` counts, of each row."""
        return [int(row) for row in (rows if self.lines is None else self.lines(rows))]


NOWHERE = Where()


class Findings:
    """Problems found while going through one source."""

    def __init__(self, source: str | None, place: str = "line") -> None:
        self.source = source
        self.place = place
        self.count = 0
        self._shown: list[Problem] = []
        self._hints: dict[str, None] = {}

    def add(self, what: str, line: int | None, column: str | None, value: str | None, *hints: str) -> None:
        """Note one problem, and what may be done about it."""
        self.count += 1
        self._hints.update(dict.fromkeys(hints))
        if len(self._shown) < SHOWN:
            self._shown.append(Problem(what, line, column, value, self.place))
        if self.count == MANY:
            self.stop(0)

    def stop(self, checked: int) -> None:
        """Raise `DataError` if anything was found in the `checked` lines."""
        if self.count == 0:
            return
        problems = _counted(self.count, "problem") + (" or more" if self.count == MANY else "")
        raise DataError(
            f"{problems} in {_counted(checked, self.place)}" if checked else problems,
            source=self.source,
            problems=self._shown,
            count=self.count,
            hint=" ".join(self._hints),
        )


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def refuse_rows(
    what: str, rows: Rows, tell: Callable[[int], tuple[str, str | None]], column: str, where: Where, hint: str | None
) -> None:
    """Raise `DataError` if there are any rows; `tell` says of a row what is wrong and which value it has."""
    if len(rows) == 0:
        return
    first = rows[:SHOWN]
    problems = []
    for at, row in zip(where.locate(first), first.tolist(), strict=True):
        wrong, value = tell(row)
        problems.append(Problem(wrong, at, column, value, where.place))
    raise DataError(what, source=where.source, problems=problems, count=len(rows), hint=hint)


def bad_confidences(confidence: npt.NDArray[np.float64]) -> Rows:
    """Return the rows whose confidence is missing, NaN or outside [0, 1]."""
    with np.errstate(invalid="ignore"):
        return np.flatnonzero(~((confidence >= 0.0) & (confidence <= 1.0)))


def confidence_problem(value: float, column: str = "confidence") -> str:
    """Say what is wrong with a number that is not in [0, 1]."""
    if np.isnan(value):
        return f"{column} is missing or not a number"
    return f"{column} is not finite" if np.isinf(value) else f"{column} is outside [0, 1]"


def check_confidence(
    confidence: npt.NDArray[np.float64], *, where: Where = NOWHERE, column: str = "confidence"
) -> None:
    """Raise `DataError` unless every confidence (or label, as `column` says) lies in [0, 1]."""
    rows = bad_confidences(confidence)
    what = f"{len(rows):,} of {len(confidence):,} facts have a {column} that is not in [0, 1]"

    def tell(row: int) -> tuple[str, str]:
        return confidence_problem(float(confidence[row]), column), f"{confidence[row]:g}"

    refuse_rows(what, rows, tell, column, where, CONFIDENCE_HINT)


def empty_names(names: pa.Array | pa.ChunkedArray) -> npt.NDArray[np.bool_]:
    """Return which names are missing or nothing but white space."""
    text = names.cast(pa.large_string())
    lengths = pc.binary_length(pc.utf8_trim_whitespace(text))
    whole = lengths.combine_chunks() if isinstance(lengths, pa.ChunkedArray) else lengths
    return np.asarray(to_numpy(whole, missing=0) == 0, dtype=np.bool_)


def check_names(names: pa.Array | pa.ChunkedArray, column: str, *, where: Where = NOWHERE) -> None:
    """Raise `DataError` for missing names and names of nothing but white space."""
    rows = np.flatnonzero(empty_names(names))
    what = f"{len(rows):,} of {len(names):,} facts have no {column} name"
    refuse_rows(what, rows, lambda row: (f"{column} name is empty", names[row].as_py()), column, where, NAME_HINT)
