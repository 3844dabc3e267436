"""Files and directories that are either whole or not there: the one way in which something of ours appears.

What is in the making is hidden beside its place, `.<name>.<random>.tmp`, and locked as long as its maker lives; so what
a process that was killed left behind is known, and goes when the same name is made again.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

from ukge.errors import RunError, UkgeError

DAMAGED = "The file was cut short or edited. Restore it, or train again."

_TEMPORARY = re.compile(r"\.(?P<name>.+)\.[0-9a-f]{8}\.tmp", re.DOTALL)
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2

_ROOM = "Make room there, then give the same command again: nothing that was complete is lost."
_RIGHTS = "Check its permissions, or choose another place."
_REFUSED = {
    errno.ENOSPC: ("no space is left on the disk", _ROOM),
    errno.EDQUOT: ("the disk quota is used up", _ROOM),
    errno.EFBIG: (
        "the file would be larger than is allowed here",
        "Raise the limit: ulimit -f.",
    ),
    errno.EROFS: ("the file system is read-only", "Choose another place."),
    errno.EACCES: ("permission denied", _RIGHTS),
    errno.EPERM: ("permission denied", _RIGHTS),
}


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Say which path could not be written, why, and what to do, where a disk is full or a place is not ours."""
    try:
        yield
    except UkgeError:
        raise
    except Exception as error:
        number, where = getattr(error, "errno", None), getattr(error, "filename", None)
        if number is None:  # DuckDB, safetensors and others tell it in words alone
            number = next((each for each in (errno.ENOSPC, errno.EDQUOT) if os.strerror(each) in str(error)), None)
        elsewhere = isinstance(where, str) and not Path(where).is_relative_to(path.parent)
        if number not in _REFUSED or elsewhere:
            raise
        why, hint = _REFUSED[number]
        raise RunError(f"{path} cannot be written: {why}", hint=hint) from error


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
    if path.exists() and not path.is_file():
        raise RunError(f"{path} is no file, and is not replaced by one", hint="Choose another name.")
    with writing(path):
        remove_leftovers(path)
        temporary = temporary_beside(path)
        held = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            _lock(held)
            yield temporary
            with temporary.open("r+b") as handle:  # on the disk before the name, or a crash could leave the name alone
                os.fsync(handle.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
            os.close(held)


class Making:
    """A directory in the making, at `path` until it is published at `target`."""

    def __init__(self, target: Path) -> None:
        self.target = target
        with writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            remove_leftovers(target)
            self.path = temporary_beside(target)
            self.path.mkdir()
            self._held = os.open(self.path, os.O_RDONLY)
            _lock(self._held)

    def publish(self, *, over: bool = False) -> None:
        """Let it take its place, in one step; if `over`, what is there gives way and is removed then.

        Without `over`, nothing but an empty directory may be there.
        """
        with writing(self.target):
            if over and self.target.exists():
                _exchange(self.path, self.target)
                shutil.rmtree(self.path, ignore_errors=True)
            else:
                _place(self.path, self.target)
            os.close(self._held)
            self.path = self.target

    def discard(self) -> None:
        """Remove it, unless it is published."""
        if self.path != self.target:
            shutil.rmtree(self.path, ignore_errors=True)
            os.close(self._held)
            self.path = self.target


@contextmanager
def replacing_directory(target: Path, *, over: bool = False) -> Iterator[Path]:
    """Yield a directory to fill, which takes the place of `target` when the block ends well; see `Making.publish`."""
    making = Making(target)
    try:
        with writing(target):
            yield making.path
        making.publish(over=over)
    finally:
        making.discard()


def temporary_beside(path: Path) -> Path:
    """Return a new name beside `path` for a file or directory in the making: hidden, `.<name>.<random>.tmp`."""
    return path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")


def remove_leftovers(target: Path) -> None:
    """Remove what processes that are dead left of `target` in the making."""
    _remove_dead(target.parent, target.name)


def remove_leftovers_in(directory: Path) -> None:
    """Remove whatever was left in the making in a directory."""
    if directory.is_dir():
        _remove_dead(directory, None)


def _remove_dead(directory: Path, name: str | None) -> None:
    with suppress(OSError):
        for entry in os.scandir(directory):
            found = _TEMPORARY.fullmatch(entry.name)
            if found is not None and name in (None, found["name"]):
                _remove_if_dead(Path(entry.path))


def _remove_if_dead(path: Path) -> None:
    with suppress(OSError):
        held = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        try:
            if not _lock(held):
                return
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink()
        finally:
            os.close(held)


def _lock(descriptor: int) -> bool:
    """Lock an open file or directory until it is closed or this process ends; say whether nobody else had."""
    from filelock import lock_descriptor  # noqa: PLC0415 — who only reads needs none

    try:
        return lock_descriptor(descriptor, blocking=False)
    except OSError:  # a file system without locks: nothing is known to be dead there
        return False


def _place(source: Path, target: Path) -> None:
    try:
        source.rename(target)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise
        raise RunError(f"{target} was made by somebody else meanwhile", hint="Choose another directory.") from None


def _exchange(one: Path, other: Path) -> None:
    """Let two directories change places at once; where the system cannot, one after the other."""
    library = ctypes.CDLL(None, use_errno=True)
    names = os.fsencode(one), os.fsencode(other)
    if hasattr(library, "renameat2"):
        if library.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _RENAME_EXCHANGE) == 0:
            return
        if ctypes.get_errno() not in (errno.EINVAL, errno.ENOSYS):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(other))
    aside = temporary_beside(other)
    other.rename(aside)
    one.rename(other)
    aside.rename(one)


def reserve(handle: BinaryIO, size: int) -> None:
    """Take the room that an open file will need, so that a disk too small is an error now.

    A mapped file without it ends the process by a signal as soon as a page finds none. Where the system cannot, the
    file is only made that long.
    """
    if size and hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(handle.fileno(), 0, size)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                raise
        else:
            return
    os.ftruncate(handle.fileno(), size)


def read_given(path: str | Path, most: int = -1) -> bytes:
    """Return the bytes of a file that a user names, the first `most`; a pipe that nobody writes to is an `OSError`.

    Opening such a pipe would wait for ever. One that somebody writes to, as the shell's <(…), is read to its end.
    """

    def at_once(name: str, flags: int) -> int:
        return os.open(name, flags | getattr(os, "O_NONBLOCK", 0))

    with open(path, "rb", buffering=0, opener=at_once) as handle:
        first = b""
        if stat.S_ISFIFO(os.fstat(handle.fileno()).st_mode):
            found = handle.read(1)  # None where a writer has not written yet
            if found == b"":
                raise OSError(errno.EPIPE, "it is a pipe, and nobody writes to it")
            first = found or b""
            os.set_blocking(handle.fileno(), True)
        rest = BufferedReader(handle).read(most)
        return (first + rest)[:most] if most >= 0 else first + rest


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
