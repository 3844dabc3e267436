"""What a file begins with, so that what it holds tells its format: its first lines, or the columns of Parquet."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from ukge.graph.files import extension_of, open_arrow

PARQUET = (".parquet", ".pq")
_BYTES = 1 << 16


class Opening:
    """The beginning of a file, or of the first part of a directory; of what cannot be read it says nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def extension(self) -> str:
        """The extension that says the format, of `edges.tsv.gz` it is `.tsv`."""
        return extension_of(self.path)

    @cached_property
    def first(self) -> Path | None:
        """The file that is looked at: the path itself, or the first part of Parquet in a directory of nothing else."""
        if not self.path.is_dir():
            return self.path
        parts = parts_of(self.path)
        return parts[0] if parts else None

    @cached_property
    def text(self) -> str:
        """The first 64 KiB, if they are text."""
        if not self.path.is_file():  # a pipe that nobody writes to would be waited for
            return ""
        try:
            with open_arrow(self.path) as stream:
                data: bytes = stream.read(_BYTES)
        except (OSError, pa.ArrowInvalid):
            return ""
        return data.decode("utf-8-sig", errors="replace")

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The first lines that are not blank; the last one may be cut off."""
        return tuple(line for line in self.text.splitlines() if line.strip())

    def cells(self, delimiter: str = "\t") -> list[str]:
        """Return the cells of the first line."""
        return [cell.strip() for cell in self.lines[0].split(delimiter)] if self.lines else []

    @cached_property
    def columns(self) -> frozenset[str]:
        """The columns of a Parquet file; of anything else none."""
        if self.first is None or self.first.suffix.lower() not in PARQUET or not self.first.is_file():
            return frozenset()
        from pyarrow.parquet import read_schema  # noqa: PLC0415 — other files are looked at without it

        try:
            return frozenset(read_schema(self.first).names)
        except (pa.ArrowException, OSError, UnicodeError, MemoryError, OverflowError):
            return frozenset()


def parts_of(folder: Path) -> list[Path]:
    """Return the Parquet files of a directory of nothing else; marks such as `_SUCCESS` are passed over."""
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if entry.name[0] not in "._")
    except OSError:
        return []
    parts = [folder / name for name in names]
    return parts if parts and all(part.suffix.lower() in PARQUET and part.is_file() for part in parts) else []
