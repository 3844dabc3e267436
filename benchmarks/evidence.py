"""Evidence against its targets: asked, published and measured, as mean and deviation over seeds.

    python benchmarks/evidence.py --graphs cn15k nl27k ppi5k --seeds 0 1 2 --runs DIR

DIR is where `ukge reproduce --out DIR` left its runs, and `ukge reproduce cn15k nl27k --models complex-all --out DIR`
those of the model for ranking: evidence is fitted over those of the same graph and seed. What is
measured of a graph and a seed is kept in --out as JSON and not measured again. The squared-error head answers for every
figure but the mean absolute errors, which are those of the head with the smaller one on validation facts. `positives`
asks how confident facts are that are known to hold; everything else allows that a link is false. Nothing is chosen on
test facts.

Coverage is asked of held-out facts (the figures "if held"). Among links that may be false most confidences are exactly
0, and an interval that holds 0 holds all of them: there the share is a lower bound.

The paper's negative links were drawn without a look at the facts, so some are facts of the graph (8 % on PPI5k). A head
that is right about those has an error there. Lines marked "as drawn" are of a head whose own negative links were
drawn in the same blind way: it learns the flaw of the test set, and is of no use otherwise. Lines marked "by
validation" are of whichever of the two tells strong facts better among validation facts beside links drawn as the
protocol draws them, each half judged by trees that saw the other.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ukge.cli.console import fail
from ukge.errors import UkgeError
from ukge.evaluation.classification import Classification, classification
from ukge.evaluation.evaluate import evaluate, prepare
from ukge.evaluation.metric import Bootstrap
from ukge.evaluation.protocols import Settings
from ukge.evaluation.tasks import LinkTask, RankingTask, Task
from ukge.evidence import Evidence, EvidenceSettings
from ukge.evidence.fitting import mixed_negatives
from ukge.graph.catalogue import open_dataset
from ukge.graph.dataset import Dataset
from ukge.graph.negatives import MIXED, negative_links
from ukge.graph.split import split
from ukge.graph.synthetic import generate
from ukge.graph.uncertain import UncertainGraph, concat
from ukge.learning.estimator import UKGE
from ukge.storage.files import write_atomically

GRAPHS = ("cn15k", "nl27k", "ppi5k")
MODELS = ("ukge-rect", "ukge-logi", "ukge-rect-ranking", "ukge-logi-ranking", "complex-all")
TAU = {"ppi5k": 0.70}
COVERAGE = 0.9
NONE = Bootstrap(0)

Figures = dict[str, float]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Target:
    """A figure that was asked for and the best published one, per graph; `most` says that lower is better."""

    title: str
    most: bool
    asked: Mapping[str, float]
    published: Mapping[str, float]


def _target(title: str, most: bool, asked: Sequence[float], published: Sequence[float] = ()) -> Target:
    return Target(title, most, dict(zip(GRAPHS, asked, strict=True)), dict(zip(GRAPHS, published, strict=False)))


TARGETS = {
    "positives_mse": _target("positives MSE", True, (0.024, 0.0055, 0.0009), (0.031, 0.009, 0.0032)),
    "positives_mae": _target("positives MAE", True, (0.0898, 0.029, 0.0107), (0.090, 0.041, 0.0216)),
    "paper_mse": _target("paper MSE ×100", True, (7.0, 1.9, 0.75), (7.49, 2.01, 0.95)),
    "paper_mae": _target("paper MAE ×100", True, (18.0, 4.5, 3.0), (19.88, 6.89, 3.79)),
    "ndcg": _target("paper nDCG linear", False, (0.83, 0.97, 0.98), (0.801, 0.966, 0.970)),
    "f1": _target("paper F1 ×100", False, (59.0, 95.0, 98.0), (28.8, 92.3, 95.1)),
    "accuracy": _target("paper accuracy ×100", False, (92.5, 96.7, 99.7), (90.4, 95.2, 99.5)),
    "f1_by_validation": _target("paper F1 ×100, by validation", False, (59.0, 95.0, 98.0), (28.8, 92.3, 95.1)),
    "accuracy_by_validation": _target(
        "paper accuracy ×100, by validation", False, (92.5, 96.7, 99.7), (90.4, 95.2, 99.5)
    ),
    "f1_as_drawn": _target("paper F1 ×100, as drawn", False, (59.0, 95.0, 98.0), (28.8, 92.3, 95.1)),
    "accuracy_as_drawn": _target("paper accuracy ×100, as drawn", False, (92.5, 96.7, 99.7), (90.4, 95.2, 99.5)),
    "wmrr": _target("filtered WMRR, both sides", False, (0.26, 0.86, 0.96), (0.250, 0.849, 0.959)),
    "facts_per_second": _target("facts predicted per second", False, (1e5, 1e5, 1e5)),
    "features_per_minute": _target("facts with evidence per minute", False, (1e6, 1e6, 1e6)),
}


def runs_of(graph: str, seed: int, runs: Path, clean: bool = False) -> list[Path]:
    """Return the finished runs of a graph and a seed that `ukge reproduce` left."""
    home = runs / "runs" if (runs / "runs").is_dir() else runs
    paths = [home / graph / f"{model}{'-clean' * clean}" / f"seed-{seed}" for model in MODELS]
    return [path for path in paths if (path / "weights.safetensors").is_file()]


def confidence_figures(squared: Evidence, absolute: Evidence, drawn: Evidence, dataset: Dataset, tau: float) -> Figures:
    """Return errors and classification; MAE by the absolute-error head."""
    test, both = dataset.test, dataset.test_with_negatives()
    heads = (squared, absolute)
    held, error = squared.predict(test, assume_holds=True) - test.confidence, squared.predict(both) - both.confidence
    # Which head answers for the mean absolute error is decided by validation facts that it did not see.
    surer_held = min(heads, key=lambda each: each.unseen_errors()["mae_if_held"])
    surer = min(heads, key=lambda each: each.unseen_errors()["mae"])
    figures = {
        "positives_mse": float(np.mean(held**2)),
        "positives_mae": _mae(surer_held.predict(test, assume_holds=True), test),
        "positives_mae_squared": float(np.mean(np.abs(held))),
        "paper_mse": 100 * float(np.mean(error**2)),
        "paper_mae": 100 * _mae(surer.predict(both), both),
        "paper_mae_squared": 100 * float(np.mean(np.abs(error))),
        "paper_mse_as_drawn": 100 * float(np.mean((drawn.predict(both) - both.confidence) ** 2)),
    }
    return figures | strong_figures(squared, drawn, dataset, tau)


def _mae(predicted: Floats, facts: UncertainGraph) -> float:
    return float(np.mean(np.abs(predicted - facts.confidence)))


def strong_figures(true: Evidence, drawn: Evidence, dataset: Dataset, tau: float) -> Figures:
    """Return F1 and accuracy of strong facts: those that are more likely above τ than not."""
    figures: Figures = {}
    both = dataset.test_with_negatives()
    for suffix, evidence in (("", true), ("_as_drawn", drawn)):
        scores = _strong(evidence, both, tau)
        figures[f"validation_f1{suffix}"] = 100 * validated_f1(evidence, dataset, tau)
        figures |= {f"f1{suffix}": 100 * scores.f1, f"accuracy{suffix}": 100 * scores.accuracy}
    chosen = max("", "_as_drawn", key=lambda suffix: figures[f"validation_f1{suffix}"])
    return figures | {f"{name}_by_validation": figures[f"{name}{chosen}"] for name in ("f1", "accuracy")}


def validated_f1(evidence: Evidence, dataset: Dataset, tau: float) -> float:
    """Return the F1 of strong facts in either half of the validation facts, beside links drawn as the paper did."""
    seed = evidence.settings.seed
    half = np.random.default_rng(seed).permutation(len(dataset.val)) % 2
    found = []
    for number in (0, 1):
        asked = dataset.val[half == number]
        links = negative_links(dataset, asked, kind="paper", seed=seed + 1, true_negatives=False)
        others = replace(dataset, val=dataset.val[half != number])
        found.append(_strong(evidence, concat([asked, links]), tau, others).f1)
    return float(np.mean(found))


def _strong(evidence: Evidence, facts: UncertainGraph, tau: float, dataset: Dataset | None = None) -> Classification:
    return classification(evidence.strong(tau, dataset).chance(facts, count_itself=True) > 0.5, facts.confidence > tau)


def honest_ceiling(dataset: Dataset, tau: float) -> Figures:
    """Return the figures of one who knows every confidence of the graph, those of false negative links too."""
    both = dataset.test_with_negatives()
    every = concat([dataset.train, dataset.val, dataset.test])
    order = np.argsort(every.keys(), kind="stable")
    keys = every.keys()[order]
    at = np.minimum(np.searchsorted(keys, both.keys()), len(keys) - 1)
    known = np.where((keys[at] == both.keys()) & (both.confidence == 0), every.confidence[order][at], both.confidence)
    scores = classification(known > tau, both.confidence > tau)
    error = 100 * float(np.mean((known - both.confidence) ** 2))
    return {"ceiling_mse": error, "ceiling_f1": 100 * scores.f1, "ceiling_accuracy": 100 * scores.accuracy}


def ranking_figures(evidence: Evidence, dataset: Dataset) -> Figures:
    """Return nDCG and filtered WMRR."""
    figures: Figures = {}
    for protocol in ("paper", "positives"):
        for task in prepare(dataset, protocol, Settings()).tasks:
            figures |= _ranked(task, evidence)
    return figures


def _ranked(task: Task, evidence: Evidence) -> Figures:
    if isinstance(task, RankingTask):
        found = {each.metric.name: each.value for each in task.measure(evidence, NONE)["ranking"]}
        return {"ndcg": found["linear"], "ndcg_exponential": found["exponential"]}
    if isinstance(task, LinkTask):
        found = {each.metric.name: each.value for each in task.measure(evidence, NONE)["links_filtered_both"]}
        return {"wmrr": found["wmrr"], "mrr": found["mrr"], "whits_1": found["whits_1"]}
    return {}


def beside_negatives(dataset: Dataset, settings: EvidenceSettings) -> UncertainGraph:
    """Return the test facts beside as many new negative links of the kinds that the head knows."""
    asked = replace(settings, negatives_per_fact=1.0, seed=settings.seed + 1)
    links, _ = mixed_negatives(replace(dataset, val=dataset.test, test=dataset.val), asked)
    return concat([dataset.test, links])


def interval_figures(evidence: Evidence, facts: UncertainGraph, suffix: str) -> Figures:
    """Return coverage of 90 % intervals, overall and in each band, and widths."""
    assume_holds = suffix == "_if_held"
    bounds = evidence.bounds_if_held if assume_holds else evidence.bounds
    predicted = evidence.predict(facts, assume_holds=assume_holds)
    low, high = evidence.interval(facts, COVERAGE, assume_holds=assume_holds)
    held = (low <= facts.confidence) & (facts.confidence <= high)
    bands = bounds.outcomes.bands(predicted)
    covered = [float(held[bands == band].mean()) for band in np.unique(bands)]
    half = float(np.quantile(np.abs(bounds.error), COVERAGE))
    constant = np.minimum(predicted + half, 1.0) - np.maximum(predicted - half, 0.0)
    return {
        f"coverage{suffix}": float(held.mean()),
        **{f"coverage_band_{number}{suffix}": each for number, each in enumerate(covered)},
        f"width{suffix}": float((high - low).mean()),
        f"constant_width{suffix}": float(constant.mean()),
    }


def speed_figures(evidence: Evidence, facts: UncertainGraph) -> Figures:
    """Return how fast facts are predicted, and how fast their evidence alone is gathered."""
    ids = facts.head, facts.relation, facts.tail
    evidence.predict(facts)
    begun = time.perf_counter()
    evidence.features.columns(*ids)
    gathered = time.perf_counter()
    evidence.predict(facts)
    done = time.perf_counter()
    return {
        "facts_per_second": len(facts) / (done - gathered),
        "features_per_minute": 60 * len(facts) / (gathered - begun),
    }


def graph_figures(name: str, seed: int, runs: Path) -> Figures:
    """Fit the heads on one graph and measure everything."""
    dataset, tau = open_dataset(name), TAU.get(name, 0.85)
    paths = runs_of(name, seed, runs)
    if not paths:
        sys.exit(
            f"no finished runs of {name} with seed {seed} under {runs}: make them with ukge reproduce --out {runs}"
        )
    begun = time.perf_counter()
    settings = EvidenceSettings(seed=seed)
    squared = Evidence.fit(paths, dataset, settings=settings)
    figures = {"models": float(len(paths)), "fit_seconds": time.perf_counter() - begun}
    absolute = squared.refit(rank_queries=0, error="absolute")
    drawn = squared.refit(rank_queries=0, negatives={"paper": 1.0}, negatives_may_hold=True)
    figures |= confidence_figures(squared, absolute, drawn, dataset, tau) | honest_ceiling(dataset, tau)
    figures |= interval_figures(squared, dataset.test, "_if_held")
    figures |= interval_figures(squared, beside_negatives(dataset, settings), "")
    figures |= interval_figures(squared, dataset.test_with_negatives(), "_paper")
    figures |= speed_figures(squared, dataset.train) | ranking_figures(squared, dataset)
    return figures | {"seconds": time.perf_counter() - begun}


def clean_figures(name: str, seed: int, runs: Path) -> Figures:
    """Return the clean protocol's figures on a leak-safe split: of trivial baselines, the first model and evidence."""
    paths = runs_of(name, seed, runs, clean=True)
    if not paths:
        print(
            f"{name}: no clean runs with seed {seed} under {runs}, so the clean protocol is left out", file=sys.stderr
        )
        return {}
    dataset = open_dataset(name, seed=seed, leak_safe=True)
    fitted = Evidence.fit(paths, dataset, seed=seed)
    plan = prepare(dataset, "clean", Settings(tau=TAU.get(name, 0.85), seed=seed))
    judged = evaluate(plan, {"model": UKGE.load(paths[0]).predictor, "evidence": fitted}, bootstrap=NONE)
    wanted = {"confidence": ("mse", "mae"), "ranking": ("linear",), "classification": ("f1",)}
    return {
        f"{row.name} {table} {each.metric.name}": each.value
        for row in judged.rows
        for table, names in wanted.items()
        for each in row.figures.get(table, ())
        if each.metric.name in names
    }


