"""Tables of typed columns: Parquet files, pandas frames, Arrow tables, and whatever else hands out Arrow streams.

Of a Parquet file only the columns of facts are read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ukge.errors import DataError
from ukge.graph.arrow import from_names
from ukge.graph.columns import (
    CONFIDENCE_HINT,
    NAME_HINT,
    NUMBER,
    UTF8_HINT,
    Confidences,
    Names,
    Where,
    confidence_column,
    is_unicode,
    names_column,
)
from ukge.graph.fact import TRIPLE
from ukge.graph.files import CHECKSUMS, checksum
from ukge.graph.findings import Findings
from ukge.graph.formats import Format, is_from, readers
from ukge.graph.readers.faults import chosen, where_of
from ukge.graph.readers.layout import BESIDES, FACTS, ColumnMap, Roles, assign_roles, percent_hint
from ukge.graph.readers.parsed import Parsed, Request, one_relation


@dataclass(frozen=True)
class Wrong:
    """Rows of a column that do not hold what they must."""

    label: str
    rows: npt.NDArray[np.bool_]
    what: str
    values: Any
    hints: Callable[[str], list[str]]


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of a table that a fact is made of, by role, with the names of all its columns.

    What single rows hold wrong is missing in what it returns, and told by `wrong`. A column of one type that is neither
    names nor numbers is an error.
    """

    arrays: Mapping[str, Any]
    roles: Mapping[str, int]
    names: Sequence[str]
    where: Where
    wrong: list[Wrong] = field(default_factory=list)

    def label(self, role: str) -> str:
        """Return what a column is called in errors."""
        name = self.names[self.roles[role]]
        return name if name == role else f"{name} ({role})"

    def texts(self, role: str) -> Names:
        """Return a column of names, which may be whole numbers."""
        array, label = self.arrays[role], self.label(role)
        if isinstance(array, np.ndarray):
            return self._mixed_names(array, label, role)
        _check_type(array, label, self.where, _is_name, "names (text or integers)")
        return names_column(array, label)

    def ids(self, role: str) -> Any:
        """Return a column of ids; −1 stands for one that is missing."""
        array, label = self.arrays[role], self.label(role)
        _check_type(array, label, self.where, pa.types.is_integer, "integer ids, because a vocabulary is given")
        if array.null_count == 0:
            return array.to_numpy()
        missing = np.asarray(pc.is_null(array), np.bool_)
        self.wrong.append(Wrong(label, missing, "id is missing", None, partial(_hints, NAME_HINT)))
        return array.fill_null(-1).to_numpy()

    def numbers(self, role: str) -> Confidences:
        """Return a column of numbers; text that is a number is one."""
        array, label = self.arrays[role], self.label(role)
        if isinstance(array, np.ndarray):
            array = pa.array([_as_text(value) for value in array.tolist()], pa.large_string())
        if is_text(array.type):
            text = pc.utf8_trim_whitespace(array.cast(pa.large_string()))
            known = pc.match_substring_regex(text, f"^(?:{NUMBER})$", ignore_case=True)
            wrong = np.asarray(pc.invert(known).fill_null(False), np.bool_)
            if wrong.any():
                self.wrong.append(Wrong(label, wrong, f"{role} is not a number", text, _number_hints))
            array = pc.if_else(known, text, None).cast(pa.float64())
        _check_type(array, label, self.where, _is_number, "numbers")
        return confidence_column(array)

    def tell(self, found: Findings) -> npt.NDArray[np.bool_]:
        """Tell of all rows that are wrong, and return which they are."""
        rows = len(self.arrays["head"])
        wrong = np.logical_or.reduce([np.zeros(rows, np.bool_), *(each.rows for each in self.wrong)])
        for row in np.flatnonzero(wrong).tolist():
            found.row = self._shown(row) if found.lenient else None
            for each in self.wrong:
                if each.rows[row]:
                    value = None if each.values is None else _as_text(_plain(each.values[row]))
                    found.add(each.what, row, each.label, value, *each.hints(value or ""))
        found.row = None
        return np.asarray(wrong)

    def refuse(self) -> None:
        """Raise `DataError` if any row is wrong."""
        found = Findings(self.where.source, self.where.place)
        self.tell(found)
        found.stop(len(self.arrays["head"]))

    def _mixed_names(self, values: npt.NDArray[Any], label: str, role: str) -> Names:
        """Return the texts of a column that holds other things beside, which are wrong."""
        listed = values.tolist()
        missing = [value is None or value != value for value in listed]  # noqa: PLR0124 — NaN
        text = np.array([gone or isinstance(value, str) for gone, value in zip(missing, listed, strict=True)], np.bool_)
        whole = np.array([not isinstance(value, str) or is_unicode(value) for value in listed], np.bool_)
        for sound, what, hint in (
            (text, f"{role} is not text", "Names are text: convert the column to strings first."),
            (whole, f"{role} holds half a surrogate pair", UTF8_HINT),
        ):
            if not sound.all():
                self.wrong.append(Wrong(label, ~sound, what, values, partial(_hints, hint)))
        kept = text & whole & ~np.array(missing, np.bool_)
        return from_names([value if keep else None for value, keep in zip(listed, kept, strict=True)])

    def _shown(self, row: int) -> str:
        values = {role: _plain(array[row]) for role, array in self.arrays.items()}
        return json.dumps(values, ensure_ascii=False, default=str)


