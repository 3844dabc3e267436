"""The service on loopback: rank queries per second, memory over many requests, and a flood of bad input.

A run of nl27k (trained here for one epoch unless --run names one: speed does not depend on what was learnt) is served
by `ukge serve` as users start it, explorer included. A client process of its own asks over kept connections. Every
query is another (head, relation) or (relation, tail) of the graph's facts. The processor time of the server per query
is told too: on a machine that does other work, it says more than the time on the clock.

Exits with 1 if there are fewer than 300 rank queries/s, if their 99th percentile is 50 ms or more, if the server's
memory grows by more than 5 % between the first fifth and the end of all requests, or if good requests fail during the
flood.

    UKGE_DATA=… python benchmarks/serve.py [--run RUN] [--requests 100000] [--connections 8]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

LEAST_PER_SECOND = 300.0
MOST_SECONDS = 0.050
MOST_GROWTH = 0.05
RANKED = 6_000
FLOOD = 10_000
PACE = 0.05
STARTED = re.compile(r"on http://127\.0\.0\.1:(\d+)/")
HEAD = "Host: 127.0.0.1\r\nConnection: keep-alive\r\n\r\n"


@dataclass
class Told:
    """What a client saw."""

    seconds: list[float] = field(default_factory=list)
    statuses: dict[int, int] = field(default_factory=dict)
    whole: float = 0.0

    def line(self, what: str) -> str:
        times = sorted(self.seconds)
        shares = {name: 1000 * times[min(len(times) - 1, int(share * len(times)))] for name, share in SHARES.items()}
        told = "  ".join(f"{name} {value:.1f} ms" for name, value in shares.items())
        return f"{what:28} {len(times):7,} answers  {len(times) / self.whole:7.0f}/s  {told}  {self.statuses}"

    def percentile(self, share: float) -> float:
        times = sorted(self.seconds)
        return times[min(len(times) - 1, int(share * len(times)))]


SHARES = {"p50": 0.50, "p95": 0.95, "p99": 0.99}


async def answer(reader: asyncio.StreamReader) -> int:
    """Read one response and return its status."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    if length:
        await reader.readexactly(int(length[1]))
    return int(head.split(b" ", 2)[1])


async def asker(port: int, requests: list[bytes], told: Told, pace: float = 0.0) -> None:
    """Send requests one after another over one connection, opening another if the server closes it."""
    reader: asyncio.StreamReader | None = None
    writer: asyncio.StreamWriter | None = None
    for request in requests:
        started = time.perf_counter()
        try:
            if reader is None or writer is None:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request)
            status = await asyncio.wait_for(answer(reader), 30)
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            status = 0
        if status in (0, 400, 413) and writer is not None:
            writer.close()
            reader = writer = None
        told.seconds.append(time.perf_counter() - started)
        told.statuses[status] = told.statuses.get(status, 0) + 1
        if pace:
            await asyncio.sleep(pace)
    if writer is not None:
        writer.close()


async def ask(port: int, requests: list[bytes], connections: int) -> Told:
    """Send requests over several connections at once."""
    told = Told()
    started = time.perf_counter()
    await asyncio.gather(*(asker(port, requests[at::connections], told) for at in range(connections)))
    told.whole = time.perf_counter() - started
    return told


async def flood(port: int, bad: list[bytes], good: list[bytes], connections: int) -> tuple[Told, Told]:
    """Send bad input as fast as it goes, and good requests now and then; return what both saw."""
    flooded, asked = Told(), Told()
    started = time.perf_counter()
    polite = asyncio.create_task(asker(port, good, asked, PACE))
    await asyncio.gather(*(asker(port, bad[at::connections], flooded) for at in range(connections)))
    flooded.whole = time.perf_counter() - started
    polite.cancel()
    await asyncio.gather(polite, return_exceptions=True)
    asked.whole = time.perf_counter() - started
    return flooded, asked


def get(path: str, **query: str | int) -> bytes:
    return f"GET {path}?{urlencode(query)} HTTP/1.1\r\n{HEAD}".encode()


def rank_requests(facts: list[tuple[str, str, str]], count: int, draw: random.Random) -> list[bytes]:
    """Return queries of random facts, for the tail or for the head."""
    requests = []
    for _ in range(count):
        head, relation, tail = draw.choice(facts)
        given = {"head": head} if draw.random() < 0.5 else {"tail": tail}
        requests.append(get("/v1/rank", relation=relation, k=10, **given))
    return requests


def mixed_requests(facts: list[tuple[str, str, str]], count: int, draw: random.Random) -> list[bytes]:
    """Return what a day brings: mostly rank queries, and some of everything else."""
    requests = []
    ranks = iter(rank_requests(facts, count, draw))
    for _ in range(count):
        head, relation, tail = draw.choice(facts)
        kind = draw.random()
        if kind < 0.7:
            requests.append(next(ranks))
        elif kind < 0.8:
            requests.append(get("/v1/confidence", head=head, relation=relation, tail=tail))
        elif kind < 0.86:
            requests.append(get("/v1/rank", head=head, relation=relation, k=20, type="fitting", observed="exclude"))
        elif kind < 0.9:
            requests.append(get("/v1/entities", search=head.rpartition(":")[2][:5], limit=8))
        elif kind < 0.94:
            requests.append(get("/v1/explain", head=head, relation=relation, tail=tail))
        elif kind < 0.97:
            requests.append(get("/v1/rules", search=relation, limit=10))
        else:
            requests.append(get("/v1/rank", head=head[:-1] + "~", relation=relation))
    return requests


