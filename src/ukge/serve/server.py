"""Running the service: uvicorn with bounds on what comes before a request is complete, a graceful end, a reload."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from ukge.serve.service import Service
from ukge.serve.settings import Limits

GRACE_SECONDS = 5.0
"""Time beyond the longest request that an end waits for those under way."""

HEAD_BYTES = 64 * 1024
HEAD_SECONDS = 10.0


class BoundedProtocol(HttpToolsProtocol):
    """Closes a connection whose request line and headers are too long or do not arrive in time."""

    head_seconds = HEAD_SECONDS

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._head_bytes = 0
        self._in_head = True
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Start to wait for the first request."""
        super().connection_made(transport)
        self._await_head()

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
        """Stop waiting."""
        self._in_head = False
        self._head_bytes = 0
        self._stop_waiting()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

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
