"""Tables in memory: pandas frames, Arrow tables, and whatever else hands out Arrow streams (Polars, DuckDB, …)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ukge.errors import SHOWN, DataError, Problem
from ukge.graph.checks import NAME_HINT, Where
from ukge.graph.columns import confidence_column, names_column
from ukge.graph.formats import Format
from ukge.graph.readers.formats import readers
from ukge.graph.readers.layout import FACTS, NAMES, ColumnMap, assign_roles
from ukge.graph.readers.parsed import Parsed, Request, one_relation


def read_pandas(
    frame: Any, request: Request, *, columns: ColumnMap | None = None, relation: str | None = None
) -> Parsed:
    """Read the rows of a pandas frame; its index is not looked at. `relation` is that of all facts, if given."""
    names = [str(name) for name in frame.columns]
    where = Where("pandas frame")
    wanted = FACTS.given(relation)
    roles = assign_roles(len(names), header=names, columns=columns, source=where.source, wanted=wanted)
    arrays = {role: _series(frame.iloc[:, at], names[at]) for role, at in roles.items()}
    return parsed_columns(arrays, names, roles, request, where, relation)


def read_arrow(
    table: Any, request: Request, *, columns: ColumnMap | None = None, relation: str | None = None
) -> Parsed:
    """Read the rows of an Arrow table, record batch, or anything with an Arrow stream; `relation` as for pandas."""
    whole = table if isinstance(table, pa.Table) else _as_table(table)
    where = Where("Arrow table")
    names, wanted = whole.column_names, FACTS.given(relation)
    roles = assign_roles(whole.num_columns, header=names, columns=columns, source=where.source, wanted=wanted)
    arrays = {role: whole.column(at) for role, at in roles.items()}
    return parsed_columns(arrays, names, roles, request, where, relation)


def parsed_columns(
    arrays: dict[str, Any],
    names: list[str],
    roles: dict[str, int],
    request: Request,
    where: Where,
    relation: str | None,
) -> Parsed:
    """Return typed columns as raw facts, refusing types that hold neither names nor numbers."""
    labels = column_labels(names, roles)
    facts = {} if relation is None else {"relation": one_relation(relation, len(arrays["head"]), request)}
    for role in NAMES:
        if role in arrays:
            holds_ids = request.of(role) is not None
            facts[role] = (_ids if holds_ids else name_column)(arrays[role], labels[role], where)
    return Parsed(
        **facts,
        weight=number_column(arrays["confidence"], labels["confidence"], where),
        source=name_column(arrays["source"], labels["source"], where) if "source" in arrays else None,
        where=where,
        rows=len(arrays["head"]),
        ignored_columns=tuple(name for at, name in enumerate(names) if at not in roles.values()),
    )


def column_labels(names: list[str], roles: dict[str, int]) -> dict[str, str]:
    """Return what the column of each role is called in errors."""
    return {role: names[at] if names[at] == role else f"{names[at]} ({role})" for role, at in roles.items()}


def name_column(array: Any, label: str, where: Where) -> Any:
    """Return a column of names, which are text or integers."""
    _check_type(array, label, where, _is_name, "names (text or integers)")
    return names_column(array, label)


def number_column(array: Any, label: str, where: Where) -> npt.NDArray[np.float64]:
    """Return a column of numbers; text that is a number is one."""
    if _is_text(array.type):
        try:
            array = array.cast(pa.large_string()).cast(pa.float64())
        except pa.ArrowInvalid as error:
            raise DataError(
                f"column {label} must hold numbers: {error}", source=where.source, hint="Mend these values."
            ) from None
    _check_type(array, label, where, _is_number, "numbers")
    return confidence_column(array)


def _as_table(stream: Any) -> pa.Table:
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
    if array.null_count:
        rows = pc.indices_nonzero(pc.is_null(array)).to_numpy()
        problems = [Problem("id is missing", at, label, None, where.place) for at in where.locate(rows[:SHOWN])]
        raise DataError("ids are missing", source=where.source, problems=problems, count=len(rows), hint=NAME_HINT)
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
    return pa.types.is_integer(kind) or pa.types.is_null(kind) or _is_text(kind)


def _is_text(kind: pa.DataType) -> bool:
    return any(check(kind) for check in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def _is_number(kind: pa.DataType) -> bool:
    checks = (pa.types.is_floating, pa.types.is_integer, pa.types.is_decimal, pa.types.is_null)
    return any(check(kind) for check in checks)


readers.register("pandas")(Format(read_pandas, module="pandas"))
readers.register("arrow")(Format(read_arrow, module="pyarrow"))
