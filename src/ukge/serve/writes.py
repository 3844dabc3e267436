"""Requests that change what a run keeps, and the one rule for all of them: who may send one.

Whoever has the key may. Without a key, only a person at this machine may: the connection comes from it, the service is
called by a name of it, and no proxy says that it speaks for somebody else. A page of another site never may: browsers
say where a page comes from, and JSON is no type that a page may send elsewhere without being asked about it first.
"""

from __future__ import annotations

import ipaddress

from starlette.datastructures import Headers
from starlette.types import Scope

from ukge.serve.problems import Problem

WRITES = frozenset({"/v1/facts", "/v1/labels"})
"""Addresses that take something in, unless they are only read."""

READING = frozenset({"GET", "HEAD", "OPTIONS"})
OWN_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip", "via")

NEEDS_KEY = (
    "Without an API key, nothing can be changed but from the machine that the service runs on. "
    "Start the service with a key: UKGE_API_KEY or --api-key-file."
)


def is_write(scope: Scope) -> bool:
    """Return whether a request is to change something."""
    return scope["path"] in WRITES and scope["method"] not in READING


def may_change(scope: Scope, *, has_key: bool) -> bool:
    """Return whether whoever is at the other end may change something, given that the guard let the request in.

    `has_key` says that the service has a key, which the request then carried.
    """
    if has_key:
        return True
    headers = Headers(scope=scope)
    if any(name in headers for name in FORWARDED):
        return False
    host = headers.get("host", "")
    name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
    return name.lower() in OWN_NAMES and _is_own(scope)


def refused_write(scope: Scope, *, has_key: bool) -> Problem | None:
    """Return why a request to change something is refused, None if it is not."""
    headers = Headers(scope=scope)
    if not same_origin(headers) or headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return Problem(403, "foreign-page", "A page of another site may change nothing here.")
    if not may_change(scope, has_key=has_key):
        return Problem(403, "read-only", NEEDS_KEY)
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return Problem(415, "json-needed", "Send JSON, and say so: 'Content-Type: application/json'.")
    return None


def same_origin(headers: Headers) -> bool:
    """Return whether the page that sent a request, if one did, came from this service."""
    origin = headers.get("origin")
    return origin is None or origin.partition("://")[2] == headers.get("host")


def _is_own(scope: Scope) -> bool:
    """Return whether a connection comes from this machine."""
    try:
        address = ipaddress.ip_address((scope.get("client") or ("",))[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
