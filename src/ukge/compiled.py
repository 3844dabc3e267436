"""Compiling kernels with Numba, and keeping what was compiled until its source changes.

Numba's own cache looks at the file of a function alone: one that calls a helper from another file would go on with the
helper as it was. Here a kernel is compiled anew when any file of its folder has changed, or of a folder that a kernel
known to its module is from. Constants of other folders are not watched.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from types import FunctionType
from typing import Any

import numba as nb
from numba.core.caching import FunctionCache, IndexDataCacheFile


def kernel(**options: Any) -> Callable[[Any], Any]:
    """Return a decorator that compiles a function with these options of `numba.njit`, and caches it."""

    def compile_and_cache(function: FunctionType) -> Any:
        compiled = nb.njit(**options)(function)
        compiled._cache = _KernelCache(function)
        return compiled

    return compile_and_cache


class _KernelCache(FunctionCache):  # type: ignore[misc, unused-ignore]
    """Numba's cache of one function, stamped with all files that the function may be made of."""

    def __init__(self, function: FunctionType) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call, unused-ignore]
        self.folders = {Path(function.__code__.co_filename).parent}
        for value in function.__globals__.values():
            helper = getattr(value, "_cache", None)
            if isinstance(helper, _KernelCache):
                self.folders |= helper.folders
        own = self._impl.locator.get_source_stamp()
        stamp = (own, *(_digest(folder) for folder in sorted(self.folders)))
        index: Any = _Index
        self._cache_file = index(self.cache_path, self._impl.filename_base, stamp)


class _Index(IndexDataCacheFile):  # type: ignore[misc, unused-ignore]
    def _load_index(self) -> dict[Any, Any]:
        try:
            found: dict[Any, Any] = super()._load_index()  # type: ignore[no-untyped-call, unused-ignore]
        except (AttributeError, ImportError):  # written for arguments of a class that has gone since
            return {}
        return found


@lru_cache
def _digest(folder: Path) -> bytes:
    """Return a digest of the sources of a folder, as they are when the first of its kernels is defined."""
    found = hashlib.sha256()
    for file in sorted(folder.glob("*.py")):
        found.update(hashlib.sha256(file.read_bytes()).digest())
    return found.digest()
