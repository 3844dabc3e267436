"""What no graph can be made of, whichever reader it came from: told row by row, and left out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ukge.errors import DataError
from ukge.graph.columns import (
    CONFIDENCE_HINT,
    NAME_HINT,
    UTF8_HINT,
    Where,
    bad_confidences,
    confidence_problem,
    empty_names,
    names_column,
)
from ukge.graph.fact import ROLES, TRIPLE

if TYPE_CHECKING:
    from ukge.graph.findings import Findings
    from ukge.graph.readers.parsed import Parsed, Request

Mask = npt.NDArray[np.bool_]
_PIECE = 65_536


@dataclass(frozen=True)
class _Fault:
    """One kind of fault of many rows."""

    rows: Mask
    column: str
    what: Callable[[int], str]
    value: Callable[[int], str | None]
    hint: str


def without_faults(parsed: Parsed, request: Request, found: Findings) -> Parsed:
    """Return what was read without the rows that no graph can hold, all of which are told."""
    try:
        kept = sound_rows(parsed, request, found)
    except pa.ArrowInvalid as error:
        what = f"names are not UTF-8 text: {error}"
        raise DataError(what, source=parsed.where.source, hint=UTF8_HINT) from None
    if kept.all():
        return parsed
    columns = {role: chosen(getattr(parsed, role), kept) for role in (*TRIPLE, "weight", "source")}
    besides = {role: chosen(column, kept) for role, column in parsed.besides.items()}
    return replace(parsed, **columns, besides=besides, where=where_of(parsed.where, kept))


def sound_rows(parsed: Parsed, request: Request, found: Findings, column: str = "confidence") -> Mask:
    """Return which rows a graph can hold, with `column` as their weight; all others are told."""
    faults = [*_of_names(parsed, request), *_of_weights(parsed, request, column)]
    wrong = np.logical_or.reduce([fault.rows for fault in faults])
    wrong |= _unscalable(parsed, request, ~wrong, faults)
    _tell(parsed, np.flatnonzero(wrong), faults, found)
    return np.asarray(~wrong, np.bool_)


def where_of(where: Where, kept: Mask) -> Where:
    """Return what turns the rows that are kept into the places of all rows."""
    places = np.flatnonzero(kept)
    return Where(where.source, where.place, lambda rows: where.locate(places[rows]))


def chosen(column: Any, kept: Mask) -> Any:
    """Return the values of a column, of whatever kind, that are kept."""
    if column is None:
        return None
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        return column.filter(pa.array(kept))
    if isinstance(column, np.ndarray):
        return column[kept]
    return [value for value, keep in zip(column, kept.tolist(), strict=True) if keep]


def _of_names(parsed: Parsed, request: Request) -> Iterator[_Fault]:
    for role in TRIPLE:
        column, known = getattr(parsed, role), request.of(role)
        if parsed.vocabularies is not None:
            known = parsed.vocabularies[role == "relation"]
            empty = empty_names(known.names)[np.asarray(column)]
            yield _Fault(empty, role, lambda _, role=role: f"{role} name is empty", lambda _: None, NAME_HINT)  # type: ignore[misc]
        elif known is not None:
            ids = np.asarray(column)
            if not np.issubdtype(ids.dtype, np.integer):
                continue  # no row of it is an id: the source as a whole is refused
            hint = f"The vocabulary holds {len(known):,} {known.kind} names; ids count from 0."
            outside = (ids < 0) | (ids >= len(known))
            yield _Fault(outside, role, lambda _: "no such id", lambda row, ids=ids: str(ids[row]), hint)  # type: ignore[misc]
        else:
            names = names_column(column, role)
            yield _Fault(
                empty_names(names),
                role,
                lambda _, role=role: f"{role} name is empty",  # type: ignore[misc]
                lambda row, names=names: names[row].as_py(),  # type: ignore[misc]
                NAME_HINT,
            )


def _of_weights(parsed: Parsed, request: Request, column: str) -> Iterator[_Fault]:
    weight = parsed.weight

    def value(row: int) -> str:
        return f"{weight[row]:g}"

    if request.scale is not None:
        yield _Fault(~np.isfinite(weight), "confidence", lambda _: "weight is not a finite number", value, "Mend them.")
        return
    wrong = np.zeros(len(weight), np.bool_)
    wrong[bad_confidences(weight)] = True
    yield _Fault(wrong, column, lambda row: confidence_problem(float(weight[row]), column), value, CONFIDENCE_HINT)


def _unscalable(parsed: Parsed, request: Request, sound: Mask, faults: list[_Fault]) -> Mask:
    """Return which of the sound rows a scale refuses, or scales to what is no confidence; what it says is a fault."""
    left = sound.copy()
    while request.scale is not None and left.any():
        rows = np.flatnonzero(left)
        try:
            refused = rows[bad_confidences(np.asarray(request.scale(parsed.weight[rows]), np.float64))]
            what = "confidence is outside [0, 1] after scaling"
        except DataError as error:
            refused, what = rows[np.array(error.rows, np.int64)], error.problems[0].what if error.problems else ""
        if len(refused) == 0:
            break
        wrong = np.zeros(len(left), np.bool_)
        wrong[refused] = True
        left &= ~wrong
        faults.append(
            _Fault(
                wrong,
                "confidence",
                lambda _, what=what: what,  # type: ignore[misc]
                lambda row: f"{parsed.weight[row]:g}",
                CONFIDENCE_HINT,
            )
        )
    return sound & ~left


def _tell(parsed: Parsed, rows: npt.NDArray[np.int64], faults: list[_Fault], found: Findings) -> None:
    for start in range(0, len(rows), _PIECE):
        piece = rows[start : start + _PIECE]
        for row, line in zip(piece.tolist(), parsed.where.locate(piece), strict=True):
            found.row = _shown(parsed, row) if found.lenient else None
            for fault in faults:
                if fault.rows[row]:
                    found.add(fault.what(row), line, fault.column, fault.value(row), fault.hint)
    found.row = None


def _shown(parsed: Parsed, row: int) -> str:
    """Return a row of columns as JSON."""
    shown = {}
    for role in ROLES:
        column = parsed.weight if role == "confidence" else getattr(parsed, role)
        if column is None:
            continue
        value = column[row]
        value = value.as_py() if isinstance(value, pa.Scalar) else value
        if parsed.vocabularies is not None and role in TRIPLE:
            value = parsed.vocabularies[role == "relation"][int(value)]
        shown[role] = value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value
    return json.dumps(shown, ensure_ascii=False, default=str)
