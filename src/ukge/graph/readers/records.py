"""Delimited text, record by record with true line numbers: slow and exact, for headers, small files and diagnosis."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

from ukge.errors import DataError
from ukge.graph.checks import UTF8_HINT
from ukge.graph.files import DAMAGED_HINT, damaged, open_text
from ukge.graph.readers.findings import Findings

Record = tuple[int, list[str]]


def records(path: Path, delimiter: str, *, quoted: bool, fine: re.Pattern[str] | None = None) -> Iterator[Record]:
    """Yield each line that is not blank as (line number from 1, cells); a quoted record is numbered by its first line.

    Lines without quoting that match `fine` are not worth splitting: they come without cells. Raises `DataError` where
    compressed data is damaged and where a quoted field never ends.
    """
    line = 0
    try:
        if not quoted:
            with open_text(path) as text:
                for line, row in enumerate(text, start=1):
                    bare = row.rstrip("\n")
                    if bare:
                        yield line, [] if fine is not None and fine.fullmatch(bare) else bare.split(delimiter)
            return
        with open_text(path, newline="") as text:
            rows = csv.reader(text, delimiter=delimiter)
            for cells in rows:
                if cells:
                    yield line + 1, cells
                line = rows.line_num
    except OSError as error:
        found = Findings(str(path))
        found.add(damaged(path, error), line or None, None, None, DAMAGED_HINT)
        found.stop(line)
    except csv.Error as error:
        found = Findings(str(path))
        found.add(f"no readable CSV: {error}", line + 1, None, None, "Look for a quotation mark that is never closed.")
        found.stop(line + 1)


def first_record(path: Path, delimiter: str, *, quoted: bool) -> Record:
    """Return the first line that is not blank; raise `DataError` if there is none or it is no UTF-8."""
    for line, cells in records(path, delimiter, quoted=quoted):
        if not_utf8(cells):
            found = Findings(str(path))
            found.add("not UTF-8 text", line, None, raw_text(cells, delimiter), UTF8_HINT)
            found.stop(1)
        return line, cells
    raise DataError("no facts, only blank lines", source=str(path), hint="Check how the file was made.")


def not_utf8(cells: list[str]) -> bool:
    """Return whether any cell came from bytes that are no UTF-8."""
    return any("\udc80" <= char <= "\udcff" for cell in cells if not cell.isascii() for char in cell)


def raw_text(cells: list[str], delimiter: str) -> str:
    """Return a line for an error message, with bytes that are no UTF-8 shown as \\xNN."""
    return delimiter.join(cells).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
