"""`ukge train` with its defaults and `ukge fit` on graphs unlike the benchmarks: seconds, memory, and what they reach.

    python benchmarks/any_graph.py --out DIR                            # the small graphs, some minutes
    python benchmarks/any_graph.py --graphs cn15k nl27k ppi5k --minutes 15 --out DIR
    python benchmarks/any_graph.py --graphs interaction --minutes 10 --out DIR

One row per graph: the MSE of the best constant, of `ukge train` with its defaults, of the model that `ukge fit` chose
and of the evidence over it, all on the same cut and the same held-out links (protocol `clean`); then seconds and peak
memory of both commands, each in a process of its own. A dead training is one that ends with exit code 3. What was
measured is kept in DIR as JSON and not measured again, and a fit that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ukge.cli.console import ExitCode
from ukge.evaluation.evaluate import prepare
from ukge.evaluation.protocols import Settings
from ukge.evaluation.tasks import ConfidenceTask, Predictor
from ukge.evidence import Evidence
from ukge.evidence.storage import has_evidence
from ukge.graph.catalogue import BENCHMARKS
from ukge.graph.catalogue.find import SYNTHETIC
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.writers import write
from ukge.runs.learnt import open_run
from ukge.storage.files import write_atomically

Fact = tuple[str, str, str, float]
Ints = npt.NDArray[np.int64]

UKGE = [sys.executable, "-c", "from ukge.cli import main; main()"]
DEAD = int(ExitCode.DEAD)
PEAK_PER_MB = 2**20 if sys.platform == "darwin" else 2**10
"""Units of a process's peak memory in a megabyte: macOS counts bytes, Linux kilobytes."""

MODULE = 40
"""Proteins of a module that interact among themselves."""

HUBS = 20
TYPES = 50


def interaction(proteins: int, facts: int, seed: int = 0) -> list[Fact]:
    """One relation without a direction, with hubs; scores as STRING's: most are low, and those within a module high."""
    rng = np.random.default_rng(seed)
    popularity = rng.pareto(1.8, proteins) + 0.3
    popularity /= popularity.sum()
    modules = proteins // MODULE + 1
    module = rng.integers(modules, size=proteins)
    place = 0.5 * rng.normal(size=(proteins, 8)) + rng.normal(size=(modules, 8))[module]
    place /= np.linalg.norm(place, axis=1, keepdims=True)
    order = np.argsort(module, kind="stable")
    first = np.searchsorted(module[order], np.arange(modules + 1))
    found: Ints = np.zeros(0, dtype=np.int64)
    while len(found) < facts:
        one = rng.choice(proteins, size=facts, p=popularity)
        size = (first[1:] - first[:-1])[module[one]]
        within = order[first[module[one]] + (rng.random(facts) * size).astype(np.int64)]
        other = np.where(rng.random(facts) < 0.5, within, rng.choice(proteins, size=facts, p=popularity))
        low, high = np.minimum(one, other), np.maximum(one, other)
        found = np.unique(np.concatenate([found, (low * proteins + high)[low != high]]))
    one, other = np.divmod(rng.permutation(found)[:facts], proteins)
    likeness = (place[one] * place[other]).sum(axis=1)
    score = 1.0 / (1.0 + np.exp(1.5 - 4.0 * likeness - 0.5 * rng.normal(size=facts)))
    confidence = np.clip(0.15 + 0.849 * score**1.5, 0.15, 0.999)
    return [
        (f"P{a:05d}", "interacts", f"P{b:05d}", round(float(c), 3))
        for a, b, c in zip(one, other, confidence, strict=True)
    ]


def small(seed: int = 0) -> list[Fact]:
    """300 facts of 40 entities."""
    rng = np.random.default_rng(seed)
    taste, weight = rng.random((40, 3)), rng.random((3, 3))
    triples: set[tuple[int, int, int]] = set()
    while len(triples) < 300:
        triples.add((int(rng.integers(40)), int(rng.integers(3)), int(rng.integers(40))))
    return [
        (f"e{h}", f"r{k}", f"e{t}", round(float(np.clip((taste[h] * weight[k] * taste[t]).sum(), 0, 1)), 3))
        for h, k, t in sorted(triples)
    ]


