"""What a command costs before and while it answers: processor time, all threads, start included.

Commands are run in processes of their own; the first run of each, which may compile, does not count. Then the imports
of `ukge rank`, by library: the sum of what each of its modules took by itself.

    python benchmarks/start.py [--run RUN] [--repeat 5]

RUN is a run with evidence; without one, a small world is made, learnt and fitted first.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np

UKGE = "from ukge.cli import main; main()"
FACTS = 10
SHOWN = 10


def seconds(*arguments: str) -> float:
    """Return the processor time of a command, in user and in kernel mode."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", UKGE, *arguments], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def imports(*arguments: str) -> list[tuple[str, float]]:
    """Return the seconds that the libraries a command loads took to load, the longest first."""
    command = [sys.executable, "-X", "importtime", "-c", UKGE, *arguments]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    took: Counter[str] = Counter()
    for line in told.splitlines():
        if line.startswith("import time:") and "imported package" not in line:
            own, _, module = line.removeprefix("import time:").split("|")
            took[module.strip().partition(".")[0]] += int(own)
    return [(library, microseconds / 1e6) for library, microseconds in took.most_common()]


def small_run(folder: Path) -> Path:
    """Make a world, learn it a little and fit evidence to it with the settings that everybody gets."""
    for arguments in (
        ("data", "generate", "--out", folder / "world.tsv"),
        ("train", folder / "world.tsv", "--dim", 64, "--epochs", 10, "--out", folder / "run"),
        ("evidence", "fit", folder / "run"),
    ):
        print("ukge", *arguments, flush=True)
        subprocess.run([sys.executable, "-c", UKGE, *map(str, arguments)], check=True, capture_output=True)
    return folder / "run"


def commands(run: Path, folder: Path) -> dict[str, tuple[str, ...]]:
    """Return the commands that are measured, by name."""
    from ukge.evidence import Evidence

    plain = shutil.copytree(run, folder / "plain", ignore=shutil.ignore_patterns("evidence", "checkpoint.*", "tables"))
    graph = Evidence.load(run).known
    known = graph[:FACTS]
    head, relation, tail, *_ = known[0]
    hub = graph[int(np.argmax(np.bincount(graph.head)[graph.head]))]
    file, judged = folder / "facts.tsv", str(folder / "judged.tsv")
    file.write_text("".join(f"{each.head}\t{each.relation}\t{each.tail}\n" for each in known), encoding="utf-8")
    return {
        "--version": ("--version",),
        "--help": ("--help",),
        "rank, with evidence": ("rank", str(run), relation, "--head", head),
        "rank, with evidence, no reasons": ("rank", str(run), relation, "--head", head, "--no-reasons"),
        "rank, with evidence, of a hub": ("rank", str(run), hub.relation, "--head", hub.head),
        "rank, without": ("rank", str(plain), relation, "--head", head),
        f"predict {FACTS} facts, with evidence": ("predict", str(run), str(file), "--out", judged),
        f"predict {FACTS} facts, without": ("predict", str(plain), str(file), "--out", judged),
        "explain": ("explain", str(run), head, relation, tail),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure what commands cost before they answer.")
    parser.add_argument("--run", type=Path, help="a run with evidence")
    parser.add_argument("--repeat", type=int, default=5, help="runs of each command that count")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        asked = commands(arguments.run or small_run(folder), folder)
        print(f"\nprocessor time in seconds: median of {arguments.repeat}, and the least")
        for what, command in asked.items():
            times = [seconds(*command) for _ in range(arguments.repeat + 1)][1:]
            print(f"  ukge {what:34} {statistics.median(times):6.2f} {min(times):6.2f}", flush=True)
        print("\nimports of ukge rank, with evidence, in seconds by the clock")
        for library, took in imports(*asked["rank, with evidence"])[:SHOWN]:
            print(f"  {library:39} {took:6.2f}")


if __name__ == "__main__":
    main()
