"""What the service allows, and where it listens."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
from dataclasses import dataclass, field
from pathlib import Path

from ukge.errors import ConfigError
from ukge.storage.files import read_given

KEY_VARIABLE = "UKGE_API_KEY"
SHORTEST_KEY = 16


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a single request and of all requests together. What passes them is refused, never cut silently."""

    body_bytes: int = 1 << 20
    """bytes of a request's body"""
    facts: int = 1_000
    """facts in one request"""
    k: int = 1_000
    """answers, facts or rules in one response"""
    seconds: float = 10.0
    """time that one request may take"""
    waiting: int = 256
    """requests that may wait for the processor; more are told to come back"""
    connections: int = 512
    """open connections; one address may have half of them, and whoever waits longest for its client gives way"""
    pages: int = 300
    """pages of the explorer that are held for browsers; one address may have a third of them"""

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if getattr(self, name) <= 0:
                raise ConfigError(f"the limit '{name}' must be above 0, not {getattr(self, name)!r}")


@dataclass(frozen=True)
class Access:
    """Who may ask: whoever has the key, if there is one, by a host name that is ours.

    The check of the host name keeps a page of another site from reaching a service on this machine by pointing its
    own name here.
    """

    key: str | None = field(default=None, repr=False)
    hosts: frozenset[str] = frozenset({"127.0.0.1", "localhost", "[::1]", "testserver"})
    any_host: bool = False

    def __post_init__(self) -> None:
        if self.key is not None and len(self.key) < SHORTEST_KEY:
            raise ConfigError(
                f"the API key is too short: {len(self.key)} characters",
                hint=f"Take at least {SHORTEST_KEY}, for example from: openssl rand -hex 24",
            )

    def knows_key(self, given: str) -> bool:
        """Return whether `given` is the key. Takes as long for a nearly right one as for any other."""
        return self.key is not None and hmac.compare_digest(_digest(given), _digest(self.key))

    def knows_pass(self, given: str) -> bool:
        """Return whether `given` is what `browser_pass` gives to a browser that showed the key."""
        return self.key is not None and hmac.compare_digest(given.encode(), self.browser_pass().encode())

    def browser_pass(self) -> str:
        """Return what a browser keeps instead of the key; the key cannot be found from it."""
        return hmac.new((self.key or "").encode(), b"ukge explorer", hashlib.sha256).hexdigest()

    def knows_host(self, header: str) -> bool:
        """Return whether a Host header names this service; the port does not matter."""
        name = header.rpartition(":")[0] if header.rpartition(":")[2].isdecimal() else header
        return self.any_host or name.lower() in self.hosts


def access(host: str, key_file: Path | None = None, names: tuple[str, ...] = ()) -> Access:
    """Return who may ask a service that listens on `host`; for any address but this machine's own, a key is needed.

    The key comes from a file or from the environment variable UKGE_API_KEY: a flag would show it to every user of the
    machine.
    """
    key = os.environ.get(KEY_VARIABLE) or None
    if key_file is not None:
        try:
            key = read_given(key_file).decode().strip()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            raise ConfigError(f"cannot read the API key from {key_file}: {why}") from None
        if not key:
            raise ConfigError(f"{key_file} holds no API key")
    own = is_loopback(host)
    if key is None and not own:
        raise ConfigError(
            f"{host} can be reached from other machines, so the service needs an API key",
            hint=f"Set the environment variable {KEY_VARIABLE}, give ‹api_key_file=FILE›, or stay on 127.0.0.1.",
        )
    hosts = Access().hosts - {"testserver"} | {name.lower() for name in names} | {host.lower()}
    return Access(key, frozenset(hosts), any_host=not own and not names)


def is_loopback(host: str) -> bool:
    """Return whether an address is reached from this machine only."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