def hubs(seed: int = 0, entities: int = 5_000, facts: int = 60_000) -> list[Fact]:
    """Nine of ten facts end in one of 20 hubs."""
    rng = np.random.default_rng(seed)
    favourite, level = rng.integers(HUBS, size=entities), rng.random((HUBS, 6))
    found: dict[tuple[int, int, int], float] = {}
    while len(found) < facts:
        head, kind = int(rng.integers(entities)), int(rng.integers(6))
        tail = int(rng.integers(HUBS)) if rng.random() < 0.9 else int(rng.integers(entities))
        liked = 0.6 + 0.4 * (favourite[head] == tail)
        value = level[tail if tail < HUBS else 0, kind] * liked + 0.05 * rng.normal()
        found[head, kind, tail] = float(np.clip(value, 0, 1))
    return [
        (f"n{h}", f"r{k}", f"hub{t}" if t < HUBS else f"n{t}", round(value, 3)) for (h, k, t), value in found.items()
    ]


def relations(seed: int = 0, entities: int = 4_000, kinds: int = 2_000, facts: int = 60_000) -> list[Fact]:
    """2,000 relations, most of them rare, each between entities of two types and with a usual confidence."""
    rng = np.random.default_rng(seed)
    kind_of = rng.integers(TYPES, size=entities)
    ends, usual = rng.integers(TYPES, size=(kinds, 2)), rng.random(kinds)
    members = [np.flatnonzero(kind_of == each) for each in range(TYPES)]
    share = 1.0 / np.arange(1, kinds + 1) ** 0.8
    share /= share.sum()
    found: dict[tuple[int, int, int], float] = {}
    while len(found) < facts:
        for kind in rng.choice(kinds, size=1_000, p=share):
            head, tail = (int(rng.choice(members[end])) for end in ends[kind])
            found[head, int(kind), tail] = float(np.clip(usual[kind] + 0.1 * rng.normal(), 0, 1))
    rows = list(found.items())[:facts]
    return [(f"e{h}", f"rel{k}", f"e{t}", round(value, 3)) for (h, k, t), value in rows]


def certain() -> list[Fact]:
    """6,000 facts whose confidences are all 1."""
    return [(head, relation, tail, 1.0) for head, relation, tail, _ in relations(0, 1_500, 20, 6_000)]


GRAPHS: dict[str, Callable[[], Iterable[Fact]]] = {
    "small": small,
    "certain": certain,
    "relations": relations,
    "hubs": hubs,
    "interaction-small": lambda: interaction(3_000, 60_000),
    "interaction": lambda: interaction(19_566, 2_300_000),
}
QUICK = tuple(name for name in GRAPHS if name != "interaction")


def source(graph: str, out: Path) -> str:
    """Return what `ukge` is given: the name of a data set, or a file of facts, which is made if it is not there."""
    if graph in BENCHMARKS or graph == SYNTHETIC:
        return graph
    file = out / f"{graph}.tsv"
    if not file.is_file():
        out.mkdir(parents=True, exist_ok=True)
        write(UncertainGraph.from_facts(GRAPHS[graph]()), file)
    return str(file)


