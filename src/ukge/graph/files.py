"""Files as bytes: what a path names, how it is compressed, and what can be wrong before a line is read."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import pyarrow as pa

from ukge.errors import DataError
from ukge.storage.files import replacing_path

COMPRESSION = {".gz": "gzip", ".zst": "zstd"}


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


def open_bytes(path: Path) -> BinaryIO:
    """Open the decompressed bytes for Python."""
    return cast("BinaryIO", io.BufferedReader(cast("io.RawIOBase", open_arrow(path)), 1 << 20))


def open_text(path: Path, *, newline: str | None = None) -> io.TextIOWrapper:
    """Open the decompressed text; bytes that are no UTF-8 come through as lone surrogates, to be found and named."""
    return io.TextIOWrapper(open_bytes(path), encoding="utf-8-sig", errors="surrogateescape", newline=newline)


@contextmanager
def atomic_sink(path: Path) -> Iterator[pa.NativeFile]:
    """Give a stream to write to; the target appears, or changes, only when everything was written."""
    check_target(path)
    try:
        with (
            replacing_path(path) as beside,
            pa.output_stream(str(beside), compression=compression_of(path)) as sink,
        ):
            yield sink
    except OSError as error:
        raise DataError(f"cannot be written: {error}", source=str(path), hint="Check space and permissions.") from None


def damaged(path: Path, error: OSError) -> str:
    """Say that reading stopped, at the last line or statement that could be read or soon after it."""
    if compression_of(path) is None:
        return f"cannot be read any further: {error}"
    return f"the compressed data is damaged or cut off: {error}"


DAMAGED_HINT = "Fetch or compress the file again."
