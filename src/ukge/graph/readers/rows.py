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
from ukge.graph.bad_rows import Aside, as_bad_rows, putting_aside
from ukge.graph.columns import Where, check_confidence, check_names, single
from ukge.graph.fact import TRIPLE
from ukge.graph.files import check_file
from ukge.graph.findings import Findings
from ukge.graph.formats import check_options, format_of_file, readers
from ukge.graph.readers.delimited import Table, layout_of, parse_table, refuse_decimal_commas, where_in
from ukge.graph.readers.diagnosis import diagnose
from ukge.graph.readers.faults import chosen, sound_rows, where_of
from ukge.graph.readers.frames import Columns, checked, opened_parquet
from ukge.graph.readers.jsonl import read_lines
from ukge.graph.readers.layout import ColumnMap, Field, Roles, assign_roles
from ukge.graph.readers.parsed import Parsed, Request, Scaling, as_scaling, scaled
from ukge.graph.readers.sifting import sifted
from ukge.graph.writers.tables import json_text

NUMBERS: tuple[str, ...] = ("confidence", "label")
SOURCE = "source"


@dataclass(frozen=True, eq=False)
class Rows:
    """The columns that have a role, the others by name, and where each row came from."""

    names: Mapping[str, pa.Array]
    numbers: Mapping[str, npt.NDArray[np.float64]]
    others: Mapping[str, pa.Array]
    where: Where
    skipped: Mapping[str, int] = field(default_factory=dict)
    found: Findings | None = None
    aside: Aside = field(default_factory=Aside)

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
    name = format or format_of_file(path, {**options, "relation": relation})
    if name not in _TABLES:
        return _of_graph(path, name, wanted, {**options, "scale": scale, "relation": relation})
    bad = as_bad_rows(options.pop("bad_rows", None), options.pop("most_bad", None))
    reader = _TABLES[name]
    check_options(name, options, readers)
    request = Request(scale=as_scaling(scale), bad_rows=bad)
    with putting_aside(bad, str(path)) as aside:
        rows = reader(path, request, wanted.given(relation), **options)
        aside.rows = len(rows) + aside.bad
        return replace(_checked(rows, relation, request), aside=aside)


def _checked(rows: Rows, relation: str | None, request: Request) -> Rows:
    found = rows.found or request.findings(rows.where.source, rows.where.place)
    if relation is not None:
        rows = replace(rows, names={**rows.names, "relation": from_names([relation] * len(rows))})
    if found.lenient or found.count:
        rows = _without_faults(rows, request, found)
    found.stop(found.checked or len(rows))
    if len(rows) == 0:
        if found.count:
            raise found.error(found.checked)
        raise DataError("holds no facts", source=rows.where.source, hint="Check that this is the right file.")
    try:
        for role, column in rows.names.items():
            check_names(column, role, where=rows.where)
        numbers = dict(rows.numbers)
        if request.scale is not None and "confidence" in numbers:
            numbers["confidence"] = scaled(numbers["confidence"], request.scale, rows.where)
        for role, values in numbers.items():
            check_confidence(values, where=rows.where, column=role)
    except DataError:
        _without_faults(rows, request, found)
        if len(found.kinds) > 1:  # the error tells of the first kind alone
            found.stop(len(rows))
        raise
    return Rows({role: rows.names[role] for role in TRIPLE}, numbers, rows.others, rows.where)


def _without_faults(rows: Rows, request: Request, found: Findings) -> Rows:
    """Return the rows that are sound; all others are told."""
    for role in (*(role for role in NUMBERS if role in rows.numbers), None):
        weight = np.zeros(len(rows)) if role is None else rows.numbers[role]
        parsed = Parsed(**rows.names, weight=weight, where=rows.where, rows=len(rows))
        asked = request if role == "confidence" else replace(request, scale=None)
        kept = sound_rows(parsed, asked, found, role or "confidence")
        if not kept.all():
            rows = Rows(
                {name: chosen(column, kept) for name, column in rows.names.items()},
                {name: chosen(column, kept) for name, column in rows.numbers.items()},
                {name: chosen(column, kept) for name, column in rows.others.items()},
                where_of(rows.where, kept),
            )
    return rows