def synthetic_figures(seed: int) -> Figures:
    """Return errors against the true confidence: of held-out facts, and of links that were never observed."""
    world = generate(n_entities=2_000, n_facts=40_000, seed=seed)
    dataset = split(world.graph, seed=seed, name="synthetic")
    models = [
        UKGE(name, dim=64, epochs=30, every=5, batch_size=1024, lr=0.003, seed=seed).fit(dataset)
        for name in ("ukge-rect", "ukge-logi")
    ]
    fitted = Evidence.fit(models, dataset, seed=seed)
    figures: Figures = {}
    links = concat([negative_links(dataset, kind=kind, seed=seed) for kind in MIXED])
    for part, facts, held in (("facts", dataset.test, True), ("unobserved", links, False)):
        truth = np.asarray(world.true_confidence(facts.head, facts.relation, facts.tail), dtype=np.float64)
        constant = np.full(len(truth), dataset.val.confidence.mean() if held else truth.mean())
        for who, predicted in (
            ("evidence", fitted.predict(facts, assume_holds=held)),
            ("model", models[0].predict(facts)),
            ("constant", constant),
        ):
            figures[f"{part} {who} MSE"] = float(np.mean((predicted - truth) ** 2))
            figures[f"{part} {who} MAE"] = float(np.mean(np.abs(predicted - truth)))
    return figures


