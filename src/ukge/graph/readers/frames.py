"""Tables of typed columns: Parquet files, pandas frames, Arrow tables, and whatever else hands out Arrow streams.

Of a Parquet file only the columns of facts are read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ukge.errors import DataError
from ukge.graph.columns import NAME_HINT, Confidences, Names, Where, confidence_column, names_column, refuse_rows
from ukge.graph.fact import TRIPLE
from ukge.graph.files import CHECKSUMS, checksum
from ukge.graph.formats import Format, is_from, readers
from ukge.graph.readers.layout import FACTS, ColumnMap, Roles, assign_roles
from ukge.graph.readers.parsed import Parsed, Request, one_relation


@dataclass(frozen=True, eq=False)
class Columns:
    """The columns of a table that a fact is made of, by role, with the names of all its columns."""

    arrays: Mapping[str, Any]
    roles: Mapping[str, int]
    names: Sequence[str]
    where: Where

    def label(self, role: str) -> str:
        """Return what a column is called in errors."""
        name = self.names[self.roles[role]]
        return name if name == role else f"{name} ({role})"

    def texts(self, role: str) -> Names:
        """Return a column of names, which may be whole numbers."""
        _check_type(self.arrays[role], self.label(role), self.where, _is_name, "names (text or integers)")
        return names_column(self.arrays[role], self.label(role))

    def ids(self, role: str) -> Any:
        """Return a column of ids."""
        return _ids(self.arrays[role], self.label(role), self.where)

    def numbers(self, role: str) -> Confidences:
        """Return a column of numbers; text that is a number is one."""
        array, label = self.arrays[role], self.label(role)
        if is_text(array.type):
            try:
                array = array.cast(pa.large_string()).cast(pa.float64())
            except pa.ArrowInvalid as error:
                what = f"column {label} must hold numbers: {error}"
                raise DataError(what, source=self.where.source, hint="Mend these values.") from None
        _check_type(array, label, self.where, _is_number, "numbers")
        return confidence_column(array)


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
    return Columns({role: _series(table.iloc[:, at], names[at]) for role, at in roles.items()}, roles, names, where)


def read_table(
    table: Any, request: Request, *, columns: ColumnMap | None = None, relation: str | None = None
) -> Parsed:
    """Read the rows of a pandas frame, an Arrow table, a record batch, or anything with an Arrow stream.

    All facts have the one given `relation` if no column says it.
    """
    return parsed_columns(columns_of(table, columns, FACTS.given(relation)), request, relation)


def read_parquet(
    path: Path, request: Request, *, columns: ColumnMap | None = None, relation: str | None = None
) -> Parsed:
    """Read the facts of a Parquet file, one per row; all have the one given `relation` if no column says it."""
    with opened_parquet(path) as file:
        names, wanted = file.schema_arrow.names, FACTS.given(relation)
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
    return Parsed(
        **facts,
        weight=found.numbers("confidence"),
        source=found.texts("source") if "source" in found.roles else None,
        where=found.where,
        rows=rows,
        ignored_columns=tuple(name for at, name in enumerate(found.names) if at not in found.roles.values()),
    )


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


def _series(series: Any, name: str) -> pa.Array:
    try:
        array = pa.array(series, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError):
        array = names_column(series.to_numpy(dtype=object), name)
    return array


def _ids(array: Any, label: str, where: Where) -> Any:
    _check_type(array, label, where, pa.types.is_integer, "integer ids, because a vocabulary is given")
    rows = pc.indices_nonzero(pc.is_null(array)).to_numpy()
    refuse_rows("ids are missing", rows, lambda _: ("id is missing", None), label, where, NAME_HINT)
    return array.to_numpy()


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
