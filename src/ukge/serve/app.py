"""The whole service as one ASGI application: the gate, the API, and the explorer beside it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Container
from pathlib import Path
from typing import NamedTuple

import torch
from fastapi import FastAPI
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from ukge.serve.api import create_api
from ukge.serve.guard import LIVE_PATHS, Guard
from ukge.serve.live import Live
from ukge.serve.problems import OverloadedError
from ukge.serve.service import Service
from ukge.serve.settings import Access, Limits
from ukge.serve.snapshot import Snapshot
from ukge.serve.work import Work

WATCH_SECONDS = 2.0
INDEX_ABOVE = 1_000_000


class Explorer(NamedTuple):
    """The pages for people: their application, the addresses that it answers, and whether it has too many open."""

    app: FastAPI
    addresses: Container[str]
    crowded: Callable[[], bool]


def front(service: Service, explorer: Explorer | None, watch_seconds: float | None) -> ASGIApp:
    """Return what sends a request to the API or to the explorer, and keeps both alive between start and end."""
    api = create_api(service)

    async def chosen(scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        # Addresses that lead nowhere are left to the API: the explorer would hold a page in memory to say so.
        if explorer is None or not (path.startswith(LIVE_PATHS) or path in explorer.addresses):
            await api(scope, receive, send)
            return
        if not path.startswith(LIVE_PATHS) and explorer.crowded():
            raise OverloadedError
        await explorer.app(scope, receive, send)

    @contextlib.asynccontextmanager
    async def alive(_: object) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            if explorer is not None:
                await stack.enter_async_context(explorer.app.router.lifespan_context(explorer.app))
            service.snapshot.warm()
            watch = None if watch_seconds is None else asyncio.create_task(service.live.watch(watch_seconds))
            try:
                yield
            finally:
                if watch is not None:
                    watch.cancel()
                service.work.close()

    return Router(default=chosen, lifespan=alive)


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
    pages = None
    if explorer:
        from ukge.serve.explorer import ADDRESSES, create_explorer, crowded  # noqa: PLC0415 — it takes a second to load

        pages = Explorer(create_explorer(service), ADDRESSES, crowded)
    return Guard(front(service, pages, watch_seconds), access or Access(), allowed, live.metrics), service
