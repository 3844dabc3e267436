"""The application that serves a run, API and explorer behind one guard, and its running by uvicorn: bounds on what
comes before a request is complete, a graceful end, a reload.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import os
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, NoReturn

import torch
import uvicorn
from starlette.applications import Starlette
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ukge.serve.api import create_api
from ukge.serve.guard import Guard, network
from ukge.serve.problems import Problem
from ukge.serve.service import Service
from ukge.serve.settings import Access, Limits
from ukge.serve.snapshot import Live, Snapshot
from ukge.serve.work import Work

WATCH_SECONDS = 2.0
INDEX_ABOVE = 1_000_000


def _roomy(_: Scope, __: Limits) -> None:
    """Say that another may come: what holds nothing for those who come is never crowded."""


class Beside(NamedTuple):
    """What stands beside the API, the explorer for people or tools for agents: its application, and what it answers.

    `pages` are the addresses of pages that are held for a browser; `crowded` says why there may not be another.
    """

    app: Starlette
    answers: Callable[[Scope], bool]
    pages: Collection[str] = ()
    crowded: Callable[[Scope, Limits], Problem | None] = _roomy


def front(service: Service, beside: Sequence[Beside], watch_seconds: float | None) -> ASGIApp:
    """Return what sends a request to the API or to what stands beside it, and keeps all alive from start to end."""
    api = create_api(service)

    async def chosen(scope: Scope, receive: Receive, send: Send) -> None:
        # Addresses that lead nowhere are left to the API: the explorer would hold a page in memory to say so.
        other = next((each for each in beside if each.answers(scope)), None)
        if other is None:
            await api(scope, receive, send)
            return
        refused = other.crowded(scope, service.limits) if scope["path"] in other.pages else None
        if refused is not None:
            raise refused
        await other.app(scope, receive, send)

    @contextlib.asynccontextmanager
    async def alive(_: object) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for each in beside:
                await stack.enter_async_context(each.app.router.lifespan_context(each.app))
            await asyncio.to_thread(service.snapshot.warm)
            watch = None if watch_seconds is None else asyncio.create_task(service.live.watch(watch_seconds))
            try:
                yield
            finally:
                if watch is not None:
                    watch.cancel()
                service.live.close()
                service.work.close()

    return Router(default=chosen, lifespan=alive)


def open_service(
    run: Path,
    *,
    data: str | Path | None = None,
    prior: float | None = None,
    limits: Limits | None = None,
    index_above: int = INDEX_ABOVE,
) -> Service:
    """Open a run and return what answers by name: a run that is missing, damaged or does not fit is refused here.

    `prior` is the share of facts among the links that will be asked about, as for `Predictor.open`. With more than
    `index_above` entities, an approximate index answers rank queries as soon as it is built.
    """
    # Requests run beside each other; splitting the work of each as well would only make them wait for one another.
    torch.set_num_threads(1)
    allowed = limits or Limits()
    live = Live(run, lambda path: Snapshot.open(path, data, index_above=index_above, prior=prior))
    return Service(live, Work(allowed.waiting, on_pass=live.metrics.together.observe), allowed)


def guarded(
    service: Service, access: Access, beside: Sequence[Beside] = (), watch_seconds: float | None = WATCH_SECONDS
) -> ASGIApp:
    """Return the application that serves all of it behind one guard."""
    pages = frozenset(page for each in beside for page in each.pages)
    return Guard(front(service, beside, watch_seconds), access, service.limits, service.live.metrics, pages)


def create_app(
    run: Path,
    *,
    data: str | Path | None = None,
    prior: float | None = None,
    limits: Limits | None = None,
    access: Access | None = None,
    explorer: bool = True,
    watch_seconds: float | None = WATCH_SECONDS,
    index_above: int = INDEX_ABOVE,
) -> tuple[ASGIApp, Service]:
    """Open a run as `open_service` does and return the application that serves it, and the service behind it.

    `watch_seconds` is how often to look for a new run at the same path, None for never.
    """
    service = open_service(run, data=data, prior=prior, limits=limits, index_above=index_above)
    beside: list[Beside] = []
    if explorer:
        from ukge.serve.explorer import PAGES, answers, create_explorer, crowded  # noqa: PLC0415 — loads for a second

        beside.append(Beside(create_explorer(service), answers, PAGES, crowded))
    return guarded(service, access or Access(), beside, watch_seconds), service


GRACE_SECONDS = 5.0
"""Time beyond the longest request that an end waits for those under way."""

INTERRUPTED = 130
"""The exit code after Ctrl-C."""

HEAD_BYTES = 64 * 1024
HEAD_SECONDS = 10.0


class BoundedProtocol(HttpToolsProtocol):
    """Closes a connection whose request line and headers are too long or do not arrive in time.

    Where there are too many connections, or too many of one address, the one that has waited longest for its client
    gives way to the new one: however many are held open, whoever sends a request at once is heard.
    """

    head_seconds = HEAD_SECONDS

    def __init__(self, *given: Any, limits: Limits, **named: Any) -> None:
        super().__init__(*given, **named)
        self._limits = limits
        self._head_bytes = 0
        self._in_head = True
        self._timer: asyncio.TimerHandle | None = None
        self._waits_since: float | None = None

    @property
    def address(self) -> str:
        """Where it comes from."""
        return network({"client": self.client})

    def connection_made(self, transport: Any) -> None:
        """Make room, and start to wait for the first request."""
        super().connection_made(transport)
        self._waits_since = self.loop.time()
        self._await_head()
        self._make_room()

    def data_received(self, data: bytes) -> None:
        """Count the bytes of a head that is not complete."""
        if self._in_head:
            self._head_bytes += len(data)
        super().data_received(data)
        if self._in_head and self._head_bytes > HEAD_BYTES:
            self._give_up()

    def on_message_begin(self) -> None:
        """Start to wait for the rest of a request's head."""
        super().on_message_begin()
        self._in_head = True
        self._await_head()

    def on_headers_complete(self) -> None:
        """Stop waiting for the head."""
        self._in_head = False
        self._head_bytes = 0
        self._stop_waiting()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """Note that the client has said all."""
        self._waits_since = None
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Wait for another request."""
        self._waits_since = self.loop.time()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _make_room(self) -> None:
        every = [each for each in self.connections if isinstance(each, BoundedProtocol)]
        count = Counter(each.address for each in every)
        full = len(self.connections) > self._limits.connections
        if 2 * count[self.address] > self._limits.connections:
            largest = self.address
        elif full:
            largest = count.most_common(1)[0][0]
        else:
            return
        waiting = [each for each in every if each is not self and each.address == largest and each._waits_since]
        if waiting:
            min(waiting, key=lambda each: each._waits_since or 0.0).transport.close()
        elif not full:
            self.transport.close()  # were it full, it would be told so when it has asked

    def _await_head(self) -> None:
        self._stop_waiting()
        self._timer = self.loop.call_later(self.head_seconds, self._give_up)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        if self._in_head and not self.transport.is_closing():
            self.transport.close()


class Server(uvicorn.Server):
    """Tells when it listens, and opens the run again when it is told to."""

    def __init__(self, config: uvicorn.Config, service: Service, on_start: Callable[[int], None]) -> None:
        super().__init__(config)
        self._service = service
        self._on_start = on_start
        self._reloading: set[asyncio.Task[bool]] = set()

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        """Listen, then tell the port."""
        await super().startup(sockets)  # type: ignore[arg-type]
        if not self.started or self.should_exit:
            return
        with contextlib.suppress(NotImplementedError, AttributeError, ValueError):  # not every system has SIGHUP
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._reload)
        self._on_start(self.servers[0].sockets[0].getsockname()[1])

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Let requests under way finish; before there are any, end at once."""
        if not self.started:
            end(sig, frame)
        super().handle_exit(sig, frame)

    def _reload(self) -> None:
        task = asyncio.create_task(self._service.live.reload())
        self._reloading.add(task)
        task.add_done_callback(self._reloading.discard)


def end(sig: int, _: FrameType | None = None) -> NoReturn:
    """End the process, told by a signal. What threads still prepare is of use to nobody, so they are not waited for."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, RuntimeError):  # it may be written to just now
            stream.flush()
    os._exit(INTERRUPTED if sig == signal.SIGINT else 0)


@contextlib.contextmanager
def ending_on_signals() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end the process: at once while it opens the run, later as the server says."""
    before = {each: signal.signal(each, end) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def run_server(
    app: ASGIApp, service: Service, *, host: str, port: int, limits: Limits, on_start: Callable[[int], None]
) -> None:
    """Serve until told to stop; requests under way are finished first."""
    logging.getLogger("ukge.serve").setLevel(logging.INFO)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=functools.partial(BoundedProtocol, limits=limits),  # type: ignore[arg-type]
        ws="websockets-sansio",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=limits.connections + 1,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=int(limits.seconds + GRACE_SECONDS),
        ws_max_size=limits.body_bytes,
    )
    server = Server(config, service, on_start)
    server.run()
