"""Tables of facts row by row, as they stand: what has a role is checked, and all other columns are kept.

Unlike the readers of graphs, these need no confidence, and the names in them may be unknown to whom they are told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ukge.errors import DataError
from ukge.graph.arrow import from_names
from ukge.graph.columns import Where, check_confidence, check_names, single
from ukge.graph.fact import TRIPLE
from ukge.graph.files import check_file
from ukge.graph.formats import check_options, format_of_file, readers
from ukge.graph.readers.delimited import Table, layout_of, parse_table, refuse_decimal_commas, where_in
from ukge.graph.readers.diagnosis import diagnose
from ukge.graph.readers.frames import Columns, checked, opened_parquet
from ukge.graph.readers.jsonl import read_lines
from ukge.graph.readers.layout import ColumnMap, Field, Layout, Roles, assign_roles
from ukge.graph.readers.parsed import Request, Scaling, as_scaling, scaled
from ukge.graph.writers.tables import json_text

NUMBERS: tuple[str, ...] = ("confidence", "label")


@dataclass(frozen=True, eq=False)
class Rows:
    """The columns that have a role, the others by name, and where each row came from."""

    names: Mapping[str, pa.Array]
    numbers: Mapping[str, npt.NDArray[np.float64]]
    others: Mapping[str, pa.Array]
    where: Where
    skipped: Mapping[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.names["head"])


def read_rows(
    path: Path,
    wanted: Roles,
    *,
    format: str | None = None,  # noqa: A002  (the word users look for)
    scale: Scaling | str | None = None,
    relation: str | None = None,
    **options: Any,
) -> Rows:
    """Read a table for the roles that are wanted; the arguments are those of `read`.

    What only a reader of graphs can read (STRING's links, RDF, …) gives rows without other columns.
    """
    check_file(path)
    name = format or format_of_file(path, options.get("delimiter"))
    if name not in _TABLES:
        return _of_graph(path, name, wanted, {**options, "scale": scale, "relation": relation})
    reader = _TABLES[name]
    check_options(name, options, readers)
    rows = reader(path, wanted.given(relation), **options)
    return _checked(rows, relation, as_scaling(scale))


def _checked(rows: Rows, relation: str | None, scale: Scaling | None) -> Rows:
    if len(rows) == 0:
        raise DataError("holds no facts", source=rows.where.source, hint="Check that this is the right file.")
    names = dict(rows.names)
    for role, column in names.items():
        check_names(column, role, where=rows.where)
    if relation is not None:
        names["relation"] = from_names([relation] * len(rows))
    numbers = dict(rows.numbers)
    if scale is not None and "confidence" in numbers:
        numbers["confidence"] = scaled(numbers["confidence"], scale, rows.where)
    for role, values in numbers.items():
        check_confidence(values, where=rows.where, column=role)
    return Rows({role: names[role] for role in TRIPLE}, numbers, rows.others, rows.where)


def _delimited(table: Table, path: Path, wanted: Roles, **told: Any) -> Rows:
    table = replace(table, **{option: value for option, value in told.items() if value is not None})
    request = Request(scale=lambda weights: weights)  # weights are checked when they are scaled
    layout, others = layout_of(path, request, table, wanted)
    kept = tuple(Field(f"other {at}", at, "text", name) for at, name in others.items())
    whole = Layout(layout.delimiter, layout.quoted, layout.width, (*layout.fields, *kept), layout.header_lines)
    cells = parse_table(path, whole)
    try:
        columns = {role: single(cells, role) for role in wanted.all if role in cells.column_names}
        names = {role: columns[role].cast(pa.large_string()) for role in TRIPLE if role in columns}
    except pa.ArrowInvalid:  # bytes that are no UTF-8
        diagnose(path, whole)
        raise
    numbers = {role: np.asarray(columns[role], np.float64) for role in NUMBERS if role in columns}
    if layout.decimal_comma and "confidence" in numbers:
        beside = next(field.position for field in layout.fields if field.name == "confidence") + 1
        name = f"other {beside}"
        if name in cells.column_names:
            refuse_decimal_commas(numbers["confidence"], cells[name], where_in(path, whole))
    named = {at: name if layout.header_lines else f"column_{at}" for at, name in others.items()}
    rest = _distinct((name, single(cells, f"other {at}")) for at, name in named.items())
    return Rows(names, numbers, rest, where_in(path, whole))


def _jsonl(path: Path, wanted: Roles, *, columns: ColumnMap | None = None) -> Rows:
    facts = read_lines(path, Request(), columns, wanted)
    names = {role: pa.array(facts.values[role], pa.large_string()) for role in TRIPLE if role in facts.values}
    given = [role for role in NUMBERS if any(x is not None for x in facts.values.get(role, ()))]
    count = len(facts.lines)
    others = (
        (key if isinstance(key, str) else f"column_{key}", [values.get(row) for row in range(count)])
        for key, values in facts.others.items()
    )
    return Rows(names, {role: facts.numbers(role) for role in given}, _distinct(others), facts.where)


def _parquet(path: Path, wanted: Roles, *, columns: ColumnMap | None = None) -> Rows:
    with opened_parquet(path) as file:
        table = checked(file.read())
    names, where = list(table.column_names), Where(str(path))
    roles = assign_roles(len(names), header=names, columns=columns, source=str(path), wanted=wanted)
    found = Columns({role: single(table, at) for role, at in roles.items()}, roles, names, where)
    texts = {role: found.texts(role).cast(pa.large_string()) for role in TRIPLE if role in roles}
    numbers = {role: found.numbers(role) for role in NUMBERS if role in roles}
    others = ((name, single(table, at)) for at, name in enumerate(names) if at not in roles.values())
    return Rows(texts, numbers, _distinct(others), where)


def _of_graph(path: Path, name: str, wanted: Roles, options: dict[str, Any]) -> Rows:
    from ukge.graph.readers import read_with_report  # noqa: PLC0415  (it imports this package's readers)

    if "label" in wanted.needed:
        raise DataError(f"the format {name} has no labels", source=str(path), hint="Give a table with a column label.")
    said = {option: value for option, value in options.items() if value is not None}
    graph, report = read_with_report(path, format=name, **said)
    facts = graph.facts()
    names = {role: single(facts, role).cast(pa.large_string()) for role in TRIPLE}
    numbers = {"confidence": graph.confidence.astype(np.float64)} if "confidence" in wanted.all else {}
    return Rows(names, numbers, {}, Where(str(path)), report.skipped)


def _distinct(columns: Iterable[tuple[str, Any]]) -> dict[str, pa.Array]:
    """Return columns by name; a name that was there before gets a number."""
    found: dict[str, pa.Array] = {}
    for name, column in columns:
        free = name or "column"
        number = 1
        while free in found:
            number += 1
            free = f"{name}_{number}"
        found[free] = column if isinstance(column, pa.Array) else as_column(column)
    return found


def as_column(values: list[Any]) -> pa.Array:
    """Return values as one column; what has no common type is written as JSON."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return pa.array([None if value is None else json_text(value) for value in values], pa.large_string())


_TABLES: dict[str, Callable[..., Rows]] = {
    "tsv": partial(_delimited, Table("\t", quoted=False)),
    "csv": partial(_delimited, Table(",", quoted=True)),
    "jsonl": _jsonl,
    "parquet": _parquet,
}
