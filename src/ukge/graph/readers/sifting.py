"""Delimited text whose bad lines are put aside: the careful way finds them, the fast way reads the others.

A quotation mark that is never closed would swallow the lines that follow. So where a record of several lines has the
wrong number of columns, its first line is bad, and reading goes on with the second.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from ukge.graph.columns import UTF8_HINT
from ukge.graph.files import DAMAGED_HINT, LONGEST, TOO_LONG, TooLongError, damaged, open_text
from ukge.graph.findings import Findings
from ukge.graph.readers.diagnosis import QUOTE_HINT, check_record, fine_lines, not_utf8, raw_text, records, stopped
from ukge.graph.readers.layout import Layout
from ukge.graph.readers.left_out import LeftOut
from ukge.graph.readers.parsed import Request


def sifted(path: Path, layout: Layout, request: Request) -> Layout:
    """Return the layout of a file without its bad lines, if the request has a place for them."""
    if request.bad_rows is None:
        return layout
    found, left_out = request.findings(str(path)), LeftOut()
    if layout.quoted:
        _sift_quoted(path, layout, found, left_out)
    else:
        for line, cells in records(path, layout.delimiter, quoted=False, fine=fine_lines(layout)):
            if cells and line > layout.header_lines:
                before = found.count
                found.row = layout.delimiter.join(cells)
                check_record(line, cells, layout, found)
                if found.count > before:
                    left_out.add(line, line)
    return replace(layout, left_out=left_out if left_out else None)


def _sift_quoted(path: Path, layout: Layout, found: Findings, left_out: LeftOut) -> None:
    line = 0
    try:
        with open_text(path, newline="") as text:
            for record in _records(text, layout):
                line = record.last
                if record.first <= layout.header_lines:
                    continue
                before, cells = found.count, record.cells
                found.row = record.text.rstrip("\r\n")
                if cells is None:
                    what = "not UTF-8 text" if not_utf8([found.row]) else "a quotation mark is never closed"
                    hint = UTF8_HINT if not_utf8([found.row]) else QUOTE_HINT
                    found.add(what, record.first, None, raw_text([found.row], ""), hint)
                elif cells:
                    check_record(record.first, cells, layout, found)
                if found.count > before:
                    left_out.add(record.first, record.last)
    except OSError as error:
        raise stopped(path, damaged(path, error), line or None, DAMAGED_HINT) from None
    except TooLongError:
        raise stopped(path, TOO_LONG, line + 1, QUOTE_HINT) from None


@dataclass(frozen=True)
class _Record:
    """Lines that belong together; without cells if the first of them alone is bad."""

    first: int
    last: int
    text: str
    cells: list[str] | None


def _records(text: Iterator[str], layout: Layout) -> Iterator[_Record]:
    """Yield records; one that swallows lines which are none of its own ends with its first line."""
    waiting: deque[str] = deque()
    number = 0
    while True:
        taken: list[str] = []
        cells = _next_record(_kept(_ahead(waiting, text), taken), layout)
        if not taken:
            return
        if len(taken) > 1 and number >= layout.header_lines and not _whole(taken, cells, layout):
            waiting.extendleft(reversed(taken[1:]))
            del taken[1:]
            cells = None
        yield _Record(number + 1, number + len(taken), "".join(taken), cells)
        number += len(taken)


def _whole(taken: list[str], cells: list[str] | None, layout: Layout) -> bool:
    """Return whether lines are one record: of the right width, and with nothing behind a quotation mark that closes.

    Where a mark is missing, the one that opens a name in a later line seems to close what came before.
    """
    if cells is None or len(cells) != layout.width:
        return False
    try:
        return next(csv.reader(iter(taken), delimiter=layout.delimiter, strict=True), None) == cells
    except csv.Error:
        return False


def _next_record(lines: Iterator[str], layout: Layout) -> list[str] | None:
    """Return the cells of the next record, None if there is no telling where it ends."""
    try:
        return next(csv.reader(lines, delimiter=layout.delimiter), [])
    except csv.Error:
        return None


def _ahead(waiting: deque[str], text: Iterator[str]) -> Iterator[str]:
    while waiting:
        yield waiting.popleft()
    for line in text:  # noqa: UP028 — `yield from` would close the file with this generator
        yield line


def _kept(lines: Iterator[str], taken: list[str]) -> Iterator[str]:
    """Yield lines and keep them, as many as a record may have."""
    length = 0
    for line in lines:
        taken.append(line)
        length += len(line)
        if length > LONGEST:
            raise csv.Error("longer than any fact")
        yield line
