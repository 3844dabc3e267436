"""`ukge fit`: from facts to a judged run in one call, that goes on where it was stopped."""

from __future__ import annotations

import functools
import importlib.util
import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ukge import Predictor, fit, write
from ukge.cli import run
from ukge.errors import ConfigError, RunError
from ukge.evaluation.evaluate import measure, prepare
from ukge.evaluation.metric import Bootstrap
from ukge.evaluation.protocols import Settings
from ukge.evaluation.tables import NO_MODEL
from ukge.evidence import Evidence, EvidenceSettings, fitting
from ukge.graph.dataset import Dataset
from ukge.graph.split import split
from ukge.graph.synthetic import generate
from ukge.learning import probe as probing
from ukge.learning.estimator import UKGE
from ukge.learning.probe import Candidate, Probe
from ukge.learning.tuning import tune as tuning
from ukge.pipeline import search as searching
from ukge.pipeline import stages as pipeline
from ukge.pipeline.final import all_known, as_long, evidence_over_all
from ukge.progress.steps import Steps
from ukge.runs.directory import Run

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
    monkeypatch.setattr(searching, "FEWEST_EPOCHS", 2)
    monkeypatch.setattr(searching, "TRAININGS", 1000)
    monkeypatch.setattr(pipeline, "EvidenceSettings", quick)
    monkeypatch.setattr(pipeline, "SECOND_AT_MOST", -1.0)


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
    monkeypatch.setattr(pipeline, "FEWEST_LEARNT", 200)

    heard: list[tuple[str, float]] = []
    found = fit(dataset, tmp_path / "run", minutes=MINUTES, tell=lambda step, share: heard.append((step, share)))
    assert found.trials
    assert "so that the time holds, evidence learnt from 200 of 375 validation facts" in found.notes()
    assert {errors.links for errors in Evidence.load(tmp_path / "run").errors_by_kind().values()} <= set(range(1, 201))
    shares = [share for _, share in heard]
    assert shares == sorted(shares)
    assert list(dict.fromkeys(step for step, _ in heard)) == [
        name for name in pipeline.STEPS if name not in (searching.PROBE, pipeline.SECOND)
    ]
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
    assert (again.trials, again.notes()) == (found.trials, found.notes())
    assert again.config == found.config


