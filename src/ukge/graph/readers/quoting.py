"""Records of text with quoting, and which of them swallow lines that are none of their own.

A name in quotation marks may hold line ends. But a mark that is never closed would take the lines that follow into a
name as well, up to the next mark: facts would be lost, and one made up. So where a record of several lines has the
wrong number of columns, or goes on behind a mark that closes, its first line is bad, and the second begins a new one.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ukge.graph.files import LONGEST, CheckedLines, TooLongError, open_arrow
from ukge.graph.readers.layout import Layout

NEVER_CLOSED = "a quotation mark is never closed"
Line = tuple[int, str]


@dataclass(frozen=True)
class Record:
    """Lines that belong together; without cells if the first of them alone is bad."""

    first: int
    last: int
    text: str
    cells: list[str] | None

    def open_at(self, delimiter: str) -> int:
        """Return the position of the cell whose quotation mark is never closed."""
        return len(_next_record(iter([self.text]), delimiter) or [""]) - 1


def quoted_records(lines: Iterator[Line], layout: Layout, patience: int = 0) -> Iterator[Record]:
    """Yield the records of numbered lines; one that swallows others ends with its first line.

    Raises `TooLongError` where a record is longer than any fact, or that many lines are blank; with `patience`, so many
    records may be that long: their first lines are bad.
    """
    waiting: deque[Line] = deque()
    blank = 0
    while True:
        taken: list[Line] = []
        source = _Kept(_ahead(waiting, lines), taken)
        cells = _next_record(iter(source), layout.delimiter)
        if not taken:
            return
        if source.too_long:
            patience -= 1
            if patience < 0:
                raise TooLongError
        texts = [text for _, text in taken]
        if len(taken) > 1 and taken[0][0] > layout.header_lines and not _whole(texts, cells, layout):
            waiting.extendleft(reversed(taken[1:]))
            del taken[1:]
            cells = None
        blank = 0 if cells is None or cells else blank + 1
        if blank > LONGEST:
            raise TooLongError
        yield Record(taken[0][0], taken[-1][0], "".join(texts[: len(taken)]), cells)


def swallows(lines: Iterable[str], layout: Layout) -> bool:
    """Return whether any record of several lines is not one: far quicker than to go through the records one by one."""
    taken: list[str] = []
    rows = csv.reader(_noted(lines, taken), delimiter=layout.delimiter)
    line = 0
    try:
        for cells in rows:
            if len(taken) > 1 and line >= layout.header_lines and not _whole(taken, cells, layout):
                return True
            line += len(taken)
            taken.clear()
    except csv.Error:
        return True
    return False


def _noted(lines: Iterable[str], taken: list[str]) -> Iterator[str]:
    for line in lines:
        taken.append(line)
        yield line


class CountedLines(CheckedLines):
    """Passes bytes on, and counts the lines that they have, rather too many than too few."""

    def __init__(self, path: Path) -> None:
        super().__init__(open_arrow(path))
        self.lines = 0
        self.quotes = False
        self._ended = True

    def read(self, size: int = -1) -> bytes:
        """Read up to so many bytes."""
        data = super().read(size)
        if data:
            self.lines += data.count(b"\n")
            if b"\r" in data:
                self.lines += data.count(b"\r") - data.count(b"\r\n")
            ended = data.endswith((b"\n", b"\r"))
            self.lines += self._ended - ended  # a last line may have no end
            self._ended = ended
            self.quotes = self.quotes or b'"' in data
        return data

    def more_than(self, rows: int) -> bool:
        """Return whether some of so many rows may have several lines, as those with quotation marks can."""
        return self.quotes and self.lines > rows


def _whole(texts: Sequence[str], cells: list[str] | None, layout: Layout) -> bool:
    """Return whether lines are one record: of the right width, and with nothing behind a quotation mark that closes.

    Where a mark is missing, the one that opens a name in a later line seems to close what came before.
    """
    if cells is None or len(cells) != layout.width:
        return False
    try:
        strict = csv.reader(texts, delimiter=layout.delimiter, strict=True)
        return next(strict, None) == cells
    except csv.Error:
        return False


def _next_record(lines: Iterator[str], delimiter: str) -> list[str] | None:
    """Return the cells of the next record, None if there is no telling where it ends."""
    first = next(lines, None)
    if first is None:
        return []
    if '"' not in first:
        bare = first.rstrip("\r\n")
        return bare.split(delimiter) if bare else []
    try:
        return next(csv.reader(_with(first, lines), delimiter=delimiter), [])
    except csv.Error:
        return None


def _with(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _ahead(waiting: deque[Line], lines: Iterator[Line]) -> Iterator[Line]:
    while waiting:
        yield waiting.popleft()
    for line in lines:  # noqa: UP028 — `yield from` would close the file with this generator
        yield line


class _Kept:
    """The texts of lines, as many as a record may have; they are kept as they are taken."""

    def __init__(self, lines: Iterator[Line], taken: list[Line]) -> None:
        self._lines, self._taken = lines, taken
        self.too_long = False

    def __iter__(self) -> Iterator[str]:
        length = 0
        for line in self._lines:
            self._taken.append(line)
            length += len(line[1])
            if length > LONGEST:
                self.too_long = True
                raise csv.Error("longer than any fact")
            yield line[1]
