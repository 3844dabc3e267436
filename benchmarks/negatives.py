"""Evidence beside each kind of negative links, and its quantiles, intervals and answer sets, on fresh splits.

    python benchmarks/negatives.py --graphs nl27k ppi5k cn15k --seeds 201 --out DIR

Every graph is cut anew with each seed and one model trained on it (30 epochs). The first table has the MSE of test
facts and as many links of a kind, of a head that learnt from links of that very kind alone and of the default head: as
it is, where it is told the kind (`with_negatives`), and where it finds out from the links that are asked, half of them
facts or one in ten (`adapted_to`). A head that is told nothing cannot be as good as those of one kind at once, for
whatever it says of a fact, it says beside every kind. The last line says how much worse any such head must be
somewhere: the head that learnt from shares s of the kinds makes the mean error over these shares as small as can be, so
of all ratios to the heads of one kind the largest is at least Σ s · MSE / Σ s · own MSE.

The second table is the protocol `uncertainty`, of the model and of the evidence over it. What was measured is kept in
DIR as JSON and not measured again. `--plain` cuts facts row by row, as the benchmarks come cut: then train holds
mirrors and inverses of test facts.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from ukge.evaluation.confidence import calibration_sample
from ukge.evaluation.evaluate import measure, prepare
from ukge.evaluation.metric import Bootstrap
from ukge.evaluation.protocols import Settings
from ukge.evaluation.uncertainty import BOTH, COVERAGES, FACTS, NEGATIVES
from ukge.evidence import Evidence, EvidenceSettings
from ukge.evidence.backbones import backbones_of
from ukge.evidence.false_links import fit_false_links
from ukge.evidence.features import Features
from ukge.evidence.fitting import gather, negatives_by_kind, with_expectation
from ukge.evidence.kernels import load_compiler
from ukge.evidence.regressor import ConfidenceRegressor, Examples, fit_regressor
from ukge.graph.catalogue import open_dataset
from ukge.graph.dataset import Dataset
from ukge.graph.negatives import SHARES, negative_links
from ukge.graph.queries import SIDES
from ukge.graph.split import split
from ukge.graph.uncertain import UncertainGraph
from ukge.learning.estimator import UKGE
from ukge.runs.learnt import open_run
from ukge.storage.files import write_atomically

EPOCHS = 30
FOLDS = 2
"""Folds of all heads of the first table: there are seven for each graph."""


def trained(graph: str, seed: int, plain: bool, out: Path) -> Path:
    """Return the run of a graph that was cut with a seed; it is trained if it is not there."""
    run = out / f"{graph}{'plain' * plain}-{seed}"
    if not run.is_dir():
        undirected = "none" if plain else "auto"
        dataset = split(open_dataset(graph).whole(), seed=seed, name=run.name, undirected=undirected)
        UKGE(seed=seed, epochs=EPOCHS).fit(dataset, undirected=undirected).save(run)
    return run


def head_of(features: Features, dataset: Dataset, shares: dict[str, float]) -> ConfidenceRegressor:
    """Return a head that learnt from the validation facts and from negative links in shares of their kinds."""
    settings = EvidenceSettings(negatives=shares, folds=FOLDS)
    blind = replace(dataset, test=dataset.test[:0], negatives=None, queries=None)
    links = {kind: _columns(features, each) for kind, each in negatives_by_kind(blind, settings)[0].items()}
    examples = Examples(_columns(features, blind.val), blind.val.confidence, np.concatenate(list(links.values())))
    head = fit_regressor(examples, features.rising, settings)[0]
    return replace(head, false=fit_false_links(links, settings)[0])


def by_kind(run: Path, seed: int) -> dict[str, dict[str, float]]:
    """Return for each kind the MSE of its own head and of the default one, told the kind, finding out, or neither."""
    dataset = open_run(run).dataset
    blind = replace(dataset, test=dataset.test[:0], negatives=None, queries=None)
    settings = EvidenceSettings()
    features = with_expectation(gather(blind.train, backbones_of([run], blind), settings), settings)
    default, test = head_of(features, dataset, dict(SHARES)), dataset.test
    found = {}
    for kind in SHARES:
        links = negative_links(dataset, like=test, kind=kind, seed=seed)
        columns = np.concatenate([_columns(features, each) for each in (test, links)])
        observed = np.concatenate([test.confidence, links.confidence])
        few = np.random.default_rng(seed).permutation(len(test))[: len(links) // 9]
        tenth = np.concatenate([few, len(test) + np.arange(len(links))])
        own = head_of(features, dataset, {kind: 1.0})
        told = replace(default, asked=default.false_links().asked(0.5, {kind: 1.0}))
        finds = replace(default, asked=default.likeliest(columns))
        rare = replace(default, asked=default.likeliest(columns[tenth]))
        said = {"own": own, "default": default, "told": told, "found": finds}
        errors = {name: float(np.mean((each.predict(columns) - observed) ** 2)) for name, each in said.items()}
        for name, each in (("default_tenth", default), ("found_tenth", rare)):
            errors[name] = float(np.mean((each.predict(columns[tenth]) - observed[tenth]) ** 2))
        both = {name: calibration_sample(said[name].predict(columns), observed) for name in ("default", "told")}
        ece = {name: each.point()["ece"] for name, each in both.items()}
        found[kind] = {
            **errors,
            "ece": ece["default"],
            "ece_told": ece["told"],
            "prior_found": finds.asked.prior,
            "prior_found_tenth": rare.asked.prior,
            "share_found": default.false_links().shares(finds.asked)[kind],
        }
        print(run.name, kind, found[kind], flush=True)
    return found


def _columns(features: Features, facts: UncertainGraph) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    return features.columns(facts.head, facts.relation, facts.tail)


def uncertainty(run: Path, seed: int) -> dict[str, dict[str, float]]:
    """Return the figures of the protocol `uncertainty`, of the run's model and of its evidence."""
    opened = open_run(run)
    evidence = Evidence.fit([run], opened.dataset)
    evidence.save(run)
    plan = prepare(opened.dataset, "uncertainty", Settings(seed=seed))
    rows = measure(plan, {"model": opened.model, "evidence": evidence}, Bootstrap(0))
    return {
        row.name: {f"{table}.{each.metric.name}": each.value for table, own in row.figures.items() for each in own}
        for row in rows
    }


