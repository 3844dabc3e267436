"""Saying that code is being compiled, when it really is: a first run that only seems to hang is a bad first run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from numba.core import event


class _Once(event.Listener):  # type: ignore[misc, unused-ignore]
    def __init__(self, tell: Callable[[], None]) -> None:
        self.tell: Callable[[], None] | None = tell

    def on_start(self, event: object) -> None:  # noqa: ARG002
        if self.tell is not None:
            tell, self.tell = self.tell, None
            tell()

    def on_end(self, event: object) -> None:
        pass


@contextmanager
def when_compiling(tell: Callable[[], None]) -> Iterator[None]:
    """Call `tell` once if anything has to be compiled inside the block; code that comes from the cache is silent."""
    with event.install_listener("numba:compile", _Once(tell)):
        yield
