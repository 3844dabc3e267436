"""Files that are either whole or not there: the one way in which a file of ours appears."""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

DAMAGED = "The file was cut short or edited. Restore it, or train again."


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader, or a run killed at any moment, sees the old content or the new, never a part."""
    with replacing(path) as handle:
        handle.write(content)


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write to, which takes the place of `path` when the block ends well and is gone if it does not."""
    with replacing_path(path) as temporary, temporary.open("wb") as handle:
        yield handle


@contextmanager
def replacing_path(path: Path) -> Iterator[Path]:
    """Do the same for what writes to a path: yield one, where a file must be when the block ends."""
    temporary = temporary_beside(path)
    try:
        yield temporary
        with temporary.open("r+b") as handle:  # on the disk before the name, or a crash could leave the name alone
            os.fsync(handle.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def temporary_beside(path: Path) -> Path:
    """Return a new name beside `path` for a file or directory in the making: hidden, `.<name>.<random>.tmp`."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
