"""Evidence against its targets: the figures asked for and the figures measured, as mean and deviation over seeds.

    python benchmarks/evidence.py [cn15k nl27k ppi5k synthetic] [--seeds 3] [--clean] [--runs DIR]

Models are trained once per graph and seed and kept in DIR; heads are fitted anew. The squared-error head answers for
every figure but the mean absolute errors, which are those of the absolute-error head. `positives` asks how confident
facts are that are known to hold; everything else allows that a link is false. Nothing is chosen on test facts.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ukge.estimator import UKGE
from ukge.evaluation.bootstrap import Bootstrap
from ukge.evaluation.classification import StrongFacts, classification
from ukge.evaluation.evaluate import evaluate, prepare
from ukge.evaluation.protocols import Settings
from ukge.evaluation.tables import render
from ukge.evaluation.tasks import LinkTask, RankingTask, Task
from ukge.evidence import Evidence
from ukge.graph.catalogue import open_dataset
from ukge.graph.dataset import Dataset
from ukge.graph.negatives import MIXED, negative_links
from ukge.graph.split import split
from ukge.graph.synthetic import generate
from ukge.graph.uncertain import UncertainGraph, concat

GRAPHS = ("cn15k", "nl27k", "ppi5k")
TAU = {"ppi5k": 0.70}
L2 = {"ppi5k": 0.0005}
COVERAGE = 0.9
NONE = Bootstrap(0)

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Target:
    """A figure that was asked for, per graph; `most` says that lower is better."""

    title: str
    wanted: Mapping[str, float]
    most: bool


def _target(title: str, most: bool, *wanted: float) -> Target:
    return Target(title, dict(zip(GRAPHS, wanted, strict=True)), most)


TARGETS = {
    "positives_mse": _target("positives MSE", True, 0.024, 0.0055, 0.0009),
    "positives_mae": _target("positives MAE", True, 0.105, 0.029, 0.0107),
    "paper_mse": _target("paper MSE ×100", True, 7.0, 1.9, 0.75),
    "paper_mae": _target("paper MAE ×100", True, 18.0, 4.5, 3.0),
    "ndcg": _target("paper nDCG linear", False, 0.83, 0.97, 0.98),
    "f1": _target("paper F1 ×100", False, 59.0, 95.0, 98.0),
    "accuracy": _target("paper accuracy ×100", False, 92.5, 96.7, 99.7),
    "wmrr": _target("filtered WMRR, both sides", False, 0.26, 0.86, 0.96),
}


def backbones(dataset: Dataset, seed: int, runs: Path, epochs: int, label: str) -> list[Path]:
    """Return trained runs of a data set, training those that are not there yet."""
    found = []
    for model in ("ukge-rect", "ukge-logi"):
        path = runs / f"{label}-{model}-{seed}"
        if not (path / "weights.safetensors").is_file():
            own = {"epochs": epochs, "seed": seed, "l2": L2.get(dataset.name, 0.005)}
            settings: dict[str, Any] = {**own, "batch_size": 1024, "lr": 0.003, "every": 5}
            UKGE(model, **settings).fit(dataset, out=path, reference=dataset.name)
        found.append(path)
    return found


def confidence_figures(evidence: dict[str, Evidence], dataset: Dataset, tau: float) -> dict[str, float]:
    """Return errors and classification; MAE by the absolute-error head."""
    test, both = dataset.test, dataset.test_with_negatives()
    squared, absolute = evidence["squared"], evidence["absolute"]
    figures = {
        "positives_mse": float(np.mean((squared.predict(test, assume_holds=True) - test.confidence) ** 2)),
        "positives_mae": float(np.mean(np.abs(absolute.predict(test, assume_holds=True) - test.confidence))),
        "positives_mae_squared": float(np.mean(np.abs(squared.predict(test, assume_holds=True) - test.confidence))),
        "paper_mse": 100 * float(np.mean((squared.predict(both) - both.confidence) ** 2)),
        "paper_mae": 100 * float(np.mean(np.abs(absolute.predict(both) - both.confidence))),
    }
    # The threshold is learnt from validation facts and negative links that the head did not see.
    unseen = squared.bounds
    classifier = StrongFacts.fit(unseen.predicted, unseen.predicted + unseen.error > tau)
    scores = classification(classifier.predict(squared.predict(both)), both.confidence > tau)
    return {**figures, "f1": 100 * scores.f1, "accuracy": 100 * scores.accuracy}


def ranking_figures(evidence: Evidence, dataset: Dataset) -> dict[str, float]:
    """Return nDCG and filtered WMRR."""
    figures: dict[str, float] = {}
    for protocol in ("paper", "positives"):
        for task in prepare(dataset, protocol, Settings()).tasks:
            figures |= _ranked(task, evidence)
    return figures


def _ranked(task: Task, evidence: Evidence) -> dict[str, float]:
    if isinstance(task, RankingTask):
        return {"ndcg": _value(task, evidence, "ranking", "linear")}
    if isinstance(task, LinkTask):
        return {"wmrr": _value(task, evidence, "links_filtered_both", "wmrr")}
    return {}


def _value(task: Task, evidence: Evidence, table: str, name: str) -> float:
    return next(each.value for each in task.measure(evidence, NONE)[table] if each.metric.name == name)


def interval_figures(evidence: Evidence, facts: UncertainGraph, *, assume_holds: bool) -> dict[str, float]:
    """Return coverage of 90 % intervals, overall and in the band where it is farthest off, and widths."""
    suffix = "_if_held" if assume_holds else ""
    bounds = evidence.bounds_if_held if assume_holds else evidence.bounds
    predicted = evidence.predict(facts, assume_holds=assume_holds)
    low, high = evidence.interval(facts, COVERAGE, assume_holds=assume_holds)
    held = (low <= facts.confidence) & (facts.confidence <= high)
    bands = bounds.bands(predicted)
    covered = [float(held[bands == band].mean()) for band in np.unique(bands)]
    half = float(np.quantile(np.abs(bounds.error), COVERAGE))
    constant = np.minimum(predicted + half, 1.0) - np.maximum(predicted - half, 0.0)
    return {
        f"coverage{suffix}": float(held.mean()),
        **{f"coverage_band_{number}{suffix}": each for number, each in enumerate(covered)},
        f"width{suffix}": float((high - low).mean()),
        f"constant_width{suffix}": float(constant.mean()),
    }


def graph_figures(name: str, seed: int, runs: Path, epochs: int) -> dict[str, float]:
    """Fit both heads on one graph and measure everything."""
    dataset = open_dataset(name)
    paths = backbones(dataset, seed, runs, epochs, name)
    begun = time.perf_counter()
    heads = {error: Evidence.fit(paths, dataset, error=error, seed=seed) for error in ("squared", "absolute")}
    figures = {"fit_seconds": (time.perf_counter() - begun) / 2}
    figures |= confidence_figures(heads, dataset, TAU.get(name, 0.85))
    figures |= interval_figures(heads["squared"], dataset.test, assume_holds=True)
    figures |= interval_figures(heads["squared"], dataset.test_with_negatives(), assume_holds=False)
    begun = time.perf_counter()
    heads["squared"].predict(dataset.train)
    figures["facts_per_second"] = len(dataset.train) / (time.perf_counter() - begun)
    return figures | ranking_figures(heads["squared"], dataset)


def clean(name: str, seed: int, runs: Path, epochs: int) -> None:
    """Print the clean protocol on a leak-safe split, beside the trivial baselines and the first model."""
    dataset = open_dataset(name, seed=seed, leak_safe=True)
    paths = backbones(dataset, seed, runs, epochs, f"{name}-safe")
    fitted = Evidence.fit(paths, dataset, seed=seed)
    plan = prepare(dataset, "clean", Settings(tau=TAU.get(name, 0.85), seed=seed))
    judged = evaluate(plan, {"model": UKGE.load(paths[0]).predictor, "evidence": fitted}, bootstrap=NONE)
    from rich.console import Console

    Console(width=140).print(render(judged))


def synthetic(seed: int, runs: Path, epochs: int) -> dict[str, float]:
    """Return errors against the true confidence: of held-out facts, and of links that were never observed."""
    world = generate(n_entities=2_000, n_facts=40_000, seed=seed)
    dataset = split(world.graph, seed=seed, name="synthetic")
    paths = backbones(dataset, seed, runs, epochs, "synthetic")
    fitted = Evidence.fit(paths, dataset, seed=seed)
    model = UKGE.load(paths[0])
    figures: dict[str, float] = {}
    links = concat([negative_links(dataset, kind=kind, seed=seed) for kind in MIXED])
    for part, facts, held in (("facts", dataset.test, True), ("unobserved", links, False)):
        truth = np.asarray(world.true_confidence(facts.head, facts.relation, facts.tail), dtype=np.float64)
        constant = np.full(len(truth), dataset.val.confidence.mean() if held else truth.mean())
        for who, predicted in (
            ("evidence", fitted.predict(facts, assume_holds=held)),
            ("model", model.predict(facts)),
            ("constant", constant),
        ):
            figures[f"{part} {who} MSE"] = float(np.mean((predicted - truth) ** 2))
            figures[f"{part} {who} MAE"] = float(np.mean(np.abs(predicted - truth)))
    return figures


def report(name: str, measured: Sequence[Mapping[str, float]]) -> None:
    """Print the figures of one graph beside those asked for."""
    print(f"\n{name}, {len(measured)} seeds")
    print(f"{'figure':34s} {'asked':>8s} {'measured':>10s} {'±':>8s}")
    for key in measured[0]:
        values = np.array([each[key] for each in measured])
        target = TARGETS.get(key)
        asked, reached = "", ""
        if target is not None and name in target.wanted:
            wanted = target.wanted[name]
            asked = f"{'≤' if target.most else '≥'}{wanted:g}"
            better = values.mean() <= wanted if target.most else values.mean() >= wanted
            reached = "reached" if better else "NOT reached"
        title = target.title if target is not None else key
        print(f"{title:34s} {asked:>8s} {values.mean():10.5g} {values.std():8.2g}  {reached}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="*", default=[*GRAPHS, "synthetic"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=40, help="epochs of the models that are trained here")
    parser.add_argument("--runs", type=Path, default=Path("runs/evidence"), help="where trained models are kept")
    parser.add_argument("--clean", action="store_true", help="also judge by the clean protocol on a leak-safe split")
    parser.add_argument("--json", type=Path, help="also write all figures to this file")
    chosen = parser.parse_args()
    everything: dict[str, list[dict[str, float]]] = {}
    for name in chosen.graphs:
        measured = []
        for seed in range(chosen.seeds):
            one = synthetic if name == "synthetic" else lambda *rest, name=name: graph_figures(name, *rest)
            measured.append(one(seed, chosen.runs, chosen.epochs))
        everything[name] = measured
        report(name, measured)
        if chosen.clean and name in GRAPHS:
            clean(name, 0, chosen.runs, chosen.epochs)
        if chosen.json is not None:
            chosen.json.write_text(json.dumps(everything, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
