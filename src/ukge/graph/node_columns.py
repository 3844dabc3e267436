"""Columns of node data: from whatever says it to text and lists of text, one row for each entity."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ukge.errors import DataError, Problem
from ukge.graph.columns import Where, is_unicode, names_column

TEXT, TEXTS = pa.large_string(), pa.list_(pa.large_string())


def as_texts(values: Any, column: str, length: int, where: Where) -> pa.Array:
    """Return a column of text in which blank text is missing."""
    if values is None:
        return pa.nulls(length, TEXT)
    array = _placed(values, column, where)
    _same_length(array, column, length, where)
    trimmed = pc.utf8_trim_whitespace(array)
    return pc.if_else(pc.equal(trimmed, ""), None, trimmed)


def as_lists(values: Any, column: str, length: int, where: Where) -> pa.Array:
    """Return a column of lists of text without blanks and repeats; one text is a list of one, nothing an empty one."""
    if values is None:
        values = [None] * length
    rows = values.to_pylist() if isinstance(values, (pa.Array, pa.ChunkedArray)) else list(values)
    _same_length(rows, column, length, where)
    lists = [_listed(row, column, at, where) for at, row in enumerate(rows)]
    try:
        return pa.array(lists, TEXTS)
    except UnicodeEncodeError:
        raise _half(column, list(enumerate(lists)), where) from None


def as_others(others: Mapping[str, Any], taken: Mapping[str, Any], length: int, where: Where) -> dict[str, pa.Array]:
    """Return further columns as numbers, truth values, text or lists of text; whatever else they hold is JSON."""
    found = {}
    for name, values in others.items():
        if name in taken:
            raise DataError(f"node data has two columns {name!r}", source=where.source, hint="Rename one of them.")
        array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
        if not isinstance(array, pa.Array):
            array = _column(list(values), name, where)
        _same_length(array, name, length, where)
        found[name] = _plain(array)
    return found


def one_row_each(table: pa.Table) -> pa.Table:
    """Join the rows of one entity: what comes first counts, lists grow, and another label is an alias."""
    if pc.count_distinct(table["id"]).as_py() == len(table):
        return table
    rows: dict[str, dict[str, Any]] = {}
    for row in table.to_pylist():
        kept = rows.setdefault(row["id"], row)
        if kept is row:
            continue
        if row["label"] not in (None, kept["label"]) and kept["label"] is not None:
            row["aliases"] = [*row["aliases"], row["label"]]
        for name, value in row.items():
            if isinstance(kept[name], list) and isinstance(value, list):
                kept[name] = list(dict.fromkeys(kept[name] + value))
            elif kept[name] is None:
                kept[name] = value
    return pa.Table.from_pylist(list(rows.values()), schema=table.schema)


def joined_tables(first: pa.Table, second: pa.Table) -> pa.Table:
    """Return the rows of two tables of node data; columns of one name and two types become text."""
    for name in set(first.column_names) & set(second.column_names):
        if first[name].type != second[name].type:
            first, second = (_as_text(table, name) for table in (first, second))
    return pa.concat_tables([first, second], promote_options="default")


def _placed(values: Any, column: str, where: Where) -> pa.Array:
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    if isinstance(array, pa.Array):
        return _text(array)
    rows = [value if value is None or isinstance(value, str) else json_text(value) for value in values]
    if any(value is not None and not is_unicode(value) for value in rows):
        raise _half(column, list(enumerate(rows)), where)
    return names_column(rows, column).cast(TEXT)


def _listed(value: Any, column: str, at: int, where: Where) -> list[str]:
    parts = [] if value is None else [value] if isinstance(value, str) else value
    if not isinstance(parts, (list, tuple)) or not all(isinstance(part, str) or part is None for part in parts):
        line = where.locate(np.array([at]))[0]
        problem = Problem(f"{column} are text or lists of text", line, column, str(value), where.place)
        raise DataError("node data cannot be used", source=where.source, problems=[problem], hint="Mend these values.")
    return list(dict.fromkeys(part.strip() for part in parts if part is not None and part.strip()))


def _column(values: list[Any], name: str, where: Where) -> pa.Array:
    if all(value is None or isinstance(value, str) for value in values):
        return as_texts(values, name, len(values), where)
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return _placed(values, name, where)
    except UnicodeEncodeError:
        raise _half(name, list(enumerate(values)), where) from None


def _plain(array: pa.Array) -> pa.Array:
    kind = array.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return array
    lists = pa.types.is_list(kind) or pa.types.is_large_list(kind)
    texts = lists and (pa.types.is_string(kind.value_type) or pa.types.is_large_string(kind.value_type))
    return array.cast(TEXTS) if texts else _text(array)


def _text(array: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if pa.types.is_nested(array.type):
        return pa.array([None if value is None else json_text(value) for value in array.to_pylist()], TEXT)
    return array.cast(TEXT)


def _as_text(table: pa.Table, name: str) -> pa.Table:
    at = table.column_names.index(name)
    return table.set_column(at, name, _text(table[name].combine_chunks()))


def json_text(value: Any) -> str:
    """Return what a value of no type of ours says, as text."""
    return json.dumps(value, ensure_ascii=False, default=str)


def _same_length(values: Any, column: str, length: int, where: Where) -> None:
    if len(values) != length:
        what = f"column {column} of node data has {len(values):,} values for {length:,} nodes"
        raise DataError(what, source=where.source)


def _half(column: str, rows: list[tuple[int, Any]], where: Where) -> DataError:
    """Return the error of text that cannot be written as UTF-8."""
    wrong = [(at, value) for at, value in rows if value is not None and not is_unicode(json_text(value))]
    places = where.locate(np.array([at for at, _ in wrong]))
    problems = [
        Problem("text holds half a surrogate pair", place, column, str(value), where.place)
        for place, (_, value) in zip(places, wrong, strict=True)
    ]
    what = f"{len(problems):,} values of node data are no Unicode text"
    return DataError(what, source=where.source, problems=problems, hint="Mend these values.")
