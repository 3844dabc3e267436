"""The gate in front of the service: host, key, body, time; and the headers and figures that every answer gets."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Container
from urllib.parse import parse_qs

from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ukge.html import render
from ukge.serve.metrics import Metrics
from ukge.serve.problems import Problem, TimeLimitError, TooOftenError, too_large
from ukge.serve.settings import Access, Limits
from ukge.serve.writes import is_write, may_change, refused_write, same_origin

log = logging.getLogger("ukge.serve")

COOKIE = "ukge_pass"
LOGIN_PATH = "/login"
OPEN_PATHS = frozenset({"/healthz", LOGIN_PATH})
API_PATHS = ("/v1/", "/healthz", "/metrics", "/openapi.json", "/mcp")
CHANNEL = "/_nicegui_ws"
"""The explorer's channel to its pages, a WebSocket."""

BURST, PER_SECOND = 100, 5.0
"""Pages, and channels, that one address may open at once, and how many more each second."""

PLAIN = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src 'self' data:; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
"""What any answer may do in a browser: show text. Only pages of the explorer run scripts."""

PAGE = (
    "default-src 'self'; script-src 'self' 'nonce-{nonce}' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data:; font-src 'self'; connect-src 'self'; object-src 'none'; frame-src 'none'; "
    "worker-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""Scripts are files of ours, or stand in NiceGUI's own template; a name that became markup could start none.

Its library makes functions of templates, and styles by script: hence the two words that are unsafe.
"""

SECURITY = {
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"x-frame-options": b"DENY",
    b"cross-origin-resource-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
}


def is_api(path: str) -> bool:
    """Return whether a path belongs to the API, where errors are problem documents."""
    return path.startswith(API_PATHS[0]) or path in API_PATHS


def login_page(status: int = 401, *, wrong: bool = False) -> HTMLResponse:
    """Return the page that asks a browser for the key; `wrong` says that the one just given was not the right one."""
    return HTMLResponse(render("login.html", action=LOGIN_PATH, wrong=wrong), status)


class Pace:
    """How often an address may do something. Only the addresses that came last are remembered."""

    def __init__(self, burst: int = BURST, per_second: float = PER_SECOND, remembered: int = 4_096) -> None:
        self._burst, self._per_second, self._remembered = burst, per_second, remembered
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        """Return how many addresses are remembered."""
        return len(self._left)

    def allows(self, address: str) -> bool:
        """Return whether an address may once more, and count it."""
        now = time.monotonic()
        left, since = self._left.pop(address, (float(self._burst), now))
        left = min(float(self._burst), left + self._per_second * (now - since))
        self._left[address] = max(0.0, left - 1.0) if left >= 1.0 else left, now
        while len(self._left) > self._remembered:
            self._left.popitem(last=False)
        return left >= 1.0


class Guard:
    """Wraps the whole service: the API, the pages, what their library loads, and its channel alike.

    `pages` are the addresses that answer with a page of the explorer.
    """

    def __init__(
        self, app: ASGIApp, access: Access, limits: Limits, metrics: Metrics, pages: Container[str] = ()
    ) -> None:
        self.app, self.access, self.limits, self.metrics, self.pages = app, access, limits, metrics, pages
        self.pace = Pace()
        self._channels: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, or answer why not."""
        if scope["type"] == "websocket":
            await self._websocket(scope, receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers, address = Headers(scope=scope), network(scope)
        own = self.access.knows_host(headers.get("host", "")) and same_origin(headers)
        known = own and scope["path"].startswith(CHANNEL) and (self.access.key is None or self._shown(headers))
        crowded = self._channels.total() >= self.limits.pages or 3 * self._channels[address] >= self.limits.pages
        if not known or crowded or not self.pace.allows(address):
            await receive()
            await send({"type": "websocket.close", "code": 1008})
            return
        self._channels[address] += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self._channels[address] -= 1
            self._channels += Counter()  # forgets the addresses that have none

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        page = scope["path"] in self.pages
        scope["may_change"] = may_change(scope, has_key=self.access.key is not None)
        scope["nonce"] = secrets.token_urlsafe(16) if page else ""
        # Who asks may say anything here, and NiceGUI would believe it.
        scope["headers"] = [each for each in scope["headers"] if each[0] != b"x-forwarded-prefix"]
        answer = _Answer(send, PAGE.format(nonce=scope["nonce"]) if page else PLAIN)
        started = time.perf_counter()
        self.metrics.in_flight.inc()
        try:
            async with asyncio.timeout(self.limits.seconds):
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
            if scope["path"].startswith(CHANNEL):
                detail = "The explorer's channel is a WebSocket."
                return Problem(426, "upgrade-required", detail, headers={"upgrade": "websocket"}).response()
            if scope["path"] in self.pages and not self.pace.allows(network(scope)):
                return TooOftenError().response()
            refused = refused_write(scope, has_key=self.access.key is not None) if is_write(scope) else None
            return None if refused is None else refused.response()
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
        return self.access.knows_pass(kept) and same_origin(headers)

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

    def __init__(self, send: Send, policy: str) -> None:
        self._send = send
        self._security = {**SECURITY, b"content-security-policy": policy.encode()}
        self.status = 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = list(message.get("headers", []))
            given = {name.lower() for name, _ in headers}
            message = {
                **message,
                "headers": headers + [each for each in self._security.items() if each[0] not in given],
            }
        await self._send(message)

    async def instead(self, problem: Problem, scope: Scope, receive: Receive) -> None:
        """Send a problem, unless a response has begun: then nothing more can be said but that it ends here."""
        if self.status == 0:
            await problem.response()(scope, receive, self.send)
        else:
            log.warning("a response that had begun was cut: %s", problem.detail)


def network(scope: Scope) -> str:
    """Return where a request comes from: an IPv4 address, or the network of an IPv6 one, which one host has whole."""
    address = (scope.get("client") or ("",))[0]
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    return address if found.version == 4 else str(ipaddress.ip_network((int(found) >> 64 << 64, 64)))


def _replay(body: bytes, receive: Receive) -> Receive:
    sent = False

    async def again() -> Message:
        nonlocal sent
        if sent:
            return await receive()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again
