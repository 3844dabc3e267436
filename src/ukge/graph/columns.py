"""What comes from outside → checked Arrow and NumPy columns of an uncertain graph."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ukge.errors import SHOWN, DataError, Problem
from ukge.graph.arrow import from_names, from_numpy, to_numpy
from ukge.graph.vocabulary import Ids, Vocabulary, encode_names

Rows = npt.NDArray[np.int64]

CONFIDENCE_HINT = (
    "Confidences are numbers from 0 to 1. Normalise other weights when reading, for example with ‹scale='minmax:0,1'›."
)
NAME_HINT = "Every fact needs a head, a relation and a tail; mend or remove these rows."
CHOICE_HINT = "Choose facts by name with graph.where: by relation, head, tail or entity."
UTF8_HINT = "Names are UTF-8 text; convert the data to UTF-8 first, for example with iconv."


# Exactly what Arrow's CSV reader takes for a number, so that all readers agree: no 0_1, no digits of other scripts.
# Each digit has one place in it: were there two, a long row of them would be tried in every division.
NUMBER = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?(nan|inf|infinity)"
_NUMBER = re.compile(NUMBER, re.IGNORECASE)


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
    error = DataError(what, source=where.source, problems=problems, count=len(rows), hint=hint)
    error.rows = rows.tolist()
    raise error


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


Confidences = npt.NDArray[np.float64]
Names: TypeAlias = "pa.Array | pa.ChunkedArray"
SOURCE_TYPE = pa.dictionary(pa.int32(), pa.large_string())
_NAME_TYPES = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())


def fact_table(head: Ids, relation: Ids, tail: Ids, confidence: Confidences, source: Any = None) -> pa.Table:
    """Return the table of a graph from checked columns."""
    columns = {
        "head": from_numpy(np.asarray(head, np.int32)),
        "relation": from_numpy(np.asarray(relation, np.int32)),
        "tail": from_numpy(np.asarray(tail, np.int32)),
        "confidence": from_numpy(np.asarray(confidence, np.float64)),
    }
    if source is not None:
        columns["source"] = source_column(source, len(confidence))
    return pa.table(columns)


def source_column(source: Any, length: int) -> pa.Array:
    """Return where each fact came from, dictionary-encoded; one name stands for all facts, an empty one for none."""
    if isinstance(source, str):
        source = pa.array([source], type=pa.large_string()).take(pa.array(np.zeros(length, np.int64)))
    array = source.combine_chunks() if isinstance(source, pa.ChunkedArray) else source
    if not isinstance(array, pa.Array):
        array = names_column(array, "source")
    if len(array) != length:
        raise DataError(f"{len(array):,} sources do not fit {length:,} facts")
    encoded = array.cast(pa.large_string()).dictionary_encode()
    if pc.any(pc.equal(encoded.dictionary, "")).as_py():
        text = array.cast(pa.large_string())
        encoded = pc.if_else(pc.equal(text, ""), None, text).dictionary_encode()
    return encoded.cast(SOURCE_TYPE)


def joined_sources(sources: Sequence[pa.Array | None], lengths: Sequence[int]) -> pa.Array | None:
    """Return the sources of several graphs, one after another, or None if none of them has any."""
    if all(source is None for source in sources):
        return None
    text = pa.large_string()
    known = zip(sources, lengths, strict=True)
    return pa.concat_arrays([pa.nulls(n, text) if source is None else source.cast(text) for source, n in known])


def names_column(values: Any, column: str) -> Names:
    """Return names as Arrow strings (or UTF-8 bytes), without a copy where they are that already.

    Whole numbers are names too, as long as all are.
    """
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values if values.type in _NAME_TYPES else values.cast(pa.large_string())
    try:
        if isinstance(values, list) and all(type(value) is str for value in values):
            return from_names(values)
        return pa.array(values, type=pa.large_string(), from_pandas=True)
    except UnicodeEncodeError:
        problems = [
            Problem("name is not valid Unicode text", row, column, value, "row")
            for row, value in enumerate(values)
            if isinstance(value, str) and not is_unicode(value)
        ]
        what = f"{len(problems):,} names in column {column} hold half a surrogate pair"
        raise DataError(what, problems=problems, hint="Mend these names; they cannot be written as UTF-8.") from None
    except (pa.ArrowTypeError, pa.ArrowInvalid, TypeError) as error:
        if all(isinstance(value, (int, np.integer)) and not isinstance(value, bool) for value in values):
            return pa.array([str(value) for value in values], type=pa.large_string())
        what = f"names in column {column} must be text: {error}"
        raise DataError(what, hint="Convert the column to strings first.") from None


def confidence_column(values: Any) -> Confidences:
    """Return confidences as float64, never sharing memory that the caller could change."""
    try:
        if isinstance(values, (pa.Array, pa.ChunkedArray)):
            return np.ascontiguousarray(values.cast(pa.float64()).to_numpy(zero_copy_only=False), dtype=np.float64)
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise DataError(f"confidences must be numbers: {error}") from None


def encode_column_names(
    columns: dict[str, Names], vocabulary: Vocabulary | None, kind: str, where: Where = NOWHERE
) -> tuple[list[Ids], Vocabulary]:
    """Return the ids of the columns and their vocabulary: the given one, or one of the names in the columns."""
    for column, names in columns.items():
        if names.null_count:
            check_names(names, column, where=where)
    if vocabulary is not None:
        return [_known(names, vocabulary, column, where) for column, names in columns.items()], vocabulary
    try:
        ids, names = encode_names(list(columns.values()))
    except pa.ArrowInvalid as error:
        raise DataError(f"names are not UTF-8 text: {error}", source=where.source, hint=UTF8_HINT) from None
    if empty_names(names).any():
        for column, values in columns.items():
            check_names(values, column, where=where)
    return ids, Vocabulary.trusted(names, kind)


def id_column(ids: npt.ArrayLike, vocabulary: Vocabulary, column: str, where: Where = NOWHERE) -> Ids:
    """Return ids as int32 after checking that the vocabulary has them; never shares memory with the caller's."""
    array = np.asarray(ids)
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise DataError(f"column {column} must hold integer ids, not {array.dtype}", source=where.source)
    wrong = np.flatnonzero((array < 0) | (array >= len(vocabulary)))
    what = f"{len(wrong):,} ids in column {column} are outside 0…{len(vocabulary) - 1}"
    hint = f"The vocabulary holds {len(vocabulary):,} {vocabulary.kind} names; ids count from 0."
    refuse_rows(what, wrong, lambda row: ("no such id", str(array[row])), column, where, hint)
    return np.array(array, dtype=np.int32)


