"""The whole service as one ASGI application: the gate, the API, and the explorer beside it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Container
from pathlib import Path

import torch
from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from ukge.serve.api import create_api
from ukge.serve.guard import LIVE_PATHS, Guard, is_api
from ukge.serve.live import Live
from ukge.serve.problems import overloaded
from ukge.serve.service import Service
from ukge.serve.settings import Access, Limits
from ukge.serve.snapshot import Snapshot
from ukge.serve.work import Work

WATCH_SECONDS = 2.0
INDEX_ABOVE = 1_000_000


class Front:
    """Sends a request to the API or to the explorer, and keeps both alive between start and end."""

    def __init__(
        self,
        service: Service,
        explorer: FastAPI | None,
        watch_seconds: float | None,
        crowded: Callable[[], bool] = lambda: False,
        pages: Container[str] = (),
    ) -> None:
        self.service = service
        self._crowded = crowded
        self._pages = pages
        self.api = create_api(service)
        self.explorer = explorer
        self._watch_seconds = watch_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or live as long as the server does."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        path = scope["path"]
        # Addresses that lead nowhere are left to the API: the explorer would hold a page in memory to say so.
        known = path.startswith(LIVE_PATHS) or path in self._pages
        chosen: ASGIApp = self.explorer if self.explorer is not None and known and not is_api(path) else self.api
        if chosen is self.explorer and not path.startswith(LIVE_PATHS) and self._crowded():
            raise overloaded()
        await chosen(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            async with self._alive():
                await send({"type": "lifespan.startup.complete"})
                await receive()
        except Exception as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            raise
        await send({"type": "lifespan.shutdown.complete"})

    @contextlib.asynccontextmanager
    async def _alive(self) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            if self.explorer is not None:
                await stack.enter_async_context(self.explorer.router.lifespan_context(self.explorer))
            self.service.snapshot.warm()
            tasks = [] if self._watch_seconds is None else [self.service.live.watch(self._watch_seconds)]
            running = [asyncio.create_task(task) for task in tasks]
            try:
                yield
            finally:
                for task in running:
                    task.cancel()
                self.service.work.close()


def create_app(
    run: Path,
    *,
    data: str | Path | None = None,
    limits: Limits | None = None,
    access: Access | None = None,
    explorer: bool = True,
    watch_seconds: float | None = WATCH_SECONDS,
    index_above: int = INDEX_ABOVE,
) -> tuple[ASGIApp, Service]:
    """Open a run and return the application that serves it, and the service behind it.

    A run that is missing, unfinished, damaged, or does not fit its data is refused here. `watch_seconds` is how often
    to look for a new run at the same path, None for never. With more than `index_above` entities, an approximate index
    answers rank queries as soon as it is built.
    """
    # Requests run beside each other; splitting the work of each as well would only make them wait for one another.
    torch.set_num_threads(1)
    allowed = limits or Limits()
    live = Live(run, lambda path: Snapshot.open(path, data, index_above=index_above))
    work = Work(allowed.waiting, on_pass=live.metrics.together.observe)
    service = Service(live, work, allowed)
    if explorer:
        from ukge.serve.explorer import ADDRESSES, create_explorer, crowded  # noqa: PLC0415 — it takes a second to load

        front = Front(service, create_explorer(service), watch_seconds, crowded, ADDRESSES)
    else:
        front = Front(service, None, watch_seconds)
    return Guard(front, access or Access(), allowed, live.metrics), service
