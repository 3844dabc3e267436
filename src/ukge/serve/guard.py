"""The gate in front of the service: host, key, body, time; and the headers and figures that every answer gets."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import MutableMapping
from typing import Any
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ukge.html import render
from ukge.serve.metrics import Metrics
from ukge.serve.problems import Problem, TimeLimitError, too_large
from ukge.serve.settings import Access, Limits

log = logging.getLogger("ukge.serve")

COOKIE = "ukge_pass"
LOGIN_PATH = "/login"
OPEN_PATHS = frozenset({"/healthz", LOGIN_PATH})
API_PATHS = ("/v1/", "/healthz", "/metrics", "/openapi.json")
LIVE_PATHS = ("/_nicegui",)
"""The explorer's own channel, whose requests may stay open."""

POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; frame-ancestors 'none'; form-action 'self'"
)
SECURITY = {
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"x-frame-options": b"DENY",
    b"cross-origin-resource-policy": b"same-origin",
    b"content-security-policy": POLICY.encode(),
}


def is_api(path: str) -> bool:
    """Return whether a path belongs to the API, where errors are problem documents."""
    return path.startswith(API_PATHS[0]) or path in API_PATHS


def login_page(status: int = 401, *, wrong: bool = False) -> HTMLResponse:
    """Return the page that asks a browser for the key; `wrong` says that the one just given was not the right one."""
    return HTMLResponse(render("login.html", action=LOGIN_PATH, wrong=wrong), status)


class Guard:
    """Wraps the whole service."""

    def __init__(self, app: ASGIApp, access: Access, limits: Limits, metrics: Metrics) -> None:
        self.app, self.access, self.limits, self.metrics = app, access, limits, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer why not."""
        if scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        own = self.access.knows_host(headers.get("host", "")) and _same_origin(headers)
        if own and (self.access.key is None or self._shown(headers)):
            await self.app(scope, receive, send)
            return
        await receive()
        await send({"type": "websocket.close", "code": 1008})

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = _Answer(send)
        started = time.perf_counter()
        self.metrics.in_flight.inc()
        limit = None if scope["path"].startswith(LIVE_PATHS) else self.limits.seconds
        try:
            async with asyncio.timeout(limit):
                refusal = self._refusal(scope)
                body = None if refusal else await self._body(scope, receive)
                if scope["path"] == LOGIN_PATH and refusal is None and self.access.key is not None:
                    refusal = self._login(scope["method"], body or b"")
                if refusal is not None:
                    await refusal(scope, receive, answer.send)
                else:
                    await self.app(scope, receive if body is None else _replay(body, receive), answer.send)
        except TimeoutError:
            await answer.instead(TimeLimitError(self.limits.seconds), scope, receive)
        except Problem as problem:
            await answer.instead(problem, scope, receive)
        except Exception:
            log.exception("a request failed")
            failed = Problem(500, "internal-error", "The service failed to answer. Its log says more.")
            await answer.instead(failed, scope, receive)
        finally:
            self.metrics.in_flight.dec()
            self._count(scope, answer.status, time.perf_counter() - started)

    def _refusal(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if not self.access.knows_host(headers.get("host", "")):
            return Problem(421, "unknown-host", "The service is not known by this host name.").response()
        if self.access.key is None or scope["path"] in OPEN_PATHS or self._shown(headers):
            return None
        if not is_api(scope["path"]):
            return login_page()
        detail = "Give the API key as 'Authorization: Bearer KEY' or as 'X-API-Key: KEY'."
        return Problem(401, "key-needed", detail, headers={"www-authenticate": "Bearer"}).response()

    def _shown(self, headers: Headers) -> bool:
        """Return whether a request carries the key, or a browser's pass from a page of our own."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self.access.knows_key(token.strip()):
            return True
        if self.access.knows_key(headers.get("x-api-key", "")):
            return True
        kept = cookie_parser(headers.get("cookie", "")).get(COOKIE, "")
        return self.access.knows_pass(kept) and _same_origin(headers)

    def _login(self, method: str, body: bytes) -> Response:
        if method != "POST":
            return login_page(200)
        given = parse_qs(body.decode("utf-8", "replace")).get("key", [""])[0]
        if not self.access.knows_key(given.strip()):
            return login_page(wrong=True)
        response = RedirectResponse("/", 303)
        response.set_cookie(COOKIE, self.access.browser_pass(), httponly=True, samesite="strict", max_age=30 * 86_400)
        return response

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """Read the body, if any, so that the application only ever sees one that is whole and not too large."""
        headers = Headers(scope=scope)
        length = headers.get("content-length")
        if length is None and "transfer-encoding" not in headers:
            return None
        if length is not None and length.isdecimal() and int(length) > self.limits.body_bytes:
            raise too_large(self.limits.body_bytes)
        parts, size, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise Problem(400, "incomplete-request", "The request's body ended early.")
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self.limits.body_bytes:
                raise too_large(self.limits.body_bytes)
            more = message.get("more_body", False)
        return b"".join(parts)

    def _count(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", None) if is_api(scope["path"]) else "explorer"
        known = route or "unknown"
        method = scope["method"] if scope["method"] in ("GET", "POST") else "other"
        self.metrics.requests.labels(known, method, str(status)).inc()
        self.metrics.seconds.labels(known).observe(seconds)


class _Answer:
    """Adds headers to a response, and knows whether one has begun."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message = {**message, "headers": _with_security(message)}
        await self._send(message)

    async def instead(self, problem: Problem, scope: Scope, receive: Receive) -> None:
        """Send a problem, unless a response has begun: then nothing more can be said but that it ends here."""
        if self.status == 0:
            await problem.response()(scope, receive, self.send)
        else:
            log.warning("a response that had begun was cut: %s", problem.detail)


def _with_security(message: MutableMapping[str, Any]) -> list[tuple[bytes, bytes]]:
    headers = list(message.get("headers", []))
    given = {name.lower() for name, _ in headers}
    return headers + [(name, value) for name, value in SECURITY.items() if name not in given]


def _same_origin(headers: Headers) -> bool:
    """Return whether the page that sent a request, if one did, came from this service."""
    origin = headers.get("origin")
    return origin is None or origin.partition("://")[2] == headers.get("host")


def _replay(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
