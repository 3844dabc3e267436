"""The search: on validation data only, pruned, resumable, and never stopped by one bad trial."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import ukge.tune
from ukge.cli import app
from ukge.config import read_config
from ukge.engines.base import Parameters
from ukge.errors import RunError
from ukge.graph.dataset import Dataset
from ukge.graph.split import split
from ukge.graph.synthetic import generate
from ukge.train import EpochEvent, Trained
from ukge.tune import PAPER_GRID, spaces, tune

QUICK: dict[str, Any] = {"epochs": 2, "every": 1, "threads": 1, "dim": 8}


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return split(generate(n_entities=300, n_facts=3000, seed=1).graph, seed=0, name="world")


def test_a_study_goes_on_where_it_stopped(dataset: Dataset, tmp_path: Path) -> None:
    seen: list[int] = []
    first = tune(
        dataset, "ukge-rect", directory=tmp_path, trials=2, settings=QUICK, on_trial=lambda t: seen.append(t.number)
    )
    second = tune(
        dataset, "ukge-rect", directory=tmp_path, trials=4, settings=QUICK, on_trial=lambda t: seen.append(t.number)
    )
    assert seen == [0, 1, 2, 3]
    assert second.trials[:2] == first.trials
    tried = {tuple(sorted(trial.settings.items())) for trial in second.trials}
    assert len(tried) == 4
    for trial in second.trials:
        assert all(trial.settings[name] in values for name, values in PAPER_GRID.items())
    best = second.best_trial
    assert best is not None
    assert best.value == min(t.value for t in second.trials if t.state == "complete" and t.value is not None)
    kept = read_config(tmp_path / "best.toml")
    assert kept == second.best
    assert kept.model.dim == 8  # fixed settings stay fixed
    assert kept.optimiser.lr == best.settings["lr"]


def test_other_arguments_are_refused(dataset: Dataset, tmp_path: Path) -> None:
    tune(dataset, "ukge-rect", directory=tmp_path, trials=1, settings=QUICK)
    with pytest.raises(RunError, match="is a study of another model: ukge-rect"):
        tune(dataset, "ukge-logi", directory=tmp_path, trials=1, settings=QUICK)
    with pytest.raises(RunError, match="is a study of another space"):
        tune(dataset, "ukge-rect", directory=tmp_path, space="wide", trials=1, settings=QUICK)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    with pytest.raises(RunError, match="is not empty and holds no study"):
        tune(dataset, "ukge-rect", directory=tmp_path / "other", trials=1)


def test_a_diverged_trial_is_noted_and_the_search_goes_on(dataset: Dataset, tmp_path: Path) -> None:
    bad = {**QUICK, "lr": 1e30, "optimiser": "adagrad"}
    result = tune(dataset, "ukge-rect", directory=tmp_path, trials=2, settings=bad)
    assert [trial.state for trial in result.trials] == ["fail", "fail"]
    assert "diverged" in str(result.trials[0].why)
    assert result.best is None


def test_hopeless_trials_are_pruned(dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = iter([0.1, 0.1, 0.1, 0.1, 0.9, 0.9])
    ran: list[int] = []

    def pretend(*facts: Any, callbacks: Any, **_: Any) -> Trained:
        value = next(values)
        for epoch in range(1, 6):
            event = EpochEvent(epoch, 5, {}, 0.0, 1, 1.0, "mse", value, value, epoch)
            for callback in callbacks:
                callback(event)
            ran.append(epoch)
        nothing = np.zeros((0, 1), np.float32)
        return Trained(Parameters(nothing, nothing), facts[2], "mse", value, 5, 5, 0.0)

    monkeypatch.setattr(ukge.tune, "train", pretend)
    result = tune(dataset, "ukge-rect", directory=tmp_path, trials=6, settings={"every": 1, "epochs": 5})
    assert [trial.state for trial in result.trials] == ["complete"] * 4 + ["pruned"] * 2
    assert len(ran) < 6 * 5


def test_both_spaces_propose_settings_that_exist(dataset: Dataset, tmp_path: Path) -> None:
    assert spaces.names() == ["paper", "wide"]
    result = tune(dataset, "ukge-logi", directory=tmp_path, space="wide", trials=2, settings=QUICK)
    assert {trial.state for trial in result.trials} == {"complete"}
    assert result.trials[0].settings != result.trials[1].settings


def test_the_command_prints_a_table_and_json(tmp_path: Path) -> None:
    flags = ["--epochs", "1", "--every", "1", "--dim", "8", "--out", str(tmp_path / "study"), "--trials", "1"]
    shown = CliRunner().invoke(app, ["tune", "synthetic", *flags])
    assert shown.exit_code == 0, shown.output
    assert "best.toml" in shown.stdout
    told = json.loads(CliRunner().invoke(app, ["tune", "synthetic", *flags, "--json"]).stdout)
    assert told["metric"] == "mse"
    assert len(told["trials"]) == 1
    assert told["best"]["model"]["dim"] == 8
