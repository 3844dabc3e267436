"""Rows that are no facts, put aside with their place and what is wrong, while the others are read.

They are kept on the disk as they come, in pieces of Arrow, so that a source may have any number of them; of the pieces
the file is written that was asked for, or the table is made.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ukge.errors import ConfigError, DataError, Problem, TooManyBadRowsError
from ukge.graph.arrow import from_names
from ukge.graph.files import extension_of

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("file", "line", "column", "value", "reason", "row")
_TEXT = pa.large_string()
SCHEMA = pa.schema([(name, pa.int64() if name == "line" else _TEXT) for name in COLUMNS])
_PIECE = 1024
_LONGEST = 4096
_HINT = "Give a share of the rows, such as 1% or 0.01, or a number of rows."


@dataclass(frozen=True)
class Limit:
    """How many rows of a source may be bad: a share of them, or a number."""

    share: float | None = None
    number: int | None = None

    @classmethod
    def of(cls, text: str | float) -> Limit:
        """Return what `1%`, `0.01` or `20` says. A number with a point, and one below 1, is a share."""
        words = str(text).strip()
        share = words.endswith("%")
        try:
            number = float(words.removesuffix("%")) / (100 if share else 1)
        except ValueError:
            number = -1.0
        if share or "." in words or "e" in words.lower():
            if 0 <= number <= 1:
                return cls(share=number)
        elif number >= 0 and number.is_integer():
            return cls(number=int(number))
        raise ConfigError(f"‹most_bad› is {text!r}", hint=_HINT)

    def allows(self, bad: int, rows: int) -> bool:
        """Return whether so many of so many rows may be bad."""
        return bad <= (self.share * rows if self.share is not None else self.number or 0)

    def __str__(self) -> str:
        return f"{100 * self.share:.4g} %" if self.share is not None else f"{self.number:,}"


@dataclass
class Aside:
    """What is put aside of one source: `bad` of its `rows`, with `faults` by what is wrong, into the file at `path`."""

    bad: int = 0
    rows: int = 0
    faults: dict[str, int] = field(default_factory=dict)
    path: Path | None = None


class BadRows:
    """Where rows that are no facts are put aside: `read(path, bad_rows=bad)` reads the others.

    With a `path`, they are written there, too (TSV, or what the ending says: .csv, .jsonl, .parquet), whenever a source
    has been read. If more rows of one source are bad than `most` allows ("1%", 0.01, or a number of rows), reading it
    ends in `TooManyBadRowsError`. A row with several faults has a line for each.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, *, most: str | float | None = None) -> None:
        self.path = None if path is None else Path(path)
        self.most = None if most is None else Limit.of(most)
        self.rows = 0
        """rows that were put aside"""
        self.counts: dict[str, int] = {}
        """faults, by what is wrong"""
        self.aside = Aside()
        """what was put aside of the source that is read"""
        self._piece: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        self._file: Any = None
        self._writer: Any = None
        if self.path is not None:
            from ukge.graph.writers.tables import check_table_path  # noqa: PLC0415 — who reads strictly needs none

            check_table_path(self.path)

    def __len__(self) -> int:
        return self.rows

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        kinds = "; ".join(f"{count:,} × {kind}" for kind, count in self.counts.items())
        return f"BadRows({self.rows:,} rows{': ' + kinds if kinds else ''})"

    def take(self, source: str | None, problem: Problem, kind: str, row: str | None, *, first: bool) -> None:
        """Put one fault of a row aside, its `first` or a further one; readers do, by their `Findings`."""
        self.rows += first
        self.aside.bad += first
        for counts in (self.counts, self.aside.faults):
            counts[kind] = counts.get(kind, 0) + 1
        values = (source, problem.line, problem.column, problem.value, problem.what, row)
        for name, value in zip(COLUMNS, values, strict=True):
            self._piece[name].append(_clean(value) if isinstance(value, str) else value)
        if len(self._piece["line"]) >= _PIECE:
            self._flush()

    def refuse(self, source: str, aside: Aside) -> None:
        """Raise `TooManyBadRowsError` if more rows of a source are bad than is allowed."""
        if self.most is None or self.most.allows(aside.bad, aside.rows):
            return
        place = "" if self.path is None else f"They are in {self.path}, with what is wrong. "
        raise TooManyBadRowsError(
            f"{source}: {aside.bad:,} of {aside.rows:,} rows are bad, and at most {self.most} may be: "
            f"{told(aside.faults)}",
            hint=f"{place}Mend them, or allow more: ‹most_bad=...›.",
        )

    def table(self) -> pa.Table:
        """Return all that was put aside: file, line, column, value, reason and row of every fault."""
        return pa.Table.from_batches(list(self._pieces()), SCHEMA)

    def frame(self) -> pd.DataFrame:
        """Return all that was put aside as a pandas frame."""
        return self.table().to_pandas()

    def save(self) -> None:
        """Write the file, if there is to be one: it appears, or changes, only when it is whole."""
        if self.path is None:
            return
        from ukge.graph.writers.tables import write_pieces  # noqa: PLC0415

        escaped = extension_of(self.path) not in (".csv", ".jsonl", ".ndjson", ".parquet", ".pq")
        pieces = (_on_one_line(piece) if escaped else piece for piece in self._pieces())
        write_pieces(self.path, SCHEMA, pieces)

    def _pieces(self) -> Iterator[pa.RecordBatch]:
        self._flush()
        if self._writer is not None:
            self._file.flush()
            with pa.OSFile(self._file.name) as stored:
                yield from pa.ipc.open_stream(stored)

    def _flush(self) -> None:
        if not self._piece["line"]:
            return
        if self._writer is None:
            self._file = tempfile.NamedTemporaryFile(prefix="ukge-bad-rows-")  # noqa: SIM115 — lives as long as this
            self._writer = pa.ipc.new_stream(pa.PythonFile(self._file, mode="w"), SCHEMA)
        columns = [
            pa.array(values, pa.int64()) if name == "line" else from_names(values)
            for name, values in self._piece.items()
        ]
        self._writer.write_batch(pa.record_batch(columns, schema=SCHEMA))
        for values in self._piece.values():
            values.clear()