def bad_requests(count: int, draw: random.Random) -> list[bytes]:
    """Return input of every wrong kind."""
    body = b'{"facts": [' + b'{"head": "x"},' * 50
    kinds: list[Callable[[], bytes]] = [
        lambda: get("/v1/rank", head="x" * draw.randrange(3_000), relation="y"),
        lambda: get("/v1/rank", relation="concept:competeswith", head="nobody", k=10**9),
        lambda: get("/v1/entity/../../../etc/passwd"),
        lambda: get(f"/{draw.randbytes(8).hex()}"),
        lambda: (
            b"POST /v1/confidence HTTP/1.1\r\nContent-Type: application/json\r\n"
            + f"Content-Length: {len(body)}\r\n{HEAD}".encode()
            + body
        ),
        f"POST /v1/confidence HTTP/1.1\r\nContent-Length: {2**31}\r\n{HEAD}".encode,
        lambda: draw.randbytes(60) + b"\r\n\r\n",
        f"DELETE /v1/info HTTP/1.1\r\n{HEAD}".encode,
        lambda: b"GET /v1/info HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n",
    ]
    return [draw.choice(kinds)() for _ in range(count)]


def resident(process: subprocess.Popen[str]) -> int:
    """Return the memory that a process holds now."""
    lines = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))


def processor_seconds(process: subprocess.Popen[str]) -> float:
    """Return the processor time that a process has had."""
    columns = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(columns[11]) + int(columns[12])) / os.sysconf("SC_CLK_TCK")


def start(run: Path) -> tuple[subprocess.Popen[str], int]:
    """Start the server and return it with its port."""
    command = [sys.executable, "-c", "from ukge.cli import main; main()", "serve", str(run), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    told = ""
    while (found := STARTED.search(told)) is None:
        line = process.stderr.readline() if process.stderr else ""
        if not line:
            sys.exit(f"the server did not start: {told}")
        told += line
    threading.Thread(target=process.stderr.read if process.stderr else str, daemon=True).start()
    return process, int(found[1])


def wait_until_ready(port: int) -> None:
    """Wait until everything that is prepared in the background is there."""
    import httpx

    for _ in range(600):
        if all(httpx.get(f"http://127.0.0.1:{port}/v1/info", timeout=30).json()["ready"].values()):
            return
        time.sleep(0.5)
    sys.exit("the server did not get ready")


def judge(process: subprocess.Popen[str], port: int, run: Path, arguments: argparse.Namespace) -> bool:
    """Measure all, print it, and return whether the aims are met."""
    from ukge.runs.directory import Run

    train = Run(run).dataset().train
    rows = random.Random(1).sample(range(len(train)), min(20_000, len(train)))
    facts = [(fact.head, fact.relation, fact.tail) for fact in train[sorted(rows)]]
    draw = random.Random(0)
    connections = arguments.connections
    asyncio.run(ask(port, rank_requests(facts, 300, draw), connections))

    before = processor_seconds(process)
    ranked = asyncio.run(ask(port, rank_requests(facts, RANKED, draw), connections))
    each = (processor_seconds(process) - before) / RANKED
    print(ranked.line("rank queries"), f" {1000 * each:.2f} ms of processor time each", flush=True)
    rate, slow = len(ranked.seconds) / ranked.whole, ranked.percentile(0.99)
    quick = rate >= LEAST_PER_SECOND and slow < MOST_SECONDS and set(ranked.statuses) == {200}
    print(
        f"{'':28} at least {LEAST_PER_SECOND:g}/s, p99 under {1000 * MOST_SECONDS:g} ms: {verdict(quick)}", flush=True
    )

    sizes = []
    part = max(1, arguments.requests // 20)
    for at in range(20):
        told = asyncio.run(ask(port, mixed_requests(facts, part, draw), connections))
        sizes.append(resident(process))
        if at % 4 == 3:
            print(told.line(f"mixed, {part * (at + 1):,} so far"), f" {sizes[-1] / 1e6:.0f} MB", flush=True)
    growth = sizes[-1] / sizes[3] - 1
    stable = growth <= MOST_GROWTH
    print(
        f"{'memory':28} {sizes[3] / 1e6:.0f} MB after a fifth, {sizes[-1] / 1e6:.0f} MB at the end: {growth:+.1%}, "
        f"at most {MOST_GROWTH:+.0%}: {verdict(stable)}",
        flush=True,
    )

    flooded, asked = asyncio.run(flood(port, bad_requests(FLOOD, draw), rank_requests(facts, FLOOD, draw), connections))
    print(flooded.line("flood of bad input"), flush=True)
    print(asked.line("good requests meanwhile"), flush=True)
    refused = {status for status in flooded.statuses if status >= 500 or status == 200}
    after = asyncio.run(ask(port, rank_requests(facts, 300, draw), connections))
    alive = set(asked.statuses) == {200} and not refused and set(after.statuses) == {200} and process.poll() is None
    print(f"{'':28} it went on answering: {verdict(alive)}", flush=True)
    return quick and stable and alive


def verdict(good: bool) -> str:
    return "yes" if good else "NO"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=Path, help="a finished run of nl27k to serve; else one is trained")
    parser.add_argument("--requests", type=int, default=100_000, help="requests over which memory must be stable")
    parser.add_argument("--connections", type=int, default=8, help="connections of the client")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        run = arguments.run
        if run is None:
            from ukge import UKGE, open_dataset

            run = Path(directory) / "nl27k"
            model = UKGE("ukge-logi", dim=128, epochs=1, every=1)
            model.fit(open_dataset("nl27k"), rules="none", out=run, reference="nl27k")
        process, port = start(run)
        try:
            wait_until_ready(port)
            passed = judge(process, port, run, arguments)
        finally:
            process.terminate()
            process.wait(30)
    print("passed" if passed else "FAILED", f"(load of the machine: {os.getloadavg()[0]:.1f})")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