def is_pandas_frame(source: object) -> bool:
    """Return whether an object is a pandas frame."""
    return is_from(source, "pandas") and hasattr(source, "columns")


def columns_of(table: Any, columns: ColumnMap | None = None, wanted: Roles = FACTS) -> Columns:
    """Find out which column of a pandas frame, an Arrow table or stream is which; an index is not looked at."""
    if is_pandas_frame(table):
        names, where = [str(name) for name in table.columns], Where("pandas frame")
    else:
        table = arrow_table(table)
        names, where = table.column_names, Where("Arrow table")
    roles = assign_roles(len(names), header=names, columns=columns, source=where.source, wanted=wanted)
    if isinstance(table, pa.Table):
        return Columns({role: table.column(at) for role, at in roles.items()}, roles, names, where)
    return Columns({role: _series(table.iloc[:, at]) for role, at in roles.items()}, roles, names, where)


def read_table(
    table: Any, request: Request, *, columns: ColumnMap | None = None, relation: str | None = None
) -> Parsed:
    """Read the rows of a pandas frame, an Arrow table, a record batch, or anything with an Arrow stream.

    All facts have the one given `relation` if no column says it.
    """
    return parsed_columns(columns_of(table, columns, request.wanted.given(relation)), request, relation)


def read_parquet(
    path: Path, request: Request, *, columns: ColumnMap | None = None, relation: str | None = None
) -> Parsed:
    """Read the facts of a Parquet file, one per row; all have the one given `relation` if no column says it."""
    with opened_parquet(path) as file:
        names, wanted = file.schema_arrow.names, request.wanted.given(relation)
        roles = assign_roles(len(names), header=names, columns=columns, source=str(path), wanted=wanted)
        table = checked(file.read(columns=[names[at] for at in roles.values()]))
        _check_checksums(file, table)
    found = Columns({role: table[names[at]] for role, at in roles.items()}, roles, names, Where(str(path)))
    return parsed_columns(found, request, relation)


