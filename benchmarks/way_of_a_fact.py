"""Count the modules that a fact passes from a row of a TSV file to the answer of the service.

    python benchmarks/way_of_a_fact.py

A module counts if one of its functions took or gave facts, names of theirs, or arrays made of them, while a run was
trained, opened, served and asked for the confidence of one fact. Modules that only look at a fact beside its way do not
count: those that judge or try a training (validation, collapse, leaks, probe), and those that make answers to other
questions ready (audit, rules, reasons). It watches by `sys.setprofile`, in the commands' own processes.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from types import FrameType
from typing import Any

HEAD, TAIL = "zyzzyva", "quokka"
"""Names that nothing else has: a text that holds one of them speaks of the fact."""

PORT = 8377
BESIDE = (
    "graph/audit",
    "learning/collapse",
    "learning/validation",
    "learning/probe",
    "evidence/",
    "logic/",
    "serve/rulebook",
    "serve/explorer",
)
"""What works beside the way: nothing below one of these in the stack counts."""


def carries(value: Any, depth: int = 4) -> bool:  # noqa: PLR0911 — one line per kind of value
    """Return whether a value is, or holds, facts, names of the fact or arrays."""
    import numpy as np

    kind = type(value)
    if isinstance(value, str | bytes):
        text = value if isinstance(value, str) else value.decode(errors="replace")
        return HEAD in text or TAIL in text
    if isinstance(value, np.ndarray):
        return bool(value.ndim and value.size)
    if kind.__module__.startswith(("pyarrow", "pandas", "torch")):
        return hasattr(value, "__len__")
    if depth == 0:
        return False
    if isinstance(value, list | tuple | set | frozenset):
        return any(carries(each, depth - 1) for each in list(value)[:20])
    if isinstance(value, dict):
        return any(carries(each, depth - 1) for each in list(value.values())[:40])
    if not kind.__module__.startswith("ukge"):
        return False
    slots = [getattr(value, name, None) for each in kind.__mro__ for name in _names(each.__dict__.get("__slots__", ()))]
    return any(carries(each, depth - 1) for each in [*getattr(value, "__dict__", {}).values(), *slots][:40])


def _names(slots: Any) -> list[str]:
    return [name for name in ((slots,) if isinstance(slots, str) else slots) if not name.startswith("__")]


def module_of(frame: FrameType) -> str | None:
    """Return the module of ukge that a frame runs, None for any other code and for imports."""
    _, _, own = frame.f_code.co_filename.partition("/src/ukge/")
    return own if own and frame.f_code.co_name != "<module>" else None


def watch(out: str, command: list[str]) -> None:
    """Run a command of ukge in this process and write which modules facts passed."""
    seen: set[str] = set()

    def look(frame: FrameType, event: str, value: Any) -> None:
        name = module_of(frame) if event in {"call", "return"} else None
        if name is None or name in seen:
            return
        code = frame.f_code
        given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        values = [value] if event == "return" else [frame.f_locals.get(each) for each in given]
        if any(carries(each) for each in values):
            below: FrameType | None = frame
            while below is not None:
                if (module_of(below) or "").startswith(BESIDE):
                    return
                below = below.f_back
            seen.add(name)
            Path(out).write_text(json.dumps(sorted(seen)), encoding="utf-8")

    from ukge.cli import main

    sys.argv = ["ukge", *command]
    threading.setprofile(look)
    sys.setprofile(look)
    main()


def _watched(out: Path, *command: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, __file__, "watch", str(out), *command], stdout=subprocess.DEVNULL)


def _ask() -> dict[str, Any]:
    body = json.dumps({"facts": [{"head": HEAD, "relation": "likes", "tail": TAIL}]}).encode()
    asked = urllib.request.Request(f"http://127.0.0.1:{PORT}/v1/confidence", body, {"content-type": "application/json"})
    with urllib.request.urlopen(asked, timeout=60) as answer:
        told: dict[str, Any] = json.loads(answer.read())
    return told


def _answer(seconds: float = 300) -> dict[str, Any]:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            return _ask()
        except (urllib.error.URLError, ConnectionError):  # it is not there yet, or not ready
            time.sleep(1)
    raise SystemExit("the service did not answer")


def main() -> None:
    rng = random.Random(0)
    names = [HEAD, TAIL, *(f"e{i}" for i in range(60))]
    triples = {(rng.choice(names), f"r{rng.randrange(4)}", rng.choice(names)) for _ in range(600)}
    rows = [f"{h}\t{r}\t{t}\t{rng.random():.3f}\n" for h, r, t in sorted(triples)]
    with tempfile.TemporaryDirectory() as folder:
        here = Path(folder)
        (here / "facts.tsv").write_text("".join([*rows, f"{HEAD}\tlikes\t{TAIL}\t0.9\n"]), encoding="utf-8")
        train = ("train", str(here / "facts.tsv"), "--out", str(here / "run"), "--epochs", "3", "-q")
        _watched(here / "train.json", *train).wait()
        service = _watched(here / "serve.json", "serve", str(here / "run"), "--port", str(PORT))
        told = _answer()
        service.send_signal(2)
        service.wait(60)
        found = {name: json.loads((here / f"{name}.json").read_text()) for name in ("train", "serve")}
    print(json.dumps(told))
    both = sorted({module for modules in found.values() for module in modules})
    for module in both:
        print(f"{module:40} {' '.join(name for name in found if module in found[name])}")
    print(f"{len(both)} modules: {len(found['train'])} while training, {len(found['serve'])} while serving")


if __name__ == "__main__":
    if sys.argv[1:2] == ["watch"]:
        watch(sys.argv[2], sys.argv[3:])
    else:
        main()
