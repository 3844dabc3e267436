"""What carries messages between a host and the server: the standard streams of a process, or HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

from mcp import types
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from starlette.types import ASGIApp, Receive, Scope, Send

from ukge.agents.server import create_server
from ukge.serve.problems import Problem
from ukge.serve.server import Beside
from ukge.serve.service import Service
from ukge.serve.settings import Access

log = logging.getLogger("ukge.agents")

PATH = "/mcp"


async def serve_streams(service: Service, watch_seconds: float | None) -> None:
    """Answer what comes by standard input until that ends; standard output carries nothing but answers.

    What takes long to find is found when it is first asked for: a host starts such a server for every conversation.
    """
    server = create_server(service)
    async with stdio_server() as (reading, writing):
        await asyncio.to_thread(service.snapshot.warm, ahead=False)
        watch = None if watch_seconds is None else asyncio.create_task(service.live.watch(watch_seconds))
        try:
            await server.run(_Answering(reading, writing), writing, server.create_initialization_options())
        finally:
            if watch is not None:
                watch.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await watch
            service.work.close()


def over_http(service: Service, access: Access) -> Beside:
    """Return what answers at /mcp, beside the API and behind the same guard: streamable HTTP without sessions.

    A browser's page of another site may not ask, whatever name it was reached by.
    """
    hosts = [f"{host}{port}" for host in access.hosts for port in ("", ":*")]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=not access.any_host,
        allowed_hosts=hosts,
        allowed_origins=[f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")],
    )
    app = create_server(service).streamable_http_app(
        streamable_http_path=PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=service.limits.body_bytes,
        transport_security=security,
    )
    app.add_middleware(_OnlyPost)
    return Beside(app, lambda scope: scope["type"] == "http" and scope["path"] == PATH)


class _OnlyPost:
    """Refuses streams that the server would open: it never says anything unasked."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request by that asks something."""
        if scope["type"] == "http" and scope["method"] != "POST":
            detail = f"{PATH} takes POST alone: there are no sessions, and no streams."
            refused = Problem(405, "method-not-allowed", detail, headers={"allow": "POST"})
            await refused.response()(scope, receive, send)
            return
        await self._app(scope, receive, send)


class _Answering:
    """What was sent, message by message. Whatever is no message is answered with an error and told in the log.

    The protocol's own server passes over it, and whoever sent it would wait for ever.
    """

    def __init__(self, reading: ReadStream[SessionMessage | Exception], writing: WriteStream[SessionMessage]) -> None:
        self._reading, self._writing = reading, writing

    async def receive(self) -> SessionMessage:
        """Return the next message."""
        return await self._next(self._reading.receive)

    async def _next(self, heard: Callable[[], Awaitable[SessionMessage | Exception]]) -> SessionMessage:
        while isinstance(item := await heard(), Exception):
            log.warning("a line that is no message of the protocol was refused")
            error = types.ErrorData(code=types.PARSE_ERROR, message="This line is no JSON-RPC message.")
            refused = types.JSONRPCError(jsonrpc="2.0", id=None, error=error)
            await self._writing.send(SessionMessage(refused))
        return item

    async def aclose(self) -> None:
        """Stop reading."""
        await self._reading.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage:
        return await self._next(self._reading.__anext__)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
