"""Where a file is written: beside its target first, then moved there whole, compressed as its extension says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from ukge.errors import DataError
from ukge.graph.files import check_target, compression_of
from ukge.storage.files import replacing_path


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
