"""Files as bytes: what a path names, how it is compressed, and what can be wrong before a line is read."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import zstandard

from ukge.errors import DataError
from ukge.storage.files import replacing_path

COMPRESSION = {".gz": "gzip", ".zst": "zstd"}
LONGEST = 1 << 20
"""Bytes of a line, a record over several lines, a tag or a text: no fact is longer, and a few megabytes that unpack to
gigabytes of zeros must end as an error, not in all of memory."""

TOO_LONG = f"longer than {LONGEST:,} bytes, or as many blank lines: no fact is"


class TooLongError(ValueError):
    """A line is longer than `LONGEST`, or so many are blank. Whoever counts lines says which."""


class CheckedLines(io.RawIOBase):
    """Passes bytes on as long as no line is longer than `LONGEST`; all lines before such a one are passed on."""

    def __init__(self, stream: pa.NativeFile) -> None:
        self._stream = stream
        self._open = 0  # bytes since the last line end
        self._failed = False

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
        if self._failed:
            raise TooLongError
        data: bytes = self._stream.read(size if size >= 0 else None)
        start = 0
        while len(data) - start > LONGEST - self._open:
            end = _line_end(data, start, start + LONGEST - self._open + 1)
            if end < 0:
                self._failed = True
                if start == 0:
                    raise TooLongError
                return data[:start]
            start, self._open = end + 1, 0
        last = _line_end(data, start, len(data))
        self._open = self._open + len(data) - start if last < 0 else len(data) - last - 1
        return data

    def close(self) -> None:
        """Close the file beneath."""
        self._stream.close()
        super().close()


def _line_end(data: bytes, start: int, end: int) -> int:
    """Return where the last line in a stretch ends, or −1."""
    return max(data.rfind(b"\n", start, end), data.rfind(b"\r", start, end))


def compression_of(path: Path) -> str | None:
    """Return how the file is compressed, by its last extension."""
    return COMPRESSION.get(path.suffix.lower())


def extension_of(path: Path) -> str:
    """Return the extension that says the format: `.tsv` of both `facts.tsv` and `facts.tsv.gz`."""
    inner = path.with_suffix("") if compression_of(path) else path
    return inner.suffix.lower()


def check_target(path: Path) -> None:
    """Raise `DataError` unless a file can be written at the path."""
    if path.is_dir():
        raise DataError("is a directory, not a file", source=str(path), hint="Name a file in it.")
    if not path.parent.is_dir():
        raise DataError("its directory does not exist", source=str(path), hint=f"Make {path.parent} first.")


def check_file(path: Path) -> None:
    """Raise `DataError` unless the path names a file that holds something."""
    source = str(path)
    try:
        if not path.exists():
            near = sorted(other.name for other in path.parent.glob(f"{path.stem[:4]}*"))[:5] if path.stem else []
            hint = f"Near it there is: {', '.join(near)}." if near else "Check the path."
            raise DataError("no such file", source=source, hint=hint)
        if path.is_dir():
            raise DataError("is a directory, not a file", source=source, hint="Name one of the files in it.")
        if not path.is_file():
            raise DataError("is not a regular file", source=source, hint="Save the data to a file first.")
        if path.stat().st_size == 0:
            raise DataError("the file is empty", source=source, hint="Check how the file was made.")
        with path.open("rb") as file:
            file.read(1)
    except OSError as error:
        raise DataError(f"cannot be opened: {error.strerror}", source=source, hint="Check the path.") from None


def open_arrow(path: Path) -> pa.NativeFile:
    """Open the decompressed bytes for Arrow."""
    return pa.input_stream(str(path), compression=compression_of(path))


def open_lines(path: Path) -> CheckedLines:
    """Open the decompressed bytes of a file of lines: reading ends in `TooLongError` at one that is too long."""
    return CheckedLines(open_arrow(path))


def open_bytes(path: Path) -> BinaryIO:
    """Open the decompressed bytes for Python."""
    return cast("BinaryIO", io.BufferedReader(cast("io.RawIOBase", open_arrow(path)), 1 << 20))


def open_text(path: Path, *, newline: str | None = None) -> io.TextIOWrapper:
    """Open the decompressed text; bytes that are no UTF-8 come through as lone surrogates, to be found and named."""
    lines = io.BufferedReader(open_lines(path), LONGEST)
    return io.TextIOWrapper(lines, encoding="utf-8-sig", errors="surrogateescape", newline=newline)


@contextmanager
def atomic_sink(path: Path) -> Iterator[Any]:
    """Give a stream to write to; the target appears, or changes, only when everything was written."""
    check_target(path)
    try:
        with (
            replacing_path(path) as beside,
            _packed(beside, compression_of(path)) as sink,
        ):
            yield sink
    except OSError as error:
        raise DataError(f"cannot be written: {error}", source=str(path), hint="Check space and permissions.") from None


def checksum(column: pa.ChunkedArray, before: Sequence[int] = (0, 0)) -> list[int]:
    """Return CRCs of the lengths and the letters of names, or of numbers, however a column is cut, from `before` on."""
    sizes, values = before
    for chunk in column.chunks:
        if not pa.types.is_large_string(chunk.type):
            values = zlib.crc32(chunk.to_numpy(zero_copy_only=False), values)
            continue
        sizes = zlib.crc32(pc.binary_length(chunk).fill_null(-1).to_numpy(zero_copy_only=False), sizes)
        known = chunk.fill_null("")
        _, offsets, text = known.buffers()
        ends = np.frombuffer(offsets, np.int64)[known.offset : known.offset + len(known) + 1]
        if text is not None and len(ends):
            values = zlib.crc32(text.slice(int(ends[0]), int(ends[-1] - ends[0])), values)
    return [sizes, values]


def damaged(path: Path, error: OSError) -> str:
    """Say that reading stopped, at the last line or statement that could be read or soon after it."""
    if compression_of(path) is None:
        return f"cannot be read any further: {error}"
    return f"the compressed data is damaged or cut off: {error}"


def _packed(path: Path, compression: str | None) -> Any:
    """Open a file for writing; Arrow writes zstd without a checksum, so that no reader could notice a flipped bit."""
    if compression != "zstd":
        return pa.output_stream(str(path), compression=compression)
    compressor = zstandard.ZstdCompressor(write_checksum=True)
    return compressor.stream_writer(path.open("wb"), closefd=True)


CHECKSUMS = "ukge.checksums"
"""Where a Parquet file of ours keeps the checksums of its columns: those of Parquet are of pages, not of what the
footer says about them, and a bit of that can flip as well."""
DAMAGED_HINT = "Fetch or compress the file again."
