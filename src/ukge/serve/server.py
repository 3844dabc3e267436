"""Running the service: uvicorn with bounds, a graceful end, and a reload on SIGHUP."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp

from ukge.serve.protocol import BoundedProtocol
from ukge.serve.service import Service
from ukge.serve.settings import Limits

GRACE_SECONDS = 5.0
"""Time beyond the longest request that an end waits for those under way."""


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
        if not self.started:
            return
        with contextlib.suppress(NotImplementedError, AttributeError, ValueError):  # not every system has SIGHUP
            asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._reload)
        self._on_start(self.servers[0].sockets[0].getsockname()[1])

    def _reload(self) -> None:
        task = asyncio.create_task(self._service.live.reload())
        self._reloading.add(task)
        task.add_done_callback(self._reloading.discard)


def run_server(
    app: ASGIApp, service: Service, *, host: str, port: int, limits: Limits, on_start: Callable[[int], None]
) -> None:
    """Serve until told to stop; requests under way are finished first."""
    logging.getLogger("ukge.serve").setLevel(logging.INFO)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=BoundedProtocol,
        ws="websockets-sansio",
        lifespan="on",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=limits.connections,
        timeout_keep_alive=15,
        timeout_graceful_shutdown=int(limits.seconds + GRACE_SECONDS),
        ws_max_size=limits.body_bytes,
    )
    server = Server(config, service, on_start)
    server.run()
