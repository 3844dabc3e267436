"""Additions: what a run that takes facts in knows of later ones, beside a training from scratch on the same facts.

NL27k in an order as if it had grown: every entity is born at some time, most of them early, and a fact comes once both
of its are there. A run is trained on what comes first, with evidence. Then 100 additions of 500 facts are taken in,
with the new entities and relations that they bring. At some points it is compared with a run that was trained, and
evidence that was fitted, from scratch on all facts that are known by then: both are asked about the 2,500 facts that
come next, those whose names are known, and about as many negative links. In the end the run is refreshed.

What is done is kept in --out, and a benchmark that was stopped goes on there.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ukge import UKGE, Dataset, Evidence, Predictor, UncertainGraph, open_dataset, split
from ukge.graph.negatives import negative_links
from ukge.graph.vocabulary import Ids
from ukge.pipeline.additions import add
from ukge.pipeline.refreshing import refresh
from ukge.runs.directory import Run
from ukge.storage.files import write_atomically

SIZE, TIMES, NEXT = 500, 100, 2_500


def grown(graph: UncertainGraph, seed: int) -> UncertainGraph:
    """Return the facts in an order in which they may have come."""
    chance = np.random.default_rng(seed)
    birth = chance.random(graph.n_entities) ** 8
    came = np.maximum.reduce([birth[graph.head], birth[graph.tail], chance.random(len(graph))])
    return graph[np.argsort(came, kind="stable")]


def train(facts: UncertainGraph, path: Path, settings: dict[str, Any], trees: dict[str, Any]) -> None:
    """Train a run and fit its evidence, unless they are there."""
    if not path.exists():
        dataset = split(facts.compact(), val=0.08, test=0.0, seed=0, undirected="none", name=path.name)
        UKGE("ukge-rect", **settings).fit(dataset, out=path, rules="none", progress=False)
    if not (path / "evidence").exists():
        Evidence.fit(path, Run.open(path).dataset(), **trees).save(path)


def encoded(opened: Predictor, graph: UncertainGraph) -> tuple[tuple[Ids, Ids, Ids], npt.NDArray[np.bool_]]:
    """Return facts by the ids of a run, those whose names it knows, and which these are."""
    named, (entities, relations) = graph.facts(), opened.names
    ids = entities.encode(named["head"]), relations.encode(named["relation"]), entities.encode(named["tail"])
    known = np.logical_and.reduce([column >= 0 for column in ids])
    return (ids[0][known], ids[1][known], ids[2][known]), known


def errors(run: Path, later: UncertainGraph, known: UncertainGraph) -> dict[str, float]:
    """Return mean squared errors (×100) on later facts, of the run's model and of its evidence."""
    opened = Predictor.open(run)
    facts, rows = encoded(opened, later)
    links = negative_links(Dataset("later", known, later[rows], later[:0]), like=later[rows], kind="mixture", seed=0)
    others, _ = encoded(opened, links)
    truth = later.confidence[rows]
    found: dict[str, float] = {"facts": len(truth)}
    for name, said in (
        ("model", opened.model.confidence),
        ("evidence", lambda *each: opened.judge(*each).confidence),
    ):
        own, false = said(*facts), said(*others)
        found[f"{name}, facts and links"] = 50 * float(np.mean((own - truth) ** 2) + np.mean(false**2))
    held = opened.judge(*facts, assume_holds=True).confidence
    found["model, facts"] = 100 * float(np.mean((opened.model.confidence(*facts) - truth) ** 2))
    found["evidence, facts"] = 100 * float(np.mean((held - truth) ** 2))
    return found


class Kept:
    """What was measured, by name, in a file."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.found: dict[str, Any] = json.loads(file.read_text()) if file.is_file() else {}

    def note(self, name: str, value: Any) -> None:
        """Keep a figure."""
        self.found[name] = value
        write_atomically(self.file, json.dumps(self.found, indent=1).encode())


def main() -> None:
    asking = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asking.add_argument("--data", default="nl27k")
    asking.add_argument("--out", type=Path, default=Path("additions"))
    asking.add_argument("--dim", type=int, default=64)
    asking.add_argument("--epochs", type=int, default=30)
    asking.add_argument("--trees", type=int, default=200)
    asking.add_argument("--at", default="0,50,100", help="After how many additions to compare.")
    given = asking.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    kept = Kept(given.out / "found.json")
    settings = {"dim": given.dim, "epochs": given.epochs, "every": 5, "batch_size": 1024, "lr": 0.003, "probe": "none"}
    trees = {"iterations": given.trees, "expectation_trees": given.trees, "rank_queries": 100}

    whole = grown(open_dataset(given.data).whole(), seed=0)
    first = len(whole) - NEXT - SIZE * TIMES
    run = given.out / "base"
    train(whole[:first], run, settings, trees)
    for done in map(int, given.at.split(",")):
        while (number := len(Run(run).added or ())) < done:
            wall, own = time.perf_counter(), time.process_time()
            start = first + number * SIZE
            made = add(run, whole[start : start + SIZE], id=f"batch {number}", source=given.data)
            seconds = time.perf_counter() - wall, time.process_time() - own
            kept.note(f"addition {number + 1}", [*seconds, vars(made.drift)])
        end = first + done * SIZE
        later, known = whole[end : end + NEXT], whole[:end]
        if f"added {done}" not in kept.found:
            wall = time.perf_counter()
            Predictor.open(run).predict([tuple(known[0])[:3]])
            kept.note(f"opening after {done}", time.perf_counter() - wall)
            kept.note(f"added {done}", errors(run, later, known))
        if done and f"scratch {done}" not in kept.found:
            train(known, given.out / f"scratch-{done}", settings, trees)
            kept.note(f"scratch {done}", errors(given.out / f"scratch-{done}", later, known))
    if "refreshed" not in kept.found:
        again = given.out / "refreshed"
        shutil.rmtree(again, ignore_errors=True)
        shutil.copytree(run, again)
        wall = time.perf_counter()
        refresh(again, progress=False)
        kept.note("seconds of the refresh", time.perf_counter() - wall)
        kept.note("refreshed", errors(again, whole[-NEXT:], whole[:-NEXT]))
    report(kept.found)


def report(found: dict[str, Any]) -> None:
    """Print the figures."""
    taken = np.array([value[:2] for name, value in found.items() if name.startswith("addition ")])
    if len(taken):
        middle, most = np.median(taken, axis=0), taken.max(axis=0)
        for name, figure in (("median", middle), ("most", most)):
            print(f"an addition of {SIZE} facts, {name}: {figure[0]:.1f} s, {figure[1]:.1f} s of processor time")
    for name, value in found.items():
        if name.startswith(("added", "scratch", "refreshed")):
            print(f"{name:14}", "  ".join(f"{each} {figure:,.2f}" for each, figure in value.items()))
        elif not name.startswith("addition "):
            print(f"{name}: {value:.1f} s")


if __name__ == "__main__":
    main()
