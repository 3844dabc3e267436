"""One at a time: a lock for every command that writes a directory.

The lock of `runs/a` is the file `runs/.a.lock`, so that it can be held before the directory is there and while another
takes its place. The system lets go of it when its holder ends, however that ends.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from filelock import FileLock, Timeout

from ukge.errors import InUseError, RunError
from ukge.storage.files import remove_leftovers, remove_leftovers_in, writing

LOCK = ".lock"


@contextmanager
def alone(
    directory: str | Path, *, hint: str = "Wait for it, or choose another directory.", wait: bool = False
) -> Iterator[None]:
    """Hold a directory, there or not yet, for this thread; whoever comes second is told who holds it, or waits.

    What processes that were killed left half-made, of it and in it, is removed. A thread may hold it again.
    """
    place = Path(os.path.abspath(directory))
    if place.exists() and not place.is_dir():
        raise RunError(f"{directory} is a file, not a directory", hint="Choose another directory.")
    with writing(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        file = _file_of(place)
        lock = FileLock(file, is_singleton=True)
        first = not lock.is_locked
        try:
            lock.acquire(timeout=-1 if wait else 0)
        except Timeout:
            raise InUseError(f"{directory} is in use by {_holder(file)}", hint=hint) from None
    try:
        if first:
            _note_holder(file)
            remove_leftovers(place)
            remove_leftovers_in(place)
        yield
    finally:
        if first:
            with suppress(OSError):  # while it is held: whoever has opened it meanwhile sees that its name is gone
                file.unlink()
        lock.release()


def _file_of(place: Path) -> Path:
    """Return the lock's file: beside the directory, or in it where nothing can be written beside it."""
    if place.is_dir() and not os.access(place.parent, os.W_OK):
        return place / LOCK
    return place.with_name(f".{place.name}{LOCK}")


def _note_holder(file: Path) -> None:
    told = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]])[:200],
    }
    with suppress(OSError):  # on a full disk nobody is told who holds it
        file.write_text(json.dumps(told), encoding="utf-8")


def _holder(file: Path) -> str:
    try:
        told = json.loads(file.read_text(encoding="utf-8"))
        since = datetime.fromisoformat(told["since"]).astimezone()
        return f"process {told['pid']} on {told['host']} since {since:%Y-%m-%d %H:%M:%S} ({told['command']})"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
