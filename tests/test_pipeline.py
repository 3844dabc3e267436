"""`ukge fit`: from facts to a judged run in one call, that goes on where it was stopped."""

from __future__ import annotations

import functools
import importlib.util
import shlex
from pathlib import Path
from typing import Any

import pytest

from ukge import Predictor, fit, write
from ukge.cli import run
from ukge.errors import ConfigError, RunError
from ukge.evaluation.tables import NO_MODEL
from ukge.evidence import EvidenceSettings
from ukge.graph.dataset import Dataset
from ukge.graph.split import split
from ukge.graph.synthetic import generate
from ukge.learning import probe as probing
from ukge.learning.estimator import UKGE
from ukge.learning.probe import Candidate, Probe
from ukge.learning.tuning import tune as tuning
from ukge.pipeline import stages as pipeline
from ukge.progress.steps import Steps

MINUTES = 0.05


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    graph = generate(seed=0).graph
    return split(graph[::8], val=0.15, seed=0, leak_safe=True)


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few steps, few epochs, few trials, few trees: what is tried is the way, not how good its end is."""
    quick = functools.partial(EvidenceSettings, iterations=5, expectation_trees=5, rank_queries=20)
    monkeypatch.setattr(probing, "RUNGS", ((20, 1),))
    monkeypatch.setattr(tuning, "TRIALS", 2)
    monkeypatch.setattr(pipeline, "FEWEST_EPOCHS", 2)
    monkeypatch.setattr(pipeline, "TRAININGS", 1000)
    monkeypatch.setattr(pipeline, "EvidenceSettings", quick)


def test_a_graph_becomes_a_judged_run_and_the_same_call_goes_on(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as stopping:
        stopping.setattr(UKGE, "fit", stop)
        with pytest.raises(KeyboardInterrupt):
            fit(dataset, tmp_path / "run", minutes=MINUTES)
    assert not (tmp_path / "run" / "manifest.json").exists()
    monkeypatch.setattr(tuning._Search, "_try", stop)  # no trial is begun again

    heard: list[tuple[str, float]] = []
    found = fit(dataset, tmp_path / "run", minutes=MINUTES, tell=lambda step, share: heard.append((step, share)))
    assert found.trials
    shares = [share for _, share in heard]
    assert shares == sorted(shares)
    assert list(dict.fromkeys(step for step, _ in heard)) == [name for name in pipeline.STEPS if name != pipeline.PROBE]
    names = [row.name for row in found.evaluation.rows]
    assert names[-2:] == ["model", "evidence"]
    assert all(row.trivial for row in found.evaluation.rows[:-2])
    assert found.best == "evidence"
    assert found.evaluation.protocol == "clean"
    assert found.page == tmp_path / "run" / "report" / "index.html"
    assert 1 <= len(found.sentences) <= 3
    assert Predictor.open(tmp_path / "run").predict([dataset.test[0][:3]])

    weights = (tmp_path / "run" / "weights.safetensors").stat().st_mtime_ns
    again = fit(dataset, tmp_path / "run", minutes=MINUTES)
    assert (tmp_path / "run" / "weights.safetensors").stat().st_mtime_ns == weights
    assert again.trials == found.trials
    assert again.config == found.config
    with pytest.raises(RunError, match="holds another search"):
        fit(dataset.whole(), tmp_path / "run", minutes=MINUTES, seed=1)


def test_the_command_without_optuna_lets_the_probe_choose_and_says_what_to_do_next(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known = importlib.util.find_spec
    hidden = ("optuna", "matplotlib")
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name in hidden else known(name))
    write(dataset.whole(), tmp_path / "facts.tsv")
    assert run(["fit", str(tmp_path / "facts.tsv"), "--out", str(tmp_path / "run"), "--minutes", "0.05"]) == 0
    told = capsys.readouterr()
    assert "pip install 'ukge[tune]'" in told.err
    words = " ".join(told.out.split())
    assert "a probe chose rate and λ; the best by validation: distmult, rectifier, dim 128" in words
    assert "the page: none without ukge[report]" in words
    table = [line for line in told.out.splitlines() if line.startswith((NO_MODEL, "model", "evidence"))]
    assert [len(line.split("  ")[0]) > 0 for line in table] == [True] * 3
    asked = next(line for line in told.out.splitlines() if line.startswith("  ukge rank"))
    assert run(shlex.split(asked)[1:]) == 0
    assert len(capsys.readouterr().out.splitlines()) > 1


def test_what_is_no_run_of_its_own_is_refused(dataset: Dataset, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "letter.txt").write_text("dear all", encoding="utf-8")
    with pytest.raises(RunError, match="exists and is not empty"):
        fit(dataset, tmp_path / "run", minutes=MINUTES)
    with pytest.raises(ConfigError, match="minutes"):
        fit(dataset, tmp_path / "other", minutes=0)


def test_a_large_graph_gets_fewer_epochs(dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    candidate = Candidate(0.01, 0.001, 100, 0.05)
    batches = -(-len(dataset.train) // 512)
    # One step takes a second; 30 seconds of search for 3 trainings leave 10 steps for each.
    monkeypatch.setattr(pipeline, "probe", lambda *_: Probe("mse", (candidate,), candidate, candidate, 100.0))
    monkeypatch.setattr(pipeline, "TRAININGS", 3)
    search = pipeline._Search(dataset, tmp_path / "s", 30.0 * batches, Steps(None, pipeline.STEPS))
    base = search._base(0)
    assert (base.stopping.epochs, base.optimiser.lr, base.objective.l2) == (10, 0.01, 0.001)
    assert search._base(0) == base