def timed(command: list[str]) -> dict[str, Any]:
    """Run a command of ukge in a process of its own: how it ends, its seconds, and its peak memory in MB."""
    print(f"$ ukge {' '.join(command)}", file=sys.stderr, flush=True)
    began = time.monotonic()
    process = subprocess.Popen([*UKGE, *command], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, DEAD):
        raise SystemExit(f"ukge {command[0]} ended with exit code {process.returncode}")
    return {
        "dead": process.returncode == DEAD,
        "seconds": round(time.monotonic() - began, 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "megabytes": round(used.ru_maxrss / PEAK_PER_MB),
    }


def measured(graph: str, minutes: float, seed: int, out: Path) -> dict[str, Any]:
    """Train and fit on one cut of a graph, and judge all of it by the same held-out links."""
    data, cut = source(graph, out), ["--seed", str(seed)]
    trained, fitted = (out / f"{graph}-{seed}-{name}" for name in ("train", f"fit-{minutes:g}"))
    found: dict[str, Any] = {}
    found["train"] = _kept(
        out / f"{trained.name}.json",
        lambda: timed(["train", data, "--leak-safe", *cut, "--out", str(trained), "--force", "--quiet"]),
    )
    found["fit"] = _kept(
        out / f"{fitted.name}.json",
        lambda: {
            "went_on": fitted.with_name(f"{fitted.name}.search").is_dir(),
            **timed(["fit", data, *cut, "--minutes", f"{minutes:g}", "--out", str(fitted)]),
        },
    )
    runs = {"train": open_run(trained), "fit": open_run(fitted)}
    if runs["train"].data_key != runs["fit"].data_key:
        raise SystemExit(f"{trained} and {fitted} are of different cuts: their figures do not compare")
    plan = prepare(runs["fit"].dataset, "clean", Settings(tau=runs["fit"].tau, seed=seed))
    task = next(each for each in plan.tasks if isinstance(each, ConfidenceTask))
    predictors: dict[str, Predictor] = {name: each.model for name, each in runs.items()}
    if has_evidence(fitted):
        predictors["evidence"] = Evidence.load(fitted)
    observed = task.facts.confidence
    found["mse"] = {"constant": float(np.var(observed))}
    found["mse"] |= {name: float(np.mean((task.predict(each) - observed) ** 2)) for name, each in predictors.items()}
    found["facts"] = len(runs["fit"].dataset.whole())
    return found


def _kept(file: Path, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what was measured before, or measure it and write it down."""
    if not file.is_file():
        write_atomically(file, json.dumps(measure(), indent=1).encode())
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def show(rows: dict[str, dict[str, Any]], minutes: float) -> None:
    """Print the table."""
    print(f"\n| graph | facts | MSE: best constant | train | fit --minutes {minutes:g}: model | evidence |", end="")
    print(" train: s | MB | fit: s | MB |\n|---|" + "---|" * 9)
    for graph, each in rows.items():
        mse, train, fit = each["mse"], each["train"], each["fit"]
        errors = [f"{mse[name]:.5f}" if name in mse else "–" for name in ("constant", "train", "fit", "evidence")]
        if train["dead"]:
            errors[1] += " (dead)"
        seconds = f"{fit['seconds']:.0f}{'+' * fit['went_on']}"
        cells = [f"{each['facts']:,}", *errors, f"{train['seconds']:.0f}", f"{train['megabytes']:,}", seconds]
        print(f"| {graph} | {' | '.join(cells)} | {fit['megabytes']:,} |")
    print("\n+: it was stopped and gone on with; these are the seconds of the last part." if _went_on(rows) else "")


def _went_on(rows: dict[str, dict[str, Any]]) -> bool:
    return any(each["fit"]["went_on"] for each in rows.values())


def main() -> None:
    """Measure what is not there yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = [*GRAPHS, *BENCHMARKS, SYNTHETIC]
    parser.add_argument("--graphs", nargs="+", default=list(QUICK), choices=known, metavar="GRAPH", help=str(known))
    parser.add_argument("--minutes", type=float, default=2.0, help="what `ukge fit` is given")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("runs") / "any-graph")
    asked = parser.parse_args()
    rows: dict[str, dict[str, Any]] = {}
    for graph in asked.graphs:
        kept = asked.out / f"{graph}-{asked.seed}-{asked.minutes:g}.json"
        asked.out.mkdir(parents=True, exist_ok=True)
        measure = partial(measured, graph, asked.minutes, asked.seed, asked.out)
        rows[graph] = _kept(kept, measure)
        show(rows, asked.minutes)


if __name__ == "__main__":
    main()