def same_length(columns: dict[str, Any]) -> None:
    """Raise `DataError` unless all columns are equally long."""
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"columns differ in length: {lengths}")


def single(table: pa.Table, column: str | int) -> pa.Array:
    """Return a column of a table as one array, without a copy if it is one already."""
    chunked = table[column]
    return chunked.chunk(0) if chunked.num_chunks == 1 else chunked.combine_chunks()


def used_names(vocabulary: Vocabulary, columns: Sequence[Ids]) -> tuple[Vocabulary, list[Ids]]:
    """Return the vocabulary without names that no column uses, and the columns in its ids."""
    used = np.zeros(len(vocabulary), dtype=np.bool_)
    for column in columns:
        used[column] = True
    new = (np.cumsum(used) - 1).astype(np.int32)
    kept = Vocabulary.trusted(vocabulary.names.filter(pa.array(used)), vocabulary.kind)
    return kept, [new[column] for column in columns]


def _known(names: Names, vocabulary: Vocabulary, column: str, where: Where) -> Ids:
    ids = vocabulary.encode(names)
    unknown = np.flatnonzero(ids < 0)
    wrong = f"{vocabulary.kind} is not in the vocabulary"
    what = f"{len(unknown):,} unknown names in column {column}"
    refuse_rows(what, unknown, lambda row: (wrong, names[row].as_py()), column, where, None)
    return ids


def is_unicode(text: str) -> bool:
    """Return whether a text can be written as UTF-8: halves of surrogate pairs cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


class IdColumn(np.ndarray[tuple[int, ...], np.dtype[np.int32]]):
    """Ids that refuse to be compared with names: NumPy's answer, False everywhere, would silently select nothing.

    What is computed from them is a plain array.
    """

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """Return a result as a plain array, or as a number."""
        plain = np.asarray(array)
        return plain[()] if return_scalar else plain

    def __eq__(self, other: object) -> Any:
        _refuse_names(other)
        return super().__eq__(other)

    def __ne__(self, other: object) -> Any:
        _refuse_names(other)
        return super().__ne__(other)

    __hash__ = None


def _refuse_names(other: object) -> None:
    first = other[0] if isinstance(other, (list, tuple)) and other else other
    if isinstance(first, str) or getattr(getattr(other, "dtype", None), "kind", "") in ("U", "T"):
        raise DataError(f"a column of ids is compared with {first!r}, a name", hint=CHOICE_HINT)


def chosen_rows(rows: Any, length: int) -> npt.NDArray[np.int64]:
    """Return the rows that a mask or a list of indices chooses among `length`; negative indices count from the end."""
    picks = np.asarray(rows)
    if picks.ndim != 1:
        raise DataError(f"facts are chosen by a mask or by a list of rows, not by {rows!r}", hint=CHOICE_HINT)
    if picks.dtype == np.bool_:
        if len(picks) != length:
            raise DataError(f"a mask of {len(picks):,} cannot choose among {length:,} facts")
        return np.flatnonzero(picks)
    if picks.size == 0:
        return np.zeros(0, dtype=np.int64)
    if not np.issubdtype(picks.dtype, np.integer):
        raise DataError(f"facts are chosen by a mask or by whole numbers, not by {picks.dtype}", hint=CHOICE_HINT)
    if picks.min() < -length or picks.max() >= length:
        wrong = picks[(picks < -length) | (picks >= length)][0]
        raise DataError(f"there is no fact {wrong} among {length:,}")
    return np.where(picks < 0, picks + length, picks).astype(np.int64)