def show_kinds(name: str, found: dict[str, dict[str, float]]) -> None:
    """Print the first table of a graph."""
    titles = ["own head", "default", "told the kind", "finds out", "calibration error, told", "one in ten, finds out"]
    print(f"\n| {name} | {' | '.join(titles)} |")
    print("|---|---|---|---|---|---|---|")
    for kind, each in found.items():
        cells = [f"{each[what]:.5f} ({each[what] / each['own']:.2f})" for what in ("default", "told", "found")]
        rare = f"{each['default_tenth']:.5f}, {each['found_tenth']:.5f} ({each['prior_found_tenth']:.3f})"
        calibration = f"{each['ece']:.4f}, {each['ece_told']:.4f}"
        print(f"| {kind} | {each['own']:.5f} | {' | '.join(cells)} | {calibration} | {rare} |")
    mean, own = (sum(SHARES[kind] * each[name] for kind, each in found.items()) for name in ("default", "own"))
    print(f"told nothing, some kind must have at least {mean / own:.2f}", flush=True)


def show_uncertainty(measured: dict[str, dict[str, dict[str, float]]]) -> None:
    """Print the second table: what was measured of each graph, of its model and of its evidence."""
    names = [f"{graph}, {judge}" for graph, found in measured.items() for judge in found]
    every = [each for found in measured.values() for each in found.values()]
    print(f"\n| | {' | '.join(names)} |\n|---|{'---|' * len(names)}")
    for title, (metrics, digits) in rows_shown().items():
        cells = [" / ".join(f"{each[metric]:,.{digits}f}" for metric in metrics) for each in every]
        print(f"| {title} | {' | '.join(cells)} |", flush=True)


def rows_shown() -> dict[str, tuple[list[str], int]]:
    """Return the rows of the second table: the figures of each, and their digits."""
    parts = FACTS, NEGATIVES, BOTH
    levels = [f"{100 * each:.0f}" for each in COVERAGES]
    shown = {
        "CRPS of facts / negatives / both": ([f"distribution.crps_{part}" for part in parts], 3),
        "log score of facts / negatives / both": ([f"distribution.log_score_{part}" for part in parts], 2),
    }
    for what in ("coverage", "width"):
        for level in levels:
            title = f"{what} at {level} %, facts / negatives / both"
            shown[title] = ([f"intervals.{what}_{level}_{part}" for part in parts], 3)
    shown["calibration error before / after"] = ([f"calibration.ece_{when}" for when in ("before", "after")], 4)
    for side in SIDES:
        asked = f"answer sets of {side}s"
        for kept, label in (("", ""), (", by relation", "_by_relation")):
            at = f"sets_{side}"
            told = " / ".join(f"{level} %" for level in levels)
            shown[f"{asked}{kept}: coverage at {told}"] = ([f"{at}.coverage_{level}{label}" for level in levels], 3)
            shown[f"{asked}{kept}: mean size"] = ([f"{at}.size_{level}{label}" for level in levels], 0)
            shown[f"{asked}{kept}: median size"] = ([f"{at}.median_{level}{label}" for level in levels], 0)
        shown[f"{asked}: worst covered relations at 90 %"] = ([f"{at}_worst.worst_{each}" for each in (1, 2, 3)], 3)
    return shown


def main() -> None:
    """Measure what is not there yet, and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=["nl27k", "ppi5k", "cn15k"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[201])
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--parts", nargs="+", default=["kinds", "uncertainty"], choices=["kinds", "uncertainty"])
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    load_compiler()
    trusted = {}
    for graph in asked.graphs:
        for seed in asked.seeds:
            run = trained(graph, seed, asked.plain, asked.out)
            for part in asked.parts:
                kept = asked.out / f"{run.name}-{part}.json"
                if not kept.is_file():
                    measured = by_kind(run, seed) if part == "kinds" else uncertainty(run, seed)
                    write_atomically(kept, json.dumps(measured, indent=1).encode())
                found = json.loads(kept.read_text())
                if part == "kinds":
                    show_kinds(run.name, found)
                else:
                    trusted[run.name] = found
    if trusted:
        show_uncertainty(trusted)


if __name__ == "__main__":
    main()
