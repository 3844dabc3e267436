"""Many at once, from one address: the explorer's channel and files are under the limits of everything else.

Other addresses of this machine (127.0.0.2, …) stand for other hosts.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from tests.serve.serving import serving

from ukge.serve.guard import Pace, network
from ukge.serve.problems import OverloadedError, TooOftenError
from ukge.serve.settings import Limits

SLOW = b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\nx"
UPGRADE = (
    b"GET /_nicegui_ws/socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
    b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
OTHER, SECOND = "127.0.0.2", "127.0.0.3"
KEY = "correct-horse-battery-staple"


@contextmanager
def held(port: int, count: int, sent: bytes, source: str) -> Iterator[list[socket.socket]]:
    """Hold so many connections from an address, each of which has sent the beginning of something."""
    with ExitStack() as stack:
        every = []
        for _ in range(count):
            made = socket.create_connection(("127.0.0.1", port), timeout=20, source_address=(source, 0))
            every.append(stack.enter_context(made))
            made.sendall(sent)
        yield every


def healthy(port: int, source: str = "127.0.0.1") -> int:
    transport = httpx.HTTPTransport(local_address=source)
    with httpx.Client(transport=transport, base_url=f"http://127.0.0.1:{port}", timeout=30) as client:
        return client.get("/healthz").status_code


@pytest.mark.parametrize(
    ("path", "source"),
    [(b"/_nicegui_ws/socket.io/?EIO=4&transport=polling", OTHER), (b"/v1/confidence", "127.0.0.1")],
)
def test_slow_bodies_lock_nobody_out(port: int, path: bytes, source: str) -> None:
    with held(port, 530, SLOW % path, source) as slow:
        assert [healthy(port) for _ in range(5)] == [200] * 5
        assert len(slow) == 530


def test_slow_bodies_of_two_addresses_lock_nobody_out(port: int) -> None:
    with held(port, 260, SLOW % b"/v1/confidence", OTHER), held(port, 260, SLOW % b"/v1/confidence", SECOND):
        assert [healthy(port) for _ in range(5)] == [200] * 5


@pytest.fixture(scope="module")
def strict(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a service that has a key, and little patience."""
    key = tmp_path_factory.mktemp("keys") / "key"
    key.write_text(KEY, encoding="utf-8")
    options = ("--no-watch", "--time-limit", "0.5", "--api-key-file", str(key))
    with serving(run, *options, explorer=True) as (_, number):
        yield number


def test_a_slow_body_is_cut_at_the_time_limit_wherever_it_goes(strict: int) -> None:
    with_key = SLOW.replace(b"Host: localhost", f"Host: localhost\r\nAuthorization: Bearer {KEY}".encode())
    for path in (b"/_nicegui/upload", b"/v1/confidence", b"/"):
        with held(strict, 1, with_key % path, "127.0.0.1") as (slow,):
            slow.settimeout(30)
            assert slow.recv(4_096).split()[1] == b"503"


def test_the_channel_is_a_socket_and_its_bodies_have_a_size(port: int) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        for method in ("GET", "POST"):
            told = client.request(method, "/_nicegui_ws/socket.io/", params={"EIO": "4", "transport": "polling"})
            assert (told.status_code, told.headers["upgrade"]) == (426, "websocket")
        large = client.post("/_nicegui/client/1/upload/2", content=b"x" * ((1 << 20) + 1))
        assert large.status_code == 413


def test_addresses_that_lead_nowhere_make_no_pages(port: int) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        for number in range(200):
            told = client.get(f"/_nicegui/nothing/{number}")
            assert (told.status_code, told.headers["content-type"]) == (404, "application/problem+json")
        page = client.get("/")
        assert page.status_code == 200
        for address in {part.split('"')[0] for part in page.text.split('src="')[1:]}:
            assert client.get(address).status_code == 200


def test_channels_of_one_address_are_counted(port: int) -> None:
    with held(port, 110, UPGRADE, OTHER) as sockets:
        answers = [each.recv(4_096).split()[1] for each in sockets]
        assert answers.count(b"101") <= 100
        assert answers.count(b"403") >= 10
        with held(port, 1, UPGRADE, SECOND) as (own,):
            assert own.recv(4_096).split()[1] == b"101"


def test_with_a_key_the_files_and_the_channel_need_it_too(strict: int) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{strict}", timeout=60) as client:
        for path in ("/", "/_nicegui/x/static/nicegui.js", "/_nicegui_ws/socket.io/", "/favicon.ico"):
            assert client.get(path).status_code == 401
    with held(strict, 1, UPGRADE, "127.0.0.1") as (own,):
        assert own.recv(4_096).split()[1] == b"403"


def test_an_address_may_hold_a_third_of_the_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    nicegui = pytest.importorskip("nicegui")
    from ukge.serve.explorer import crowded

    def page(address: str) -> Any:
        return SimpleNamespace(request=SimpleNamespace(scope={"client": (address, 1)}))

    held = {str(at): page(OTHER) for at in range(3)}
    monkeypatch.setattr(nicegui.Client, "instances", held)
    assert crowded({"client": (OTHER, 5)}, Limits(pages=12)) is None
    assert isinstance(crowded({"client": (OTHER, 5)}, Limits(pages=9)), TooOftenError)
    assert crowded({"client": (SECOND, 5)}, Limits(pages=9)) is None
    assert isinstance(crowded({"client": (SECOND, 5)}, Limits(pages=3)), OverloadedError)


def test_a_pace_is_kept_by_address_and_forgets_old_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("ukge.serve.guard.time.monotonic", lambda: now[0])
    pace = Pace(burst=3, per_second=0.5, remembered=100)
    assert [pace.allows("a") for _ in range(5)] == [True, True, True, False, False]
    assert pace.allows("b")
    now[0] = 2.0  # one more by now
    assert [pace.allows("a") for _ in range(2)] == [True, False]
    for number in range(1_000):
        pace.allows(str(number))
    assert len(pace) == 100


def test_where_a_request_comes_from() -> None:
    assert network({"client": ("192.0.2.7", 1)}) == "192.0.2.7"
    assert network({"client": ("2001:db8:1:2:3:4:5:6", 1)}) == network({"client": ("2001:db8:1:2::9", 1)})
    assert network({"client": ("2001:db8:1:3::9", 1)}) != network({"client": ("2001:db8:1:2::9", 1)})
    assert network({"client": None}) == ""
