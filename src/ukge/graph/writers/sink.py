"""Where a file is written: beside its target first, then moved there whole, compressed as its extension says."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from ukge.errors import DataError
from ukge.graph.files import compression_of


@contextmanager
def atomic_sink(path: Path) -> Iterator[pa.NativeFile]:
    """Give a stream to write to; the target appears, or changes, only when everything was written."""
    if path.is_dir():
        raise DataError("is a directory, not a file", source=str(path), hint="Name a file in it.")
    if not path.parent.is_dir():
        raise DataError("its directory does not exist", source=str(path), hint=f"Make {path.parent} first.")
    beside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with pa.output_stream(str(beside), compression=compression_of(path)) as sink:
            yield sink
        os.replace(beside, path)
    except OSError as error:
        raise DataError(f"cannot be written: {error}", source=str(path), hint="Check space and permissions.") from None
    finally:
        beside.unlink(missing_ok=True)
