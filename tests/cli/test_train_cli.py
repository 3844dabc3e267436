"""`ukge train` as a user meets it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from ukge.cli import app
from ukge.cli.console import ExitCode, as_flag
from ukge.errors import ConfigError, DataError, RunError
from ukge.graph.synthetic import generate
from ukge.graph.writers import write
from ukge.learning.estimator import UKGE
from ukge.settings.config import knobs, read_config

QUICK = ["--dim", "8", "--epochs", "4", "--every", "2", "--batch-size", "256"]
runner = CliRunner()


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("facts") / "world.tsv"
    write(generate(n_entities=300, n_facts=3000, seed=1).graph, path)
    return path


def test_train_a_file_and_load_the_run(facts: Path, tmp_path: Path) -> None:
    arguments = ["train", str(facts), "--out", str(tmp_path / "run"), "--json", "--lr", "0.02", *QUICK]
    result = runner.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["run"] == str(tmp_path / "run")
    assert (told["metric"], told["epochs"], told["collapsed"]) == ("mse", 4, None)
    assert 0 < told["best"] < 1
    assert told["still_learning"]
    flat = " ".join(result.stderr.split())
    assert "validation mse was still falling when training ended after 4 epochs; more may help: --epochs 8" in flat
    assert read_config(tmp_path / "run" / "config.toml").optimiser.lr == 0.02
    model = UKGE.load(tmp_path / "run")
    assert model.trained is not None
    assert model.trained.best == told["best"]


def test_flags_go_before_the_file_and_the_file_before_the_preset(facts: Path, tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text("[optimiser]\nlr = 0.03\nbatch_size = 300\n[model]\ndim = 64\n", encoding="utf-8")
    out = tmp_path / "run"
    arguments = ["train", str(facts), "--out", str(out), "--config", str(config), "--preset", "paper", *QUICK]
    assert runner.invoke(app, arguments).exit_code == 0
    used = read_config(out / "config.toml")
    assert (used.model.dim, used.optimiser.batch_size) == (8, 256)  # flags
    assert used.optimiser.lr == 0.03  # file
    assert used.objective.l2 == 0.005  # preset


def test_resume_needs_no_more_than_the_run(facts: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert runner.invoke(app, ["train", str(facts), "--out", str(out), *QUICK]).exit_code == 0
    before = (out / "weights.safetensors").read_bytes()
    (out / "weights.safetensors").unlink()
    with pytest.raises(RunError, match=r"weights\.safetensors is missing"):
        runner.invoke(app, ["train", "--resume", str(out)], catch_exceptions=False)
    (out / "weights.safetensors").write_bytes(before)
    result = runner.invoke(app, ["train", "--resume", str(out), "--json"])
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["epochs"] == 4
    assert (out / "weights.safetensors").read_bytes() == before


def test_a_training_that_learnt_nothing_ends_with_a_code_of_its_own(facts: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    dead = ["--dim", "8", "--epochs", "40", "--batch-size", "128", "--lr", "0.01", "--l2", "2", "--quiet"]
    result = runner.invoke(app, ["train", str(facts), "--out", str(out), *dead])
    assert result.exit_code == ExitCode.DEAD
    assert "the run is in" in result.stdout.replace("\n", " ")
    what, hint = result.stderr.strip().splitlines()[-2:]
    assert re.match(r"Nothing learnt: the predictions of 210 validation facts .* between 0\.\d+ and 0\.\d+: ", what)
    assert what.endswith("so --l2 2 is too high")
    assert hint == "What to do: Train again with a tenth of it: --l2 0.2."
    again = runner.invoke(app, ["train", "--resume", str(out), "--json", "--quiet"])
    assert again.exit_code == ExitCode.DEAD
    told = json.loads(again.stdout)["collapsed"]
    assert told == {
        "what": what.removeprefix("Nothing learnt: "),
        "hint": hint.removeprefix("What to do: "),
        "harmless": False,
    }


def test_one_number_for_data_of_one_number_is_a_note(tmp_path: Path) -> None:
    world = generate(n_entities=200, n_facts=1000, seed=1).graph
    write(world.with_confidence(np.full(1000, 0.9)), tmp_path / "sure.tsv")
    settings = ["--model", "ukge-n", "--dim", "8", "--epochs", "60", "--batch-size", "128", "--lr", "0.05", "--l2", "2"]
    result = runner.invoke(app, ["train", str(tmp_path / "sure.tsv"), "--out", str(tmp_path / "run"), *settings])
    assert result.exit_code == 0, result.output
    assert "Note: the predictions" in result.stderr
    assert "there is nothing else to learn. Nothing has to be done." in result.stderr


def test_a_run_is_replaced_only_by_force(facts: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = ["train", str(facts), "--out", str(out), *QUICK]
    assert runner.invoke(app, command).exit_code == 0
    with pytest.raises(RunError) as caught:
        runner.invoke(app, command, catch_exceptions=False)
    what, hint = caught.value.worded(as_flag)
    assert "exists and is not empty" in what
    assert hint is not None
    assert "--force" in hint
    assert f"ukge train --resume {out}" in hint
    before = (out / "manifest.json").read_bytes()
    with pytest.raises(ConfigError):
        runner.invoke(app, ["train", str(facts), "--relation", " ", *command[2:], "--force"], catch_exceptions=False)
    assert (out / "manifest.json").read_bytes() == before, "a command that fails removes nothing"
    assert runner.invoke(app, [*command, "--force", "--lr", "0.07"]).exit_code == 0
    assert read_config(out / "config.toml").optimiser.lr == 0.07
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "notes.txt").write_text("mine")
    with pytest.raises(RunError):
        runner.invoke(app, ["train", str(facts), "--out", str(mine), *QUICK, "--force"], catch_exceptions=False)
    assert (mine / "notes.txt").read_text() == "mine"


def test_a_wrong_setting_is_called_by_its_flag() -> None:
    for flag, value, told in (("--tau", "-1", "--tau must be"), ("--batch-size", "0", "--batch-size must be")):
        error = runner.invoke(app, ["train", "synthetic", flag, value]).exception
        assert isinstance(error, ConfigError)
        assert error.worded(as_flag)[0].startswith(told)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (["train"], ConfigError, "what to train on is missing"),
        (["train", "synthetic", "--model", "transformer"], ConfigError, "unknown model 'transformer'"),
        (["train", "synthetic", "--scorer", "distmul"], ConfigError, "Did you mean 'distmult'"),
        (["train", "synthetic", "--metric", "auc"], ConfigError, "unknown metric 'auc'"),
        (["train", "synthetic", "--preset", "best"], ConfigError, "unknown preset 'best'"),
        (["train", "synthetic", "--dim", "0"], ConfigError, "dim must be at least 1"),
        (["train", "synthetic", "--engine", "fused", "--sampler", "shared"], ConfigError, "engine='torch'"),
        (["train", "no-such-file.tsv"], DataError, "no-such-file.tsv"),
        (["train", "--resume", "nowhere"], RunError, "nowhere is not a run directory"),
        (["train", "synthetic", "--resume", "nowhere"], ConfigError, "Leave out DATA"),
    ],
)
def test_mistakes_are_told(
    arguments: list[str],
    error: type[Exception],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error) as caught:
        runner.invoke(app, arguments, catch_exceptions=False)
    assert message in str(caught.value)
    assert not (tmp_path / "runs").exists() or not any((tmp_path / "runs").rglob("weights*"))


def test_every_setting_is_a_flag() -> None:
    shown = runner.invoke(app, ["train", "--help"], env={"COLUMNS": "200"}).stdout
    for knob in knobs():
        assert f"--{knob.name.replace('_', '-')}" in shown


def test_tensorboard_on_request(facts: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert runner.invoke(app, ["train", str(facts), "--out", str(out), "--tensorboard", *QUICK]).exit_code == 0
    assert list((out / "tensorboard").glob("events.out.tfevents*"))
