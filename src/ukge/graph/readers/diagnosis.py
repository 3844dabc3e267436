"""The careful way through delimited text, record by record with true line numbers: slow and exact.

It reads headers and small files, and finds every line, column and value that the fast way stumbles over.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from ukge.errors import DataError, Problem
from ukge.graph.columns import CONFIDENCE_HINT, NAME_HINT, UTF8_HINT, Rows, as_number, confidence_problem
from ukge.graph.files import DAMAGED_HINT, LONGEST, TOO_LONG, TooLongError, damaged, open_text
from ukge.graph.findings import Findings
from ukge.graph.readers.layout import COMMA_HINT, Field, Layout, header_hint, percent_hint
from ukge.graph.readers.left_out import LeftOut
from ukge.graph.readers.quoting import NEVER_CLOSED, quoted_records
from ukge.graph.readers.quoting import Record as QuotedRecord

Record = tuple[int, list[str]]

_INTEGER = re.compile(r"-?[0-9]+|0[xX][0-9a-fA-F]+")
_ARROW_BLANKS = " \t"
QUOTE_HINT = "Look for a quotation mark that is never closed."
_NOTHING = "(?!)"
_LONGEST_ID = 1000  # digits; Python refuses to read numbers of very many
_FINE_NUMBERS: dict[tuple[float | None, float | None], str] = {
    (0.0, 1.0): r"(?:0(?:\.[0-9]+)?|1(?:\.0+)?)",
    (0.0, 1000.0): "(?:[0-9]{1,3}|1000)",
    (None, None): r"[0-9]{1,15}(?:\.[0-9]+)?",
}


def records(
    path: Path,
    delimiter: str,
    *,
    quoted: bool,
    fine: re.Pattern[str] | None = None,
    strict: bool = False,
    left_out: LeftOut | None = None,
) -> Iterator[Record]:
    """Yield each line that is not blank as (line number from 1, cells); a quoted record is numbered by its first line.

    Lines without quoting that match `fine` are not worth splitting: they come without cells. Lines that are `left_out`
    do not come at all. Raises `DataError` where compressed data is damaged, where a quoted field never ends (at the end
    of the file only if `strict`), and where a line or a record is longer than any fact.
    """
    line = last = 0  # lines so far, and the last of them that is not blank
    gone = left_out or LeftOut()
    try:
        if not quoted:
            with open_text(path) as text:
                for line, row in gone.of(text):
                    bare = row.rstrip("\n")
                    if bare:
                        last = line
                        yield line, [] if fine is not None and fine.fullmatch(bare) else bare.split(delimiter)
                    elif line - last > LONGEST:
                        raise TooLongError
            return
        with open_text(path, newline="") as text:
            taken = _Taken(gone.of(text))
            for cells in csv.reader(taken, delimiter=delimiter, strict=strict):
                if cells:
                    last = taken.line
                    yield taken.first, cells
                elif line - last > LONGEST:
                    raise TooLongError
                line, taken.length = taken.line, 0
    except OSError as error:
        raise stopped(path, damaged(path, error), line or None, DAMAGED_HINT) from None
    except TooLongError:
        hint = QUOTE_HINT if quoted else "Check the file's format."
        raise stopped(path, TOO_LONG, line + 1, hint) from None
    except csv.Error as error:
        raise stopped(path, f"no readable CSV: {error}", line + 1, QUOTE_HINT) from None


class _Taken:
    """Lines for a CSV reader, which may make one record of any number of them."""

    def __init__(self, lines: Iterator[tuple[int, str]]) -> None:
        self._lines = lines
        self.length = 0
        self.first = self.line = 0
        """the lines where the record began and where it is now"""

    def __iter__(self) -> Iterator[str]:
        for number, text in self._lines:
            self.line = number
            self.first = self.first if self.length else number
            self.length += len(text)
            if self.length > LONGEST:
                raise TooLongError
            yield text


def printable(message: str, width: int = 200) -> str:
    """Return what a library says of a file, which may quote any part of it, short and without control characters."""
    text = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in message[: width + 1])
    return text if len(text) <= width else f"{text[:width]}…"


def stopped(path: Path, what: str, line: int | None, hint: str, place: str = "line") -> DataError:
    """Return the error of a file that cannot be read any further than a line."""
    return DataError(
        f"cannot be read beyond {place} {line:,}" if line else "cannot be read",
        source=str(path),
        problems=[Problem(what, line, place=place)],
        hint=hint,
    )


def first_record(path: Path, delimiter: str, *, quoted: bool) -> Record:
    """Return the first line that is not blank; raise `DataError` if there is none or it is no UTF-8."""
    for line, cells in records(path, delimiter, quoted=quoted):
        if not_utf8(cells):
            raise DataError(
                "cannot be read",
                source=str(path),
                problems=[Problem("not UTF-8 text", line, None, raw_text(cells, delimiter))],
                hint=UTF8_HINT,
            )
        return line, cells
    raise DataError("no facts, only blank lines", source=str(path), hint="Check how the file was made.")


def not_utf8(cells: list[str]) -> bool:
    """Return whether any cell came from bytes that are no UTF-8."""
    return any("\udc80" <= char <= "\udcff" for cell in cells if not cell.isascii() for char in cell)


def raw_text(cells: list[str], delimiter: str) -> str:
    """Return a line for an error message, with bytes that are no UTF-8 shown as \\xNN."""
    return delimiter.join(cells).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def diagnose(path: Path, layout: Layout) -> None:
    """Raise `DataError` with the first offenders and their count, if there are any."""
    found = Findings(str(path))
    checked = 0
    if layout.quoted:
        for record in quoted_lines(path, layout):
            checked += record.cells != []
            check_quoted(record, layout, found)
    else:
        for line, cells in data_records(path, layout, fine_lines(layout)):
            checked += 1
            if cells:
                check_record(line, cells, layout, found)
    found.stop(checked)


def quoted_lines(path: Path, layout: Layout, patience: int = 0) -> Iterator[QuotedRecord]:
    """Yield the records after the header of a file with quoting, none of which swallows lines that are not its own."""
    line = 0
    try:
        with open_text(path, newline="") as text:
            for record in quoted_records((layout.left_out or LeftOut()).of(text), layout, patience):
                line = record.last
                if record.first > layout.header_lines:
                    yield record
    except OSError as error:
        raise stopped(path, damaged(path, error), line or None, DAMAGED_HINT) from None
    except TooLongError:
        raise stopped(path, TOO_LONG, line + 1, QUOTE_HINT) from None


def check_quoted(record: QuotedRecord, layout: Layout, found: Findings) -> None:
    """Tell what is wrong with a record of a file with quoting."""
    if record.cells:
        check_record(record.first, record.cells, layout, found)
    elif record.cells is None:
        bare = record.text.rstrip("\r\n")
        if not_utf8([bare]):
            found.add("not UTF-8 text", record.first, None, raw_text([bare], ""), UTF8_HINT)
            return
        at = record.open_at(layout.delimiter)
        column = next((field.label for field in layout.fields if field.position == at), None)
        found.add(NEVER_CLOSED, record.first, column, bare, QUOTE_HINT)


def data_records(path: Path, layout: Layout, fine: re.Pattern[str] | None = None) -> Iterator[Record]:
    """Yield the records after the header; those that match `fine` come without cells."""
    told = records(path, layout.delimiter, quoted=layout.quoted, fine=fine, left_out=layout.left_out)
    for line, cells in told:
        if line > layout.header_lines:
            yield line, cells


class LinesOf:
    """Tells the lines of data rows, which count from 0 and ascend from one question to the next."""

    def __init__(self, path: Path, layout: Layout) -> None:
        self._records = enumerate(data_records(path, layout))
        self._row, self._line = -1, 0

    def __call__(self, rows: Rows) -> list[int]:
        """Return the line of each row."""
        return [self._of(row) for row in rows.tolist()]

    def _of(self, row: int) -> int:
        while self._row < row:
            self._row, (self._line, _) = next(self._records)
        return self._line


def lines_of(path: Path, layout: Layout, rows: Rows) -> Sequence[int]:
    """Return the line of each data row (rows count from 0)."""
    order = np.argsort(rows, kind="stable")
    lines = np.zeros(len(rows), np.int64)
    lines[order] = LinesOf(path, layout)(rows[order])
    return lines.tolist()


def fine_lines(layout: Layout) -> re.Pattern[str]:
    """Return what only faultless lines match, so that few are left to be looked at closely."""
    between = re.escape(layout.delimiter)
    text = f"[^{between}\udc80-\udcff]*"
    columns = [text] * layout.width
    for field in layout.fields:
        if field.kind == "name":
            columns[field.position] = f"(?!{between})[!-~]{text}"
        elif field.kind == "number":
            columns[field.position] = _FINE_NUMBERS.get((field.low, field.high), _NOTHING)
        elif field.kind == "id":
            columns[field.position] = _NOTHING
    return re.compile(between.join(columns))


def check_record(line: int, cells: list[str], layout: Layout, found: Findings) -> None:
    """Tell what is wrong with a record."""
    fits = len(cells) == layout.width
    if not_utf8([cells[field.position] for field in layout.fields] if fits else cells):
        found.add("not UTF-8 text", line, None, raw_text(cells, layout.delimiter), UTF8_HINT)
    elif fits:
        for field in layout.fields:
            _check_cell(line, field, cells, layout, found)
    else:
        what = f"{len(cells)} column{'s' if len(cells) != 1 else ''} instead of {layout.width}"
        hint = layout.hint or f"Every line must have {layout.width} columns like the first."
        if layout.quoted and any("\n" in cell for cell in cells):
            hint = QUOTE_HINT
        found.add(what, line, None, layout.delimiter.join(cells), hint, kind="wrong number of columns")


def _check_cell(line: int, field: Field, cells: list[str], layout: Layout, found: Findings) -> None:
    cell = cells[field.position]
    if field.kind == "name":
        if not cell.strip():
            found.add(f"{field.name} name is empty", line, field.label, cell, NAME_HINT)
    elif field.kind == "id":
        _check_id(line, field, cell, found)
    elif field.kind == "number":
        _check_number(line, field, cells, layout, found)


def _check_id(line: int, field: Field, cell: str, found: Findings) -> None:
    vocabulary = field.vocabulary
    if vocabulary is None:
        raise TypeError(f"column {field.name} holds ids but has no vocabulary")
    text = cell.strip(_ARROW_BLANKS)
    if not _INTEGER.fullmatch(text):
        hint = f"With a vocabulary its columns hold ids; to read names, give no {vocabulary.kind} vocabulary."
        found.add(f"{field.name} is no integer id", line, field.label, cell, hint)
    elif len(text) > _LONGEST_ID or not 0 <= int(text, 16 if text[:2] in ("0x", "0X") else 10) < len(vocabulary):
        hint = f"The vocabulary holds {len(vocabulary):,} {vocabulary.kind} names; ids count from 0."
        found.add("no such id", line, field.label, cell, hint)


def _check_number(line: int, field: Field, cells: list[str], layout: Layout, found: Findings) -> None:
    cell = cells[field.position]
    text = cell.strip(_ARROW_BLANKS)
    if not layout.quoted and text[:1] == text[-1:] == '"' and as_number(text[1:-1].strip(_ARROW_BLANKS)) is not None:
        text = text[1:-1].strip(_ARROW_BLANKS)
    if not text:
        found.add(f"{field.name} is empty", line, field.label, cell, CONFIDENCE_HINT)
        return
    value = as_number(text)
    if value is None:
        first = line == layout.header_lines + 1 and layout.header_lines == 0
        hints = [header_hint(cells, layout.fields)] if first else []
        hints += [COMMA_HINT] if as_number(text.replace(",", ".", 1)) is not None else []
        hints += percent_hint(text)
        found.add(f"{field.name} is not a number", line, field.label, cell, *hints, CONFIDENCE_HINT)
        return
    low = -np.inf if field.low is None else field.low
    high = np.inf if field.high is None else field.high
    if not math.isfinite(value):
        found.add(f"{field.name} is not a finite number", line, field.label, cell, CONFIDENCE_HINT)
    elif not low <= value <= high:
        between = "[0, 1]" if (low, high) == (0, 1) else f"[{low:g}, {high:g}]"
        what = confidence_problem(value) if between == "[0, 1]" else f"{field.name} is outside {between}"
        found.add(what, line, field.label, cell, CONFIDENCE_HINT if between == "[0, 1]" else layout.hint)
