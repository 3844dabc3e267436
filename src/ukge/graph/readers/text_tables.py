"""Tables of text whose columns a format names: read as text, so that an empty cell is none, and then made into facts.

A row without a confidence is no fact; how many there are is said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ukge.errors import ConfigError, DataError
from ukge.graph.columns import Where, single
from ukge.graph.findings import Findings
from ukge.graph.nodes import Nodes
from ukge.graph.readers.delimited import parse_table, where_in
from ukge.graph.readers.diagnosis import diagnose
from ukge.graph.readers.layout import ColumnMap, Field, Layout
from ukge.graph.readers.parsed import Parsed, Request, Weights
from ukge.graph.readers.sifting import sifted

_NUMBER = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_TEXT = pa.large_string()
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Header:
    """The names of the columns, the lines before the first row, and what is between cells."""

    names: tuple[str, ...]
    lines: int
    delimiter: str = "\t"
    quoted: bool = False
    hint: str = ""


@dataclass(frozen=True)
class Slot:
    """A column of confidences: its name, and what a certain fact has there."""

    name: str
    top: float = 1.0

    @property
    def told(self) -> str:
        """How its numbers become confidences."""
        return self.name if self.top == 1 else f"{self.name}, of {self.top:g}"


@dataclass(frozen=True, eq=False)
class TextTable:
    """Columns of text by name, and where each row came from."""

    columns: Mapping[str, pa.Array]
    where: Where
    found: Findings
    rows: int
    layout: Layout | None = None

    def with_columns(self, columns: Mapping[str, pa.Array]) -> TextTable:
        """Return the table with further columns, or others in their place."""
        return replace(self, columns={**self.columns, **columns})


def read_text_table(path: Path, request: Request, header: Header, wanted: Sequence[str]) -> TextTable:
    """Read the wanted columns, as text, of a table between delimiters."""
    for name in wanted:
        if header.names.count(name) > 1:
            raise DataError(f"two columns are named {name!r}", source=str(path), hint="Rename one of them.")
    fields = tuple(Field(name, header.names.index(name), "text", name) for name in wanted)
    plain = Layout(header.delimiter, header.quoted, len(header.names), fields, header.lines, header.hint)
    layout = sifted(path, plain, request)
    table = parse_table(path, layout)
    columns = {name: single(table, name).cast(_TEXT) for name in wanted}
    where = where_in(path, layout)
    return TextTable(columns, where, request.findings(where.source, where.place), table.num_rows, layout)


def column_of(columns: ColumnMap | None, header: Sequence[str], path: Path) -> str | None:
    """Return the column of confidences that a caller named, the only one that formats with fixed columns leave open."""
    others = sorted(set(columns or {}) - {"confidence"})
    if others:
        raise ConfigError(
            f"the columns of this format are known: ‹columns› cannot map {others[0]!r}",
            hint="Name the confidence alone, ‹columns={'confidence': NAME}›, or read it as a table: ‹format='tsv'›.",
        )
    wanted = (columns or {}).get("confidence")
    if isinstance(wanted, int):
        if not 0 <= wanted < len(header):
            raise DataError(
                f"there is no column {wanted}", source=str(path), hint=f"Positions are 0…{len(header) - 1}."
            )
        return header[wanted]
    if wanted is not None and wanted not in header:
        raise DataError(f"there is no column {wanted!r}", source=str(path), hint=f"It has: {', '.join(header)}.")
    return wanted


def made_facts(
    table: TextTable,
    request: Request,
    names: Mapping[str, Any],
    slots: Sequence[Slot],
    *,
    default: float | None = None,
    out: Mapping[str, Mask] | None = None,
    nodes: Nodes | None = None,
) -> Parsed:
    """Make facts of columns: `names` are those of head, relation, tail and perhaps source.

    Of several slots the first that has a number counts. Numbers are divided by what a certain fact has, unless the
    request has a scale of its own. Rows whose slots are all empty have the `default`, or are skipped, as are those that
    are `out`, by why they are.
    """
    left: Mask = np.ones(table.rows, dtype=np.bool_)
    skipped = {}
    for why, mask in (out or {}).items():
        if (mask & left).any():
            skipped[why] = int((mask & left).sum())
            left &= ~mask
    values = np.full(table.rows, np.nan)
    wrong: Mask = np.zeros(table.rows, dtype=np.bool_)
    for slot in slots:
        numbers, bad = _numbers(table, slot, left, bounded=request.scale is None)
        values = np.where(np.isnan(values) & ~bad, numbers if request.scale else numbers / slot.top, values)
        wrong |= bad
    empty = np.isnan(values) & ~wrong & left
    if default is not None:
        values[empty] = default
        empty[:] = False
    kept = np.flatnonzero(left & ~empty & ~wrong)
    where, told, each = table.where, " or ".join(slot.name for slot in slots), [slot.told for slot in slots]
    skipped |= {f"no number in {told}": int(empty.sum())} if empty.any() else {}
    parsed = Parsed(
        **{role: column.take(pa.array(kept)) if len(kept) < table.rows else column for role, column in names.items()},
        weight=values[kept],
        where=Where(where.source, where.place, lambda rows: where.locate(kept[rows])),
        rows=table.rows - int(wrong.sum()),
        skipped=skipped,
        found=table.found,
        nodes=nodes,
        notes=() if request.scale or told == "confidence" else (f"confidence is {', else '.join(each)}",),
    )
    if table.layout is None:
        return parsed
    return replace(parsed, diagnose=partial(diagnose, Path(str(where.source)), table.layout))


def _numbers(table: TextTable, slot: Slot, left: Mask, *, bounded: bool) -> tuple[Weights, Mask]:
    """Return the numbers of a column, NaN where there is none, and which cells hold something else."""
    texts = pc.utf8_trim_whitespace(table.columns[slot.name])
    empty = pc.or_kleene(pc.is_null(texts), pc.is_in(texts, value_set=pa.array(["", "-", "NA"], _TEXT)))
    numeric = pc.fill_null(pc.match_substring_regex(texts, _NUMBER), False)
    values = np.asarray(pc.fill_null(pc.if_else(numeric, texts, None).cast(pa.float64()), np.nan))
    wrong = left & ~np.asarray(pc.or_(empty, numeric), dtype=np.bool_)
    _tell(table, slot, np.flatnonzero(wrong), f"{slot.name} is not a number")
    if bounded:
        with np.errstate(invalid="ignore"):
            outside = left & ((values < 0) | (values > slot.top))
        _tell(table, slot, np.flatnonzero(outside), f"{slot.name} is outside [0, {slot.top:g}]")
        wrong |= outside
    return np.asarray(values, dtype=np.float64), wrong


def _tell(table: TextTable, slot: Slot, rows: npt.NDArray[np.int64], what: str) -> None:
    if len(rows) == 0:
        return
    hint = "Mend these rows, or name another column: ‹columns={'confidence': NAME}›, with ‹scale=...› for other ranges."
    columns = table.columns.values()
    for line, row in zip(table.where.locate(rows), rows.tolist(), strict=True):
        table.found.row = "\t".join(str(column[row].as_py()) for column in columns)
        table.found.add(what, line, slot.name, table.columns[slot.name][row].as_py(), hint)
