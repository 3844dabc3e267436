"""Compiling kernels with Numba, and keeping what was compiled until its source changes.

Numba's own cache looks at the file of a function alone: one that calls a helper from another file would go on with the
helper as it was. Here a kernel is compiled anew when any file of its folder has changed, or of a folder that a kernel
known to its module is from. Constants of other folders are not watched.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import FunctionType
from typing import Any

import numba as nb
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache

_not_kept: set[str] = set()
"""Kernels that are compiled in every process, because no folder can be written to."""


def kernel(**options: Any) -> Callable[[Any], Any]:
    """Return a decorator that compiles a function with these options of `numba.njit`, and caches it if it can."""

    def compile_and_cache(function: FunctionType) -> Any:
        compiled = nb.njit(**options)(function)
        folders = {Path(function.__code__.co_filename).parent}
        for value in function.__globals__.values():
            folders |= getattr(getattr(value, "_cache", None), "folders", set())
        try:
            compiled._cache = _KernelCache(function, folders)
        except RuntimeError:  # neither the folder of the source nor that of the user's caches can be written to
            compiled._cache = _NoCache(folders)
            _not_kept.add(function.__qualname__)
        return compiled

    return compile_and_cache


def all_kept() -> bool:
    """Return whether every kernel that is known by now is compiled once for all processes."""
    return not _not_kept


class _NoCache(NullCache):  # type: ignore[misc, unused-ignore]
    """Nothing is kept; the folders of the sources are known all the same, for kernels that call this one."""

    def __init__(self, folders: set[Path]) -> None:
        self.folders = folders


class _KernelCache(FunctionCache):  # type: ignore[misc, unused-ignore]
    """Numba's cache of one function, stamped with all files that the function may be made of.

    What cannot be read or written is compiled anew: a cache is never a reason to fail.
    """

    def __init__(self, function: FunctionType, folders: set[Path]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call, unused-ignore]
        self.folders = folders
        own = self._impl.locator.get_source_stamp()
        stamp = (own, *(_digest(folder) for folder in sorted(folders)))
        index: Any = _Index
        self._cache_file = index(self.cache_path, self._impl.filename_base, stamp)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled, if there is room for it and it may be written."""
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call, unused-ignore]
        except OSError:
            _not_kept.add(self._name)


class _Index(IndexDataCacheFile):  # type: ignore[misc, unused-ignore]
    """The files of a cache, each with its digest: of a damaged one not a byte is taken for a program.

    A file of machine code says which arguments it is for: processes that write at the same time may give two the same
    name.
    """

    def save(self, key: Any, data: Any) -> None:
        """Keep what was compiled for a key."""
        super().save(key, (key, data))  # type: ignore[no-untyped-call, unused-ignore]

    def load(self, key: Any) -> Any:
        """Return what was compiled for a key, None if that is not there, or not as it was written."""
        name = self._load_index().get(key)
        found = None if name is None else self._load_data(name)
        return found[1] if found is not None and found[0] == key else None

    def _load_index(self) -> dict[Any, Any]:
        version, stamp, overloads = _read(Path(self._index_path)) or (None, None, {})
        return overloads if (version, stamp) == (self._version, self._source_stamp) else {}

    def _save_index(self, overloads: dict[Any, Any]) -> None:
        self._write(self._index_path, (self._version, self._source_stamp, overloads))

    def _load_data(self, name: str) -> Any:
        return _read(Path(self._data_path(name)))  # type: ignore[no-untyped-call, unused-ignore]

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)  # type: ignore[no-untyped-call, unused-ignore]

    def _write(self, path: str, content: Any) -> None:
        text = self._dump(content)  # type: ignore[no-untyped-call, unused-ignore]
        with self._open_for_write(path) as handle:  # type: ignore[no-untyped-call, unused-ignore]
            handle.write(hashlib.sha256(text).digest() + text)


def _read(file: Path) -> Any:
    """Return what a file of the cache holds, None if it is not there, damaged, or about classes that have gone."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    digest, text = content[:32], content[32:]
    if hashlib.sha256(text).digest() != digest:
        return None
    try:
        return pickle.loads(text)  # noqa: S301 — what this user's own compiler wrote
    except (AttributeError, ImportError):
        return None


@lru_cache
def _digest(folder: Path) -> bytes:
    """Return a digest of the sources of a folder, as they are when the first of its kernels is defined."""
    found = hashlib.sha256()
    for file in sorted(folder.glob("*.py")):
        found.update(hashlib.sha256(file.read_bytes()).digest())
    return found.digest()