def _delimited(table: Table, path: Path, request: Request, wanted: Roles, **told: Any) -> Rows:
    table = replace(table, **{option: value for option, value in told.items() if value is not None})
    layout, others = layout_of(path, request, table, wanted)
    kept = tuple(Field(f"other {at}", at, "text", name) for at, name in others.items())
    whole = sifted(path, replace(layout, fields=(*layout.fields, *kept)), request)
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
    source = [(SOURCE, columns[SOURCE].cast(pa.large_string()))] if SOURCE in columns else []
    rest = _distinct([*source, *((name, single(cells, f"other {at}")) for at, name in named.items())])
    return Rows(names, numbers, rest, where_in(path, whole))


def _jsonl(path: Path, request: Request, wanted: Roles, *, columns: ColumnMap | None = None) -> Rows:
    facts = read_lines(path, request, columns, wanted)
    names = {role: pa.array(facts.values[role], pa.large_string()) for role in TRIPLE if role in facts.values}
    given = [role for role in NUMBERS if any(x is not None for x in facts.values.get(role, ()))]
    count = len(facts.lines)
    others = (
        (key if isinstance(key, str) else f"column_{key}", [values.get(row) for row in range(count)])
        for key, values in facts.others.items()
    )
    numbers = {role: facts.numbers(role) for role in given}
    source = [(SOURCE, pa.array(facts.values[SOURCE], pa.large_string()))] if SOURCE in facts.values else []
    return Rows(names, numbers, _distinct([*source, *others]), facts.where, found=facts.found)


def _parquet(path: Path, request: Request, wanted: Roles, *, columns: ColumnMap | None = None) -> Rows:
    with opened_parquet(path) as file:
        table = checked(file.read())
    names, where = list(table.column_names), Where(str(path))
    roles = assign_roles(len(names), header=names, columns=columns, source=str(path), wanted=wanted)
    found = Columns({role: single(table, at) for role, at in roles.items()}, roles, names, where)
    texts = {role: found.texts(role).cast(pa.large_string()) for role in TRIPLE if role in roles}
    numbers = {role: found.numbers(role) for role in NUMBERS if role in roles}
    source = [(SOURCE, found.texts(SOURCE).cast(pa.large_string()))] if SOURCE in roles else []
    free = ((name, single(table, at)) for at, name in enumerate(names) if at not in roles.values())
    others = _distinct([*source, *free]).items()
    told = request.findings(str(path), where.place)
    kept, told.checked = ~found.tell(told), len(table)
    columns = {name: chosen(column, kept) for name, column in others}
    return Rows(
        {role: chosen(column, kept) for role, column in texts.items()},
        {role: chosen(column, kept) for role, column in numbers.items()},
        columns,
        where_of(where, kept),
        found=told,
    )


def _of_graph(path: Path, name: str, wanted: Roles, options: dict[str, Any]) -> Rows:
    from ukge.graph.readers import read_with_report  # noqa: PLC0415  (it imports this package's readers)

    if "label" in wanted.needed:
        raise DataError(f"the format {name} has no labels", source=str(path), hint="Give a table with a column label.")
    said = {option: value for option, value in options.items() if value is not None}
    graph, report = read_with_report(path, format=name, **said)
    facts = graph.facts()
    names = {role: single(facts, role).cast(pa.large_string()) for role in TRIPLE}
    numbers = {"confidence": graph.confidence.astype(np.float64)} if "confidence" in wanted.all else {}
    others = {SOURCE: single(facts, SOURCE)} if SOURCE in wanted.all and SOURCE in facts.column_names else {}
    return Rows(names, numbers, others, Where(str(path)), report.skipped, aside=report.aside)


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
