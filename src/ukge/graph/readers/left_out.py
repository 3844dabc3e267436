"""Lines of a text file that are left out, because no fact can be read from them."""

from __future__ import annotations

import io
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ukge.graph.files import open_text


class LeftOut:
    """Lines that are left out, in ascending order; it takes eight bytes for each."""

    def __init__(self) -> None:
        self._lines = array("q")

    def __len__(self) -> int:
        return len(self._lines)

    def add(self, first: int, last: int) -> None:
        """Leave lines out, from the first to the last."""
        self._lines.extend(range(first, last + 1))

    def of(self, lines: Iterable[str]) -> Iterator[tuple[int, str]]:
        """Yield the lines that are left, with their numbers in the file."""
        gone = iter(self._lines)
        away = next(gone, 0)
        for number, line in enumerate(lines, start=1):
            if number == away:
                away = next(gone, 0)
            else:
                yield number, line

    def open(self, path: Path) -> LinesLeft:
        """Open the bytes of a text file without these lines."""
        return LinesLeft(path, self)


class LinesLeft(io.RawIOBase):
    """The bytes of a text file without some of its lines."""

    def __init__(self, path: Path, left_out: LeftOut) -> None:
        self._text = open_text(path, newline="")
        self._lines = left_out.of(self._text)
        self._rest = b""

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read up to as many bytes as the buffer holds."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def read(self, size: int = -1) -> bytes:
        """Read up to so many bytes."""
        pieces, length = [self._rest], len(self._rest)
        while size < 0 or length < size:
            _, line = next(self._lines, (0, ""))
            if not line:
                break
            pieces.append(line.encode("utf-8", "surrogateescape"))
            length += len(pieces[-1])
        data = b"".join(pieces)
        end = len(data) if size < 0 else size
        self._rest = data[end:]
        return data[:end]

    def close(self) -> None:
        """Close the file beneath."""
        self._text.close()
        super().close()
