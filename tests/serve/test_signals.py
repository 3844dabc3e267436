"""Ctrl-C and SIGTERM, sent to the real service at the moments that are hard: each ends it, cleanly."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import psutil
import pytest
from tests.serve.serving import serving
from tests.serve.small_run import SERVICE

TOLD = f"""
import functools, sys
from ukge.serve.snapshot import Snapshot

def telling(name):
    own = getattr(Snapshot, name)
    function = getattr(own, "__func__", own)
    @functools.wraps(function)
    def told(*given, **named):
        print("now:", name, file=sys.stderr, flush=True)
        return function(*given, **named)
    setattr(Snapshot, name, classmethod(told) if hasattr(own, "__func__") else told)

telling("open")
telling("warm")
{SERVICE}
"""
"""The service, saying where it is."""

EXPECTED = {signal.SIGINT: 130, signal.SIGTERM: 0}


def ended(process: subprocess.Popen[str], told: str) -> None:
    """Check that a process ended by itself, without a word that people should not see, and left nobody behind."""
    assert process.stderr is not None
    children = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
    rest = process.communicate(timeout=60)[1]
    assert "Traceback" not in told + rest
    assert "terminate called" not in told + rest
    assert not any(child.is_running() and child.status() != psutil.STATUS_ZOMBIE for child in children)


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        ("now: open", signal.SIGTERM),
        ("now: warm", signal.SIGINT),
        ("serving", signal.SIGINT),
        ("serving", signal.SIGTERM),
    ],
)
def test_while_it_prepares(run: Path, moment: str, number: signal.Signals) -> None:
    command = [sys.executable, "-c", TOLD, "serve", str(run), "--port", "0", "--no-explorer"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        told = ""
        while moment not in told:
            line = process.stderr.readline()
            assert line, f"it ended before: {told}"
            told += line
        process.send_signal(number)
        process.send_signal(number)
        ended(process, told)
        assert process.returncode == EXPECTED[number]
    finally:
        process.kill()
        process.wait()


def test_in_a_burst_with_requests_under_way_and_a_reload(run: Path) -> None:
    with serving(run, "--no-watch", explorer=True) as (process, port):
        statuses: list[int] = []
        broken: list[Exception] = []
        ending = threading.Event()

        def ask() -> None:
            asked = {"head": "a/b", "relation": "likes"}
            while not ending.is_set():
                try:
                    statuses.append(httpx.get(f"http://127.0.0.1:{port}/v1/rank", params=asked, timeout=60).status_code)
                except httpx.ConnectError:
                    return  # it listens no more
                except httpx.HTTPError as error:
                    broken.append(error)
                    return

        asking = [threading.Thread(target=ask) for _ in range(6)]
        for thread in asking:
            thread.start()
        while len(statuses) < 12:
            time.sleep(0.01)
        process.send_signal(signal.SIGHUP)  # opens the run again, in threads that nobody waits for
        for _ in range(5):
            process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        ending.set()
        for thread in asking:
            thread.join()
        assert set(statuses) == {200}
        # A connection may be taken and closed before its request is read; one that was read is answered.
        assert all(isinstance(each, (httpx.RemoteProtocolError, httpx.ReadError)) for each in broken)
