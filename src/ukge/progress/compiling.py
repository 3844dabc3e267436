"""Saying that code is being compiled, when it really is: a first run that only seems to hang is a bad first run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

TOLD = "compiling for this machine; later runs take it from the cache …"


@contextmanager
def when_compiling(tell: Callable[[str], None]) -> Iterator[None]:
    """Tell it once if anything has to be compiled inside the block; code that comes from the cache is silent."""
    from numba.core import event  # noqa: PLC0415 — it takes time to load

    class Once(event.Listener):  # type: ignore[misc, unused-ignore]
        told = False

        def on_start(self, event: object) -> None:  # noqa: ARG002
            if not self.told:
                self.told = True
                tell(TOLD)

        def on_end(self, event: object) -> None:
            pass

    with event.install_listener("numba:compile", Once()):
        yield
