"""Kernels: loops that are compiled where there is much to do, and run as Python where there is little.

To load the compiler takes longer than to answer a question about a few facts without it. Both ways give the same
numbers to the bit, so nobody can tell from an answer how it was made.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from types import FunctionType
from typing import Any

COMPILER = "numba"

PATIENCE = 1.0
"""Seconds of work without the compiler after which it is loaded: about as many as that takes.

So a process that asks one question does not wait for the compiler, and one that asks many waits for it once.
"""

prange = range
"""Rounds of a loop in any order; the compiler shares them out among threads."""

_before: list[Callable[[], None]] = []
_spent = 0.0


class Kernel:
    """A function that is compiled when it is first called; what it calls of other kernels is compiled with it."""

    def __init__(self, source: FunctionType, options: dict[str, Any]) -> None:
        self._source, self._options = source, options

    def __call__(self, *arguments: Any) -> Any:
        """Run it compiled."""
        return self.compiled(*arguments)

    @cached_property
    def compiled(self) -> Any:
        """The function as machine code, from the cache if it is there."""
        load_compiler()
        import numba  # noqa: PLC0415 — that it takes time is what all this is about

        from ukge.compiled import kernel as compiled  # noqa: PLC0415

        own = self._calling("compiled", {"prange": numba.prange})
        return compiled(nogil=True, **self._options)(own)

    @cached_property
    def plain(self) -> Any:
        """The function as it is written."""
        return self._calling("plain", {})

    def within(self, seconds: float) -> Any:
        """Return the function as it is written if that is done in about so many seconds, and else compiled."""
        return self.compiled if compiler_pays(seconds) else self.plain

    def _calling(self, form: str, names: dict[str, Any]) -> FunctionType:
        """Return the function with one form of the kernels that it calls."""
        source = self._source
        used = source.__globals__
        called = {name: getattr(used[name], form) for name in source.__code__.co_names if _is_kernel(used.get(name))}
        own = FunctionType(source.__code__, {**used, **called, **names}, source.__name__, source.__defaults__)
        own.__module__, own.__qualname__, own.__doc__ = source.__module__, source.__qualname__, source.__doc__
        return own


def kernel(**options: Any) -> Callable[[Any], Kernel]:
    """Make a kernel of a function, with options of Numba's compiler."""
    return lambda source: Kernel(source, options)


def compiler_pays(seconds: float) -> bool:
    """Return whether to compile what takes about so many seconds without; all that was not compiled counts with it."""
    global _spent  # noqa: PLW0603 — one process, one compiler
    if COMPILER in sys.modules:
        return True
    _spent += seconds
    return _spent > PATIENCE


def load_compiler() -> None:
    """Load the compiler, for whoever knows that there will be much to do; from then on everything is compiled."""
    if COMPILER not in sys.modules:
        for prepare in _before:
            prepare()
        import numba  # noqa: F401, PLC0415


@contextmanager
def before_compiler(prepare: Callable[[], None]) -> Iterator[None]:
    """Have something done before the compiler is loaded inside the block; at once if it already is."""
    if COMPILER in sys.modules:
        prepare()
    _before.append(prepare)
    try:
        yield
    finally:
        _before.remove(prepare)


def _is_kernel(value: object) -> bool:
    return isinstance(value, Kernel)
