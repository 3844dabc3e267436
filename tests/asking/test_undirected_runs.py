"""A STRING-like graph said in one direction, in both, and in any order is the same graph in everything a user does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.cli.asking import answered

from ukge.asking import Predictor
from ukge.evidence import Evidence
from ukge.runs.directory import Run
from ukge.runs.learnt import Learnt

TRAINING = ["--epochs", 4, "--every", 2, "--batch-size", 256, "--leak-safe"]
SETTINGS = ["--dim", 16, "--lr", 0.02, "--l2", 0.001, *TRAINING, "-q"]


def interactions() -> list[tuple[str, str, float]]:
    """Pairs of proteins that are alike, with how much, each once and in alphabetical order."""
    rng = np.random.default_rng(5)
    kind = rng.random((150, 4))
    pairs = {tuple(sorted(rng.choice(150, 2, replace=False).tolist())) for _ in range(1_800)}
    return [(f"P{a:03}", f"P{b:03}", round(float(kind[a] @ kind[b]) / 4, 3)) for a, b in sorted(pairs)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs on the same graph, however a file says it; with a directed relation beside."""
    home, once = tmp_path_factory.mktemp("string"), interactions()
    rng = np.random.default_rng(6)
    regulates = [(f"P{a:03}", f"P{b:03}", 0.7) for a, b in rng.integers(150, size=(200, 2)) if a != b]
    both = [fact for a, b, c in once for fact in ((b, a, c), (a, b, c))]
    said = {"once": once, "both": both, "shuffled": [both[at] for at in rng.permutation(len(both))]}
    found = {}
    for name, facts in said.items():
        file = home / f"{name}.tsv"
        rows = [f"{a}\tinteracts\t{b}\t{c}\n" for a, b, c in facts] + [
            f"{a}\tregulates\t{b}\t{c}\n" for a, b, c in regulates
        ]
        file.write_text("".join(rows), encoding="utf-8")
        found[name] = home / name
        answered("train", file, "--out", found[name], *SETTINGS)
    for run in (found["once"], found["both"]):
        few: dict[str, Any] = {"iterations": 5, "expectation_trees": 5, "folds": 2, "rank_queries": 40}
        Evidence.fit(run, Run.open(run).dataset(), **few).save(run)
    return found


def sizes(run: Path) -> dict[str, int]:
    return {name: len(part) for name, part in Predictor.open(run).dataset.parts.items()}


def test_split_and_metrics_are_the_same(runs: dict[str, Path]) -> None:
    """It was cut, counted and learnt twice where a file has both directions."""
    assert Run(runs["once"]).data.undirected == ("interacts",)
    expected = json.loads(answered("evaluate", runs["once"], "--replicates", 0, "--protocol", "clean", "--json").stdout)
    for name in ("both", "shuffled"):
        assert sizes(runs[name]) == sizes(runs["once"])
        assert Run(runs[name]).data.train == Run(runs["once"]).data.train
        told: dict[str, Any] = json.loads(
            answered("evaluate", runs[name], "--replicates", 0, "--protocol", "clean", "--json").stdout
        )
        assert [row["figures"] for row in told["rows"]] == [row["figures"] for row in expected["rows"]]


@pytest.mark.parametrize("pair", [("once", "both"), ("once", "shuffled")])
def test_completions_are_the_same_and_no_mirrors(runs: dict[str, Path], pair: tuple[str, str]) -> None:
    """Mirrors of known facts were offered as discoveries."""
    opened, other = (Predictor.open(runs[name]) for name in pair)
    one = opened
    if pair[1] == "shuffled":  # which has no evidence: ask the models
        one = Predictor(lambda: opened.dataset, learnt=Learnt.load(Run(runs["once"])))
    found, same = (each.complete(k=50, min_confidence=0.0) for each in (one, other))
    assert len(found) == 50
    assert [fact[:3] for fact in found] == [fact[:3] for fact in same]
    assert found.confidence == pytest.approx(same.confidence)
    known = {fact[:3] for fact in one.dataset.whole()}
    for fact in found:
        assert (fact.head, fact.relation, fact.tail) not in known
        assert fact.relation != "interacts" or (fact.tail, fact.relation, fact.head) not in known


@pytest.mark.parametrize("name", ["once", "shuffled"])
def test_both_directions_have_one_confidence_and_one_ranking(runs: dict[str, Path], name: str) -> None:
    """(TP53, WPH21) had 0.29, and (WPH21, TP53) 0.48."""
    predictor = Predictor.open(runs[name])
    facts = [(f"P{a:03}", "interacts", f"P{b:03}") for a, b in [(3, 90), (17, 4), (101, 102)]]
    facts += [fact[:3] for fact in predictor.dataset.train.where(relation="interacts")[:5]]
    mirrors = [(tail, relation, head) for head, relation, tail in facts]
    assert predictor.predict(facts).tolist() == predictor.predict(mirrors).tolist()
    tails = predictor.rank("P003", "interacts", k=20)
    heads = predictor.rank(relation="interacts", tail="P003", k=20)
    assert tails == heads
    told = predictor.explain(*facts[3])
    turned = predictor.explain(*mirrors[3])
    assert (told.confidence, told.observed) == (turned.confidence, turned.observed)
    assert not any(quoted[:3] in (facts[3], mirrors[3]) for reason in told.reasons for quoted in reason.facts)
