"""The real server, as its users start it: over sockets, with signals."""

from __future__ import annotations

import re
import shutil
import signal
import socket
import sys
import threading
import time
import warnings
from pathlib import Path

import httpx
import pytest
from tests.serve.serving import serving

from ukge.cli import main


def test_it_listens_on_this_machine_only(port: int) -> None:
    assert httpx.get(f"http://127.0.0.1:{port}/healthz").json()["status"] == "ok"
    own = {str(each[4][0]) for each in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    for address in own - {"127.0.0.1"}:
        if address.startswith("127."):
            continue
        with pytest.raises(OSError), socket.create_connection((address, port), timeout=1):  # noqa: PT011
            pass


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\xff\x16\x03\x01 garbage\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"POST /v1/confidence HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
        b"POST /v1/confidence HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n",
        b"POST /v1/confidence HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"x: y\r\n" * 20_000 + b"\r\n",
    ],
)
def test_bad_input_on_the_socket_leaves_it_answering(port: int, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
        try:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            answer = connection.recv(65_536)
        except OSError:
            answer = b""
    assert not answer or answer.split()[1][:1] in (b"2", b"4")
    assert httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=60).status_code == 200


def test_many_half_open_requests_do_not_keep_others_out(port: int) -> None:
    connections = [socket.create_connection(("127.0.0.1", port), timeout=5) for _ in range(100)]
    try:
        for connection in connections:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
        assert httpx.get(f"http://127.0.0.1:{port}/healthz", timeout=60).status_code == 200
    finally:
        for connection in connections:
            connection.close()


def test_neither_a_reload_nor_the_end_drops_a_request(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    with serving(copy, "--no-watch") as (process, port):
        statuses: list[int] = []
        stop = threading.Event()

        def ask() -> None:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
                while not stop.is_set():
                    asked = {"head": "a/b", "relation": "likes"}
                    statuses.append(client.get("/v1/rank", params=asked).status_code)
                    time.sleep(0.01)  # time for the reload

        asking = [threading.Thread(target=ask) for _ in range(2)]
        for thread in asking:
            thread.start()
        process.send_signal(signal.SIGHUP)
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            while client.get("/v1/info").json()["reloads"] == 0:
                time.sleep(0.05)
        stop.set()
        for thread in asking:
            thread.join()
        assert set(statuses) == {200}

        body = b'{"facts": [{"head": "a/b", "relation": "likes", "tail": "a/b"}]}'
        head = b"POST /v1/confidence HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
            connection.sendall(head + f"Content-Length: {len(body)}\r\n\r\n".encode() + body[:10])
            time.sleep(0.5)
            process.send_signal(signal.SIGTERM)
            time.sleep(0.5)
            assert process.poll() is None
            connection.sendall(body[10:])
            answer = b""
            while chunk := connection.recv(65_536):
                answer += chunk
        assert answer.startswith(b"HTTP/1.1 200")
        assert b'"confidence"' in answer
        process.wait(60)
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"http://127.0.0.1:{port}/healthz")


@pytest.mark.parametrize(
    ("options", "told"), [([], "is not a run directory"), (["--host", "0.0.0.0"], "needs an API key")]
)
def test_mistakes_at_the_start_are_told_without_a_traceback(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    told: str,
) -> None:
    monkeypatch.delenv("UKGE_API_KEY", raising=False)
    monkeypatch.setattr(sys, "argv", ["ukge", "serve", str(tmp_path / "nowhere"), *options])
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    with pytest.raises(SystemExit) as ended:
        main()
    said = capsys.readouterr().err
    assert ended.value.code == 2
    assert told in " ".join(said.split())
    assert "Traceback" not in said


def test_the_explorer_is_served_and_its_channel_keeps_strangers_out(port: int) -> None:
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        page = client.get("/")
        assert (page.status_code, "<title>ukge</title>" in page.text) == (200, True)
        assert "http://" not in re.sub(r"http://(www\.w3\.org|127\.0\.0\.1)", "", page.text)
        assert "https://" not in page.text
        assert client.get("/v1/nothing").headers["content-type"] == "application/problem+json"
        channel = {"EIO": "4", "transport": "polling"}
        foreign = {"origin": "http://elsewhere.example"}
        assert client.get("/_nicegui_ws/socket.io/", params=channel, headers=foreign).status_code == 426
    with socket.create_connection(("127.0.0.1", port), timeout=60) as connection:
        connection.sendall(
            b"GET /_nicegui_ws/socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: localhost\r\n"
            b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: http://elsewhere.example\r\n\r\n"
        )
        assert connection.recv(4_096).split()[1] == b"403"
