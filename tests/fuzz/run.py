"""Fuzz every reader and rule syntax for some minutes: `python -m tests.fuzz.run --minutes 30`, or `make fuzz`.

Each target runs in a process of its own with a limit of memory and of time per input, so that a bomb, a hang or a crash
is a finding like any other. Findings are kept in tests/fuzz/corpus, where `make test` tries them again.
"""

# ruff: noqa: T201  (it is a script)
from __future__ import annotations

import argparse
import hashlib
import json
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tests.fuzz.outcomes import MISREAD, UNCAUGHT, UNCHECKED
from tests.fuzz.targets import FOUND, targets

MEMORY = 6 << 30
SECONDS = 20  # of an input
BATCH = 1500
LONGEST = 60.0  # seconds of a batch
KINDS = {"accepted": 10, UNCHECKED: 11, "refused": 9, UNCAUGHT: 10, MISREAD: 9}
"""What is counted, and the width of its column."""


def worker(name: str, seed: int, seconds: float, work: Path) -> None:
    """Try inputs of one target for so long; tell how far one got, for the case that the next is the last."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)  # a hang ends the process
    target = next(one for one in targets(work) if one.name == name)
    target.prepare(work.parent)  # what takes long to make is made once for all processes
    draw = random.Random(seed)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    counts: Counter[str] = Counter()
    findings: list[tuple[str, str]] = []
    status = work / "status.json"
    end = time.monotonic() + seconds
    for number in range(BATCH):
        if time.monotonic() > end:
            break
        extension, data, plain = target.inputs(draw)
        path = work / f"input.{extension}"
        path.write_bytes(data)
        if number % 20 == 0:
            status.write_text(json.dumps({"counts": counts, "findings": findings, "grown": 0}))
        (work / "current").write_text(path.name)
        signal.alarm(SECONDS)
        outcome = target.outcome(path, plain)
        signal.alarm(0)
        counts[outcome.kind] += 1
        if outcome.kind in (UNCAUGHT, MISREAD):
            findings.append((outcome.detail, str(keep(name, path))))
        path.unlink()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    status.write_text(json.dumps({"counts": counts, "findings": findings, "grown": grown}))


def keep(name: str, path: Path) -> Path:
    """Keep an input that was a finding, so that it is tried again with every test."""
    data = path.read_bytes()
    folder = FOUND / name.replace(":", "").replace(" ", "-")
    folder.mkdir(parents=True, exist_ok=True)
    suffix = "".join(path.suffixes)
    kept = folder / f"{hashlib.sha256(data).hexdigest()[:12]}{suffix}"
    kept.write_bytes(data)
    return kept


def batch(name: str, seed: int, seconds: float, home: Path) -> dict[str, Any]:
    """Run a worker, and take what it leaves behind."""
    with tempfile.TemporaryDirectory(dir=home) as folder:
        work = Path(folder)
        command = [sys.executable, "-m", "tests.fuzz.run", "--worker", name, str(seed), str(seconds), folder]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        status = work / "status.json"
        result: dict[str, Any] = {"counts": {}, "findings": [], "grown": 0}
        if status.exists():
            result = json.loads(status.read_text())
        if done.returncode:
            why = (
                "hang" if done.returncode == -signal.SIGALRM else f"ended with {done.returncode}: {done.stderr[-300:]}"
            )
            current = work / "current"
            path = work / current.read_text() if current.exists() else work / "none"
            kept = keep(name, path) if path.exists() else ""
            result["findings"].append((why, str(kept)))
            result["counts"][UNCAUGHT] = result["counts"].get(UNCAUGHT, 0) + 1
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="targets whose name contains this")
    parser.add_argument("--worker", nargs=4, metavar=("TARGET", "SEED", "SECONDS", "FOLDER"), help=argparse.SUPPRESS)
    said = parser.parse_args()
    if said.worker:
        name, seed, seconds, folder = said.worker
        worker(name, int(seed), float(seconds), Path(folder))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        names = [target.name for target in targets(home) if said.only in target.name]
        totals: dict[str, Counter[str]] = {name: Counter() for name in names}
        grown: Counter[str] = Counter()
        end = time.monotonic() + 60 * said.minutes
        turn = 0
        while turn < len(names) or time.monotonic() < end:
            name = names[turn % len(names)]
            result = batch(name, said.seed + turn, min(LONGEST, 60 * said.minutes / len(names)), home)
            totals[name].update(result["counts"])
            grown[name] = max(grown[name], result["grown"])
            for why, kept in result["findings"]:
                print(f"FOUND {name}: {why}\n  {kept}", flush=True)
            turn += 1
    return told(totals, grown)


def told(totals: dict[str, Counter[str]], grown: Counter[str]) -> int:
    """Print the table; return 1 if there is anything to mend."""
    head = "".join(f"{kind:>{width}}" for kind, width in KINDS.items())
    print(f"{'reader':<16}{'inputs':>9}{head}{'memory MB':>11}")
    every = sum(totals.values(), Counter())
    for name, counts in {**totals, "all": every}.items():
        row = "".join(f"{counts[kind]:>{width},}" for kind, width in KINDS.items())
        most = max(grown.values(), default=0) if name == "all" else grown[name]
        print(f"{name:<16}{sum(counts.values()):>9,}{row}{most // 1024:>11,}")
    return int(every[UNCAUGHT] + every[MISREAD] > 0)


if __name__ == "__main__":
    sys.exit(main())