@contextmanager
def putting_aside(bad_rows: BadRows | None, source: str) -> Iterator[Aside]:
    """Watch what is put aside of one source: it is written in any case, and refused if it is more than is allowed.

    Who reads adds the rows that were not put aside to `rows`, as soon as it knows them.
    """
    aside = Aside()
    if bad_rows is None:
        yield aside
        return
    bad_rows.aside, aside.path = aside, bad_rows.path
    try:
        yield aside
    except DataError:
        bad_rows.save()
        if aside.rows:  # it was read, but nothing was left
            bad_rows.refuse(source, aside)
        raise
    except BaseException:
        bad_rows.save()
        raise
    bad_rows.save()
    bad_rows.refuse(source, aside)


def as_bad_rows(given: BadRows | str | os.PathLike[str] | None, most: str | float | None = None) -> BadRows | None:
    """Return where bad rows are put aside, for what a caller may give: a `BadRows`, the path of a file, or None."""
    if given is None:
        if most is not None:
            raise ConfigError("‹most_bad› limits ‹bad_rows›", hint="Say where bad rows are put: ‹bad_rows=FILE›.")
        return None
    if isinstance(given, BadRows):
        if most is not None:
            raise ConfigError("‹most_bad› is said beside a BadRows", hint="Give the BadRows itself the limit.")
        return given
    if not isinstance(given, (str, os.PathLike)):
        raise ConfigError(f"‹bad_rows› is {given!r}", hint="Give the path of a file, or a BadRows() to look into.")
    return BadRows(given, most=most)


def one_place(reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return how files are read, with one place for the bad rows of all of them."""
    told = dict(reading)
    most = told.pop("most_bad", None)
    if told.get("bad_rows") is not None or most is not None:
        told["bad_rows"] = as_bad_rows(told.get("bad_rows"), most)
    return told


def told(counts: Mapping[str, int], most: int = 5) -> str:
    """Say how many faults there are of each kind, the most frequent first."""
    ordered = sorted(counts.items(), key=lambda pair: -pair[1])
    words = [f"{count:,} × {kind}" for kind, count in ordered[:most]]
    rest = sum(count for _, count in ordered[most:])
    return ", ".join([*words, f"{rest:,} others"] if rest else words)


def _clean(text: str) -> str:
    """Return a text that can be written: bytes that were no UTF-8 are shown as \\xNN, and no row goes on for ever."""
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
    if shown.isascii():
        return shown
    try:
        shown = shown.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    except UnicodeEncodeError:
        shown = shown.encode("utf-8", "backslashreplace").decode()
    return shown


def _on_one_line(piece: pa.RecordBatch) -> pa.RecordBatch:
    """Return text without tabs and line ends, which are written as \\t, \\n and \\r: TSV has no quoting."""
    columns = []
    for name in COLUMNS:
        column = piece[name]
        if name != "line":
            for char, written in (("\t", "\\t"), ("\n", "\\n"), ("\r", "\\r")):
                column = pc.replace_substring(column, char, written)
        columns.append(column)
    return pa.record_batch(columns, schema=SCHEMA)
