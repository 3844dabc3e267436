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
from ukge.serve.guard import Guard
from ukge.serve.problems import Problem
from ukge.serve.service import Service
from ukge.serve.settings import Access, Limits
from ukge.serve.snapshot import Live, Snapshot
from ukge.serve.work import Work

WATCH_SECONDS = 2.0
INDEX_ABOVE = 1_000_000


class Explorer(NamedTuple):
    """The pages for people: their application, their addresses, what it answers, and whether one may have another."""

    app: FastAPI
    pages: Container[str]
    answers: Callable[[Scope], bool]
    crowded: Callable[[Scope, Limits], Problem | None]


def front(service: Service, explorer: Explorer | None, watch_seconds: float | None) -> ASGIApp:
    """Return what sends a request to the API or to the explorer, and keeps both alive between start and end."""
    api = create_api(service)

    async def chosen(scope: Scope, receive: Receive, send: Send) -> None:
        # Addresses that lead nowhere are left to the API: the explorer would hold a page in memory to say so.
        if explorer is None or not explorer.answers(scope):
            await api(scope, receive, send)
            return
        refused = explorer.crowded(scope, service.limits) if scope["path"] in explorer.pages else None
        if refused is not None:
            raise refused
        await explorer.app(scope, receive, send)

    @contextlib.asynccontextmanager
    async def alive(_: object) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            if explorer is not None:
                await stack.enter_async_context(explorer.app.router.lifespan_context(explorer.app))
            await asyncio.to_thread(service.snapshot.warm)
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
        from ukge.serve.explorer import PAGES, answers, create_explorer, crowded  # noqa: PLC0415 — loads for a second

        pages = Explorer(create_explorer(service), PAGES, answers, crowded)
    behind = front(service, pages, watch_seconds)
    return Guard(behind, access or Access(), allowed, live.metrics, pages.pages if pages else ()), service
