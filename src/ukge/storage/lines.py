"""Files that grow by whole lines: each is on the disk before its writer goes on, and none is ever half there.

Several processes may add at a time. A line that a killed process left without its end was never promised to anybody:
the next writer removes it, and readers pass over it.
"""

from __future__ import annotations

import os
from pathlib import Path

from ukge.storage.files import writing

STEP = 1 << 16


def append_lines(path: Path, lines: list[str]) -> None:
    """Add lines to a file, which is made if it is not there: all of them, or after a kill perhaps the first ones."""
    from filelock import lock_descriptor  # noqa: PLC0415 — who only reads needs none

    content = "".join(line + "\n" for line in lines).encode()
    with writing(path):
        new = not path.exists()
        held = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            lock_descriptor(held, blocking=True)  # until it is closed
            end = _end_of_lines(held)
            os.ftruncate(held, end)
            written = 0
            while written < len(content):
                written += os.pwrite(held, content[written:], end + written)
            os.fsync(held)
        finally:
            os.close(held)
        if new:
            _keep_name(path.parent)


def read_lines(path: Path) -> list[bytes]:
    """Return the lines of a file that are complete; none if there is no file."""
    try:
        *lines, _ = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    return lines


def _end_of_lines(descriptor: int) -> int:
    """Return where the last complete line ends."""
    end = os.fstat(descriptor).st_size
    while end > 0:
        begin = max(0, end - STEP)
        found = os.pread(descriptor, end - begin, begin).rfind(b"\n")
        if found >= 0:
            return begin + found + 1
        end = begin
    return 0


def _keep_name(directory: Path) -> None:
    held = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(held)
    finally:
        os.close(held)
