"""Time limits that work in threads: whoever works in blocks asks between them whether there is time left."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class TimeLimitError(Exception):
    """A request took longer than it may."""


class NotReadyError(Exception):
    """What was asked for is still being prepared."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"{what} are still being prepared")


class Deadline:
    """A moment by which work must be done."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds left, 0 at least."""
        return max(0.0, self._end - time.monotonic())

    def check(self) -> None:
        """Raise `TimeLimitError` if the moment has passed."""
        if time.monotonic() > self._end:
            raise TimeLimitError


class Lazy(Generic[T]):
    """A value that takes long to find: found once, in a thread of its own, when it is first wanted.

    A failure is kept too and raised to everyone who asks.
    """

    def __init__(self, what: str, find: Callable[[], T]) -> None:
        self.what = what
        self._find = find
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._found: T | None = None
        self._error: BaseException | None = None
        self._done = threading.Event()

    def start(self) -> None:
        """Begin to look for the value, unless that has begun."""
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=f"ukge {self.what}", daemon=True)
                self._thread.start()

    @property
    def ready(self) -> bool:
        """Whether the value, or a failure, is there."""
        return self._done.is_set()

    def get(self, deadline: Deadline | None = None) -> T:
        """Return the value, waiting for it until the deadline; then raise `NotReadyError`."""
        self.start()
        if not self._done.wait(None if deadline is None else deadline.left):
            raise NotReadyError(self.what)
        if self._error is not None:
            raise self._error
        return self._found  # type: ignore[return-value]

    def wait(self) -> None:
        """Wait until the value, or a failure, is there."""
        self.start()
        self._done.wait()

    def _work(self) -> None:
        try:
            self._found = self._find()
        except BaseException as error:
            self._error = error
        finally:
            self._done.set()


def one_after_another(every: Sequence[Lazy[Any]]) -> None:
    """Find values in their order in the background, so that requests have to share the processor with one at a time.

    A value that is asked for before its turn is found at once.
    """

    def work() -> None:
        for lazy in every:
            lazy.wait()

    threading.Thread(target=work, name="ukge preparation", daemon=True).start()