@contextmanager
def opened_parquet(path: Path) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file; one that cannot be read is a `DataError`."""
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            yield file
    except (pa.ArrowException, OSError, UnicodeError, MemoryError, OverflowError) as error:
        raise DataError(
            f"is no readable Parquet file: {error}",
            source=str(path),
            hint="Fetch or write the file again, or name its true format: ‹format=...›.",
        ) from None


def parsed_columns(found: Columns, request: Request, relation: str | None = None) -> Parsed:
    """Return typed columns as raw facts, refusing types that hold neither names nor numbers."""
    rows = len(found.arrays["head"])
    facts = {} if relation is None else {"relation": one_relation(relation, rows, request)}
    for role in TRIPLE:
        if role in found.roles:
            facts[role] = found.texts(role) if request.of(role) is None else found.ids(role)
    facts["weight"] = found.numbers("confidence")
    facts["source"] = found.texts("source") if "source" in found.roles else None
    ignored = tuple(name for at, name in enumerate(found.names) if at not in found.roles.values())
    told = request.findings(found.where.source, found.where.place)
    besides = {role: beside(found.arrays[role]) for role in BESIDES if role in found.roles}
    if not found.wrong:
        return Parsed(**facts, where=found.where, rows=rows, ignored_columns=ignored, besides=besides)
    kept = ~found.tell(told)
    told.checked = rows
    return Parsed(
        **{role: chosen(column, kept) for role, column in facts.items()},
        besides={role: chosen(column, kept) for role, column in besides.items()},
        where=where_of(found.where, kept),
        rows=int(kept.sum()),
        ignored_columns=ignored,
        found=told,
    )


def beside(array: Any) -> Any:
    """Return a column of what stands beside facts as it is; values without a common type are text."""
    return pa.array([_as_text(value) for value in array], pa.large_string()) if isinstance(array, np.ndarray) else array


def _check_checksums(file: pq.ParquetFile, table: pa.Table) -> None:
    """Raise `pa.ArrowInvalid` if a column is not what we wrote; files of others have no such checksums."""
    said = (file.metadata.metadata or {}).get(CHECKSUMS.encode())
    if said is None:
        return
    try:
        known = dict(json.loads(said))
    except (ValueError, TypeError):
        known = {}
    if list(known) != file.schema_arrow.names:
        raise pa.ArrowInvalid("its footer is damaged: it does not say the columns that were written")
    for name in table.column_names:
        if checksum(table[name].cast(pa.float64() if name == "confidence" else pa.large_string())) != known[name]:
            raise pa.ArrowInvalid(f"column {name} does not have the checksum that it was written with")


def checked(table: pa.Table) -> pa.Table:
    """Return a table from a file, once its columns are known to be what they say: UTF-8, and indices that exist."""
    table.validate(full=True)
    return table


def arrow_table(stream: Any) -> pa.Table:
    """Return an Arrow table as it is, and a record batch or whatever hands out an Arrow stream as one."""
    if isinstance(stream, pa.Table):
        return stream
    try:
        return pa.Table.from_batches([stream]) if isinstance(stream, pa.RecordBatch) else pa.table(stream)
    except (TypeError, ValueError, pa.ArrowInvalid) as error:
        raise DataError(f"cannot be read as an Arrow table: {error}") from None


def _series(series: Any) -> Any:
    """Return a column of a frame as Arrow, or, if its values have no common type, as they are."""
    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError):
        values = series.to_numpy(dtype=object)
    if all(isinstance(value, (int, np.integer)) and not isinstance(value, bool) for value in values):
        return names_column(values, str(series.name))  # of more digits than Arrow has numbers for
    return values


def _hints(hint: str, _value: str) -> list[str]:
    return [hint]


def _number_hints(value: str) -> list[str]:
    return [CONFIDENCE_HINT, *percent_hint(value)]


def _as_text(value: Any) -> str | None:
    """Return what stands in a column of anything, as a number or as text."""
    if value is None or (isinstance(value, float) and value != value):  # noqa: PLR0124 — NaN
        return None
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else str(value)


def _plain(value: Any) -> Any:
    return value.as_py() if isinstance(value, pa.Scalar) else value


def _check_type(array: Any, label: str, where: Where, allowed: Any, wanted: str) -> None:
    if len(array) and not allowed(array.type):
        raise DataError(
            f"column {label} must hold {wanted}, but holds {array.type}",
            source=where.source,
            hint="Convert the column, or choose another with ‹columns=...›.",
        )


def _is_name(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.types.is_integer(kind) or pa.types.is_null(kind) or is_text(kind)


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column of this type holds text."""
    return any(check(kind) for check in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def _is_number(kind: pa.DataType) -> bool:
    checks = (pa.types.is_floating, pa.types.is_integer, pa.types.is_decimal, pa.types.is_null)
    return any(check(kind) for check in checks)


readers.register("pandas")(Format(read_table, module="pandas"))
readers.register("arrow")(Format(read_table, module="pyarrow"))
readers.register("parquet")(Format(read_parquet, (".parquet", ".pq")))
