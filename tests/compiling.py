"""What one worker of the tests compiles, the others take from the cache: none compiles it at the same time."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import Any


def compile_once() -> None:
    """Let Numba compile a cached function under a lock that all workers share, inside which it looks into its cache.

    Its own lock of the process is taken first, always: one thread that held the one and another that held the other
    would wait for each other.
    """
    from filelock import FileLock
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.dispatcher import Dispatcher

    place = Path(tempfile.gettempdir()) / "ukge-tests-compiling"
    place.mkdir(exist_ok=True)
    plain: Any = Dispatcher.compile

    def compile_alone(self: Any, sig: Any) -> Any:
        path = getattr(self._cache, "cache_path", None)
        if path is None:  # one that is not cached is nobody else's
            return plain(self, sig)
        name = hashlib.sha256(f"{path} {self.py_func.__qualname__} {sig}".encode()).hexdigest()
        with global_compiler_lock, FileLock(place / f"{name}.lock"):
            return plain(self, sig)

    Dispatcher.compile = compile_alone  # type: ignore[method-assign, unused-ignore]