def report(name: str, measured: Sequence[Figures]) -> None:
    """Print the figures of one graph beside those asked for and those published."""
    print(f"\n## {name}, {len(measured)} seeds\n")
    print("| figure | asked | published | measured | ± | |\n|---|---|---|---|---|---|")
    for key in measured[0]:
        values = np.array([each[key] for each in measured if key in each])
        target = TARGETS.get(key)
        asked = target.asked.get(name) if target is not None else None
        best = target.published.get(name) if target is not None else None
        said, reached = "", ""
        if target is not None and asked is not None:
            said = f"{'≤' if target.most else '≥'} {asked:g}"
            met = values.mean() <= asked if target.most else values.mean() >= asked
            reached = "reached" if met else "**not reached**"
        elif key.startswith("coverage") and key.endswith("_if_held"):
            said = f"{COVERAGE:g} ± 0.01"
            reached = "reached" if abs(values.mean() - COVERAGE) <= 0.01 else "**not reached**"
        title = target.title if target is not None else key.replace("_", " ")
        told = "" if best is None else f"{best:g}"
        print(f"| {title} | {said} | {told} | {values.mean():.5g} | {values.std():.2g} | {reached} |", flush=True)


def kept(file: Path, measure: Callable[[], Figures]) -> Figures:
    """Return the figures in a file, measuring and writing them if it is not there."""
    if not file.is_file():
        found = measure()
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, (json.dumps(found, indent=2) + "\n").encode())
    read: Figures = json.loads(file.read_text(encoding="utf-8"))
    return read


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=list(GRAPHS), choices=[*GRAPHS, "synthetic"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--runs", type=Path, default=Path("results"), help="what ukge reproduce --out was given")
    parser.add_argument("--out", type=Path, default=Path("results/evidence"), help="where the figures are kept")
    parser.add_argument("--clean", action="store_true", help="also judge by the clean protocol on leak-safe splits")
    chosen = parser.parse_args()
    for name in chosen.graphs:
        measured: list[Figures] = []
        cleaned: list[Figures] = []
        for seed in chosen.seeds:

            def measure(name: str = name, seed: int = seed) -> Figures:
                return synthetic_figures(seed) if name == "synthetic" else graph_figures(name, seed, chosen.runs)

            measured.append(kept(chosen.out / f"{name}-seed-{seed}.json", measure))
            if chosen.clean and name in GRAPHS:

                def cleanly(name: str = name, seed: int = seed) -> Figures:
                    return clean_figures(name, seed, chosen.runs)

                cleaned.append(kept(chosen.out / f"{name}-clean-seed-{seed}.json", cleanly))
        report(name, measured)
        if any(cleaned):
            report(f"{name}, clean", [each for each in cleaned if each])


if __name__ == "__main__":
    try:
        main()
    except UkgeError as error:
        fail(error)
        sys.exit(2)