def test_all_facts_are_learnt_for_use_and_the_figures_stay_those_of_the_judged_run(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pipeline, "SECOND_AT_MOST", 1e9)
    write(dataset.whole(), tmp_path / "facts.tsv")
    command = ["fit", str(tmp_path / "facts.tsv"), "--out", str(tmp_path / "run"), "--minutes", str(MINUTES)]
    assert run(command) == 0
    judged = (tmp_path / "run" / "weights.safetensors").read_bytes()

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as killing:
        killing.setattr(pipeline, "evidence_over_all", killed)
        assert run([*command, "--final"]) == 130
    assert not (tmp_path / "run.final" / "evidence").exists()
    learnt = (tmp_path / "run.final" / "weights.safetensors").stat().st_mtime_ns
    assert "stopped; the same command, without --force, goes on from here" in capsys.readouterr().err

    assert run([*command, "--final"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert f"ukge rank {tmp_path / 'run.final'}" in told
    assert f"figures are of the run that was judged, {tmp_path / 'run'}" in told
    assert (tmp_path / "run.final" / "weights.safetensors").stat().st_mtime_ns == learnt
    assert (tmp_path / "run" / "weights.safetensors").read_bytes() == judged
    epochs = len(Run(tmp_path / "run.final").trace())
    assert epochs == Run(tmp_path / "run").manifest()["result"]["best_epoch"]

    assert run(["evaluate", str(tmp_path / "run.final")]) == 2
    assert f"whose figures stand for it: {tmp_path / 'run'}" in " ".join(capsys.readouterr().err.split())
    moved = (tmp_path / "run.final").rename(tmp_path / "elsewhere")
    for each in ("run", "run.search"):
        shutil.rmtree(tmp_path / each)
    assert repr(UKGE.load(moved)).endswith("; figures are of the run that was judged, run")
    evidence = Evidence.load(moved).check()
    assert len(evidence.known) == len(dataset.whole())
    models = evidence.features.backbones
    assert [each.name for each in models] == ["run", f"{models[1].scorer}-{models[1].link}"]
    assert models[0].scorer != models[1].scorer
    assert models[0].link != models[1].link
    held_out = Run(moved).dataset().train[-1]
    assert Predictor.open(moved).predict([held_out[:3]])


def test_a_head_of_the_judged_run_is_no_worse_over_more_facts(dataset: Dataset, tmp_path: Path) -> None:
    """Train and validation facts together, test facts to judge by: what `final` does, with something held out."""
    found = fit(dataset, tmp_path / "run", minutes=MINUTES)
    more = replace(all_known(replace(dataset, test=dataset.test[:0])), test=dataset.test)
    config = as_long(found.run)
    UKGE(config=config).fit(replace(more, test=more.test[:0]), out=tmp_path / "more", rules="none", progress=False)
    evidence = evidence_over_all(found.run, [tmp_path / "more"], more)
    plan = prepare(dataset, "clean", Settings())
    rows = measure(plan, {"judged": Evidence.load(found.run), "more": evidence}, Bootstrap(0))
    errors = {row.name: row.figure("confidence", "mse").value for row in rows}
    assert errors["more"] <= 1.02 * errors["judged"]


def test_other_facts_or_another_seed_are_told_in_plain_words(dataset: Dataset, tmp_path: Path) -> None:
    file, other, out = tmp_path / "facts.tsv", tmp_path / "other.tsv", tmp_path / "run"
    write(dataset.whole()[:300], file)
    write(dataset.whole()[:300], other)
    fit(file, out, minutes=MINUTES)
    for given, seed, told in (
        (other, 0, f"{out} was made of {file}, and not of {other}"),
        (file, 1, f"{out} was made of {file} with seed 0, not 1"),
    ):
        with pytest.raises(RunError, match=re.escape(told)) as refused:
            fit(given, out, minutes=MINUTES, seed=seed)
        assert "overwrite=True" in str(refused.value.hint)
    write(dataset.whole()[:290], file)
    with pytest.raises(RunError, match="it had 300 facts, now there are 290"):
        fit(file, out, minutes=MINUTES)
    found = fit(file, out, minutes=MINUTES, overwrite=True)
    assert len(found.dataset.whole()) == 290
    again = fit(file, out, minutes=2 * MINUTES)
    assert any("was planned for 0.05 minutes" in each for each in again.notes())


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
    monkeypatch.setattr(searching, "probe", lambda *_: Probe("mse", (candidate,), candidate, candidate, 100.0))
    monkeypatch.setattr(searching, "TRAININGS", 3)
    search = searching.Search(dataset, tmp_path / "s", 30.0 * batches, Steps(None, pipeline.STEPS))
    base = search.base(0)
    assert (base.stopping.epochs, base.optimiser.lr, base.objective.l2) == (10, 0.01, 0.001)
    assert search.base(0) == base


def test_of_a_large_graph_some_parts_teach_what_evidence_means(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, seen = dataset.train, dict[str, Any]()

    def grown(_: str, columns: Any, confidence: Any, *__: Any, **___: Any) -> None:
        seen.update(columns=columns, confidence=confidence)

    features = fitting.gather(known)
    monkeypatch.setattr(fitting, "MOST", 150)  # a tenth of the facts, 193, are enough
    monkeypatch.setattr(fitting, "grow", grown)
    fitting.with_expectation(features, EvidenceSettings())
    part = fitting.parts_of_facts(features.index, fitting.PARTS, np.random.default_rng(0))
    asked = known[np.flatnonzero(part == 0)]
    others = fitting.gather(known[np.flatnonzero(part != 0)])
    own = replace(features, index=others.index, tables=others.tables).columns(asked.head, asked.relation, asked.tail)
    assert len(seen["columns"]) == 150
    rows = {row.tobytes() for row in np.column_stack([own, asked.confidence.astype(np.float32)])}
    assert {row.tobytes() for row in np.column_stack([seen["columns"], seen["confidence"].astype(np.float32)])} <= rows


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_directory_of_somebody_else_is_not_removed(dataset: Dataset, tmp_path: Path, overwrite: bool) -> None:
    letter = tmp_path / "run.search" / "letter.txt"
    letter.parent.mkdir()
    letter.write_text("dear all", encoding="utf-8")
    with pytest.raises(RunError, match=r"run\.search is in the way, and no fit made it"):
        fit(dataset, tmp_path / "run", minutes=MINUTES, overwrite=overwrite)
    assert letter.read_text(encoding="utf-8") == "dear all"
