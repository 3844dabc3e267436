"""Additions under kill −9: processes that add are killed at random moments, and after each kill the run is looked at.

python tests/kills/additions.py          a hundred additions of 500 facts each, as `make kills` does
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from ukge import UKGE, Predictor, UncertainGraph
from ukge.graph.split import split
from ukge.graph.synthetic import generate
from ukge.runs.directory import Run

Batch = list[tuple[str, str, str, float]]
FORK = multiprocessing.get_context("fork")


def batches_like(graph: UncertainGraph, n: int, size: int) -> list[Batch]:
    """Return batches of facts that no run knows: of heads that are new, each with up to two facts."""
    facts = [graph[at % len(graph)] for at in range(n * size)]
    rows = [(f"{each.head} {at // 2}", each.relation, each.tail, each.confidence) for at, each in enumerate(facts)]
    return [rows[number * size : (number + 1) * size] for number in range(n)]


def add_all(run: Path, batches: Sequence[Batch]) -> None:
    """Go on where a process that was killed stopped: its last batch is given again under its name."""
    opened = Predictor.open(run)
    first = max(0, 0 if opened.added is None else len(opened.added) - 1)
    for number in range(first, len(batches)):
        opened.add(batches[number], id=f"batch {number}")


def standing(run: Path, batches: Sequence[Batch]) -> int:
    """Open the run, and return how many additions stand; an error if one is not whole, or there is more."""
    added = Run.open(run).added
    count = 0 if added is None else len(added)
    known = set() if added is None else {tuple(fact)[:3] for fact in added.facts}
    assert known == {fact[:3] for batch in batches[:count] for fact in batch}, f"after {count} additions"
    return count


def killed_until_all_is_added(run: Path, batches: Sequence[Batch], seed: int, most: float) -> int:
    """Add batches in processes that live for at most so many seconds; return how many were killed."""
    chance, kills, before = random.Random(seed), 0, 0
    while before < len(batches):
        process = FORK.Process(target=add_all, args=(run, batches))
        process.start()
        process.join(chance.uniform(0.0, most))
        if process.is_alive() and process.pid is not None:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        process.join()
        now = standing(run, batches)
        assert now >= before, f"of {before} additions that were journalled, {now} are left"
        most *= 1.5 if now == before else 1.0  # on a machine that grows busy, a life may be too short for one
        before = now
    return kills


def main() -> None:
    asking = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asking.add_argument("--additions", type=int, default=100)
    asking.add_argument("--facts", type=int, default=500)
    asking.add_argument("--seed", type=int, default=0)
    given = asking.parse_args()
    with tempfile.TemporaryDirectory(prefix="ukge-additions-") as place:
        run, graph = Path(place) / "run", generate(n_entities=2_000, n_facts=20_000, seed=0).graph
        model = UKGE("ukge-n", dim=16, epochs=2, every=1, engine="torch", probe="none")
        model.fit(split(graph, val=0.05, seed=0), out=run, rules="none", progress=False)
        batches = batches_like(graph, given.additions, given.facts)
        began = time.monotonic()
        add_all(run, batches[:2])
        most = 3 * (time.monotonic() - began)
        kills = killed_until_all_is_added(run, batches, given.seed, most)
        began = time.monotonic()
        count = standing(run, batches)
        seconds = time.monotonic() - began
    told = f"{kills} processes killed; {count} additions of {given.facts} facts are there, whole, and no half one"
    sys.stdout.write(f"{told}; opening takes {seconds:.1f} s\n")


if __name__ == "__main__":
    main()
