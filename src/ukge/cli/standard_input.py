"""Standard input as a file: readers go through a file more than once, to say which line is wrong."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ukge.errors import ConfigError, DataError, as_written

DASH = Path("-")
NAME = "standard input"


@contextmanager
def file_of(path: Path, form: str | None) -> Iterator[Path]:
    """Give the file of a path; `-` is standard input, whose format has to be said. Errors call it by its name."""
    if path != DASH:
        yield path
        return
    if form is None:
        raise ConfigError("nothing says the format of standard input", hint="Give it, for example ‹format='tsv'›.")
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "standard-input"
        with file.open("wb") as target:
            shutil.copyfileobj(sys.stdin.buffer, target)
        try:
            yield file
        except DataError as error:
            what, hint = error.worded(as_written)
            raise DataError(what.replace(str(file), NAME), count=error.count, hint=hint) from None
