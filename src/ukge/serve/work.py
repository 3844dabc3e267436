"""Work off the event loop: threads with a bounded line in front of them, time limits, and what is found ahead of time.

Whoever works in blocks asks between them whether there is time left. Rank queries that wait together share a pass.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ukge.asking.rank import Found, Searcher, Wanted
from ukge.serve.problems import OverloadedError, TimeLimitError

T = TypeVar("T")

TOGETHER = 32
"""Rank queries that are answered in one pass at most."""


class Deadline:
    """A moment by which work must be done."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def left(self) -> float:
        """Seconds left, 0 at least."""
        return max(0.0, self._end - time.monotonic())

    def check(self) -> None:
        """Raise `TimeLimitError` if the moment has passed."""
        if time.monotonic() > self._end:
            raise TimeLimitError(self._seconds)


class Lazy(Generic[T]):
    """A value that takes long to find: found once, in a thread of its own, when it is first wanted.

    A failure is kept too and raised to everyone who asks.
    """

    def __init__(self, what: str, find: Callable[[], T]) -> None:
        self.what = what
        self._find = find
        self._begun = threading.Lock()
        self._value: Future[T] = Future()

    def start(self) -> None:
        """Begin to look for the value, unless that has begun."""
        if self._begun.acquire(blocking=False):
            threading.Thread(target=self._work, name=f"ukge {self.what}", daemon=True).start()

    @property
    def ready(self) -> bool:
        """Whether the value, or a failure, is there."""
        return self._value.done()

    def get(self) -> T:
        """Return the value, waiting for it."""
        self.start()
        return self._value.result()

    def wait(self) -> None:
        """Wait until the value, or a failure, is there."""
        self.start()
        self._value.exception()

    def _work(self) -> None:
        try:
            self._value.set_result(self._find())
        except BaseException as error:
            self._value.set_exception(error)


def one_after_another(every: Sequence[Lazy[Any]]) -> None:
    """Find values in their order in the background, so that requests have to share the processor with one at a time.

    A value that is asked for before its turn is found at once.
    """

    def work() -> None:
        for lazy in every:
            lazy.wait()

    threading.Thread(target=work, name="ukge preparation", daemon=True).start()


@dataclass(frozen=True, eq=False)
class _Query:
    searcher: Searcher
    wanted: Wanted
    deadline: Deadline
    answer: asyncio.Future[Found]


class Work:
    """The service's threads: one for ranking, whose queries are answered together, and some for all else."""

    def __init__(self, waiting: int, threads: int = 2, on_pass: Callable[[int], None] | None = None) -> None:
        self._limit = waiting
        self._on_pass = on_pass
        self._threads = threads
        self._pools: tuple[ThreadPoolExecutor, ThreadPoolExecutor] | None = None
        self._waiting = 0
        self._line: deque[_Query] = deque()
        self._task: asyncio.Task[None] | None = None

    @property
    def waiting(self) -> int:
        """How many pieces of work are under way or wait for a thread."""
        return self._waiting

    async def do(self, work: Callable[[], T]) -> T:
        """Return what `work` returns, done in a thread."""
        if self._waiting >= self._limit:
            raise OverloadedError
        self._waiting += 1
        # Counted until the thread is done, not until the request is: an abandoned request still keeps a thread busy.
        future = asyncio.get_running_loop().run_in_executor(self._open()[0], work)
        future.add_done_callback(self._done)
        return await asyncio.shield(future)

    async def rank(self, searcher: Searcher, wanted: Wanted, deadline: Deadline) -> Found:
        """Return the answers of a query. While one pass over the entities runs, further queries gather for the next."""
        if len(self._line) >= self._limit:
            raise OverloadedError
        loop = asyncio.get_running_loop()
        query = _Query(searcher, wanted, deadline, loop.create_future())
        self._line.append(query)
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._pass())
        return await query.answer

    def close(self) -> None:
        """Let the threads end when their work is done; whoever asks later starts new ones."""
        for pool in self._pools or ():
            pool.shutdown(wait=False, cancel_futures=True)
        self._pools = None

    def _open(self) -> tuple[ThreadPoolExecutor, ThreadPoolExecutor]:
        """Return the threads for all else and the one for ranking, started when they are first needed."""
        if self._pools is None:
            self._pools = (
                ThreadPoolExecutor(self._threads, thread_name_prefix="ukge-work"),
                ThreadPoolExecutor(1, thread_name_prefix="ukge-rank"),
            )
        return self._pools

    def _done(self, future: asyncio.Future[T]) -> None:
        self._waiting -= 1
        if not future.cancelled():
            future.exception()  # taken note of, should nobody wait for it any more

    async def _pass(self) -> None:
        loop = asyncio.get_running_loop()
        while self._line:
            queries = self._together()
            if not queries:
                continue
            if self._on_pass is not None:
                self._on_pass(len(queries))
            last = max((query.deadline for query in queries), key=lambda deadline: deadline.left)
            search, wanted = queries[0].searcher.search, [query.wanted for query in queries]
            try:
                found = await loop.run_in_executor(self._open()[1], search, wanted, last.check)
            except Exception as error:
                _settle(queries, error)
            else:
                for query, each in zip(queries, found, strict=True):
                    if not query.answer.done():
                        query.answer.set_result(each)

    def _together(self) -> list[_Query]:
        """Take from the line what one pass can answer: queries of one run that somebody still waits for."""
        queries: list[_Query] = []
        while self._line and len(queries) < TOGETHER:
            if self._line[0].answer.done():
                self._line.popleft()
            elif queries and self._line[0].searcher is not queries[0].searcher:
                break
            else:
                queries.append(self._line.popleft())
        return queries


def _settle(queries: list[_Query], error: Exception) -> None:
    for query in queries:
        if not query.answer.done():
            query.answer.set_exception(error)
