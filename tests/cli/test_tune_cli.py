"""`ukge tune`: what it prints, what it leaves behind, and that the same command goes on after a kill."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ukge.cli import app
from ukge.cli.console import ExitCode
from ukge.errors import UkgeError
from ukge.graph.synthetic import generate
from ukge.graph.writers import write

FIXED = ("--dim", "8", "--batch-size", "256", "--epochs", "4", "--every", "2", "--threads", "1", "--rules", "none")


def run(*arguments: str | Path) -> Result:
    """Run a command in this process; an error of ours is raised, as `main` would catch it."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if isinstance(result.exception, UkgeError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result


def found(result: Result) -> dict[str, Any]:
    printed: dict[str, Any] = json.loads(result.stdout)
    return printed


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "facts.tsv"
    write(generate(n_entities=200, n_facts=1000, seed=1).graph, path)
    return path


def test_a_table_of_trials_and_settings_for_train(facts: Path, tmp_path: Path) -> None:
    result = run("tune", facts, "--out", tmp_path / "study", *FIXED)
    for word in ("3 trials", "state", "mse", "epoch", "lr", "complete", "0.001", "0.005", "0.01", "best.toml"):
        assert word in result.stdout
    assert "trial 0 complete" in result.stderr
    best = tmp_path / "study" / "best.toml"
    trained = found(
        run("train", facts, "--config", best, "--rules", "none", "--out", tmp_path / "run", "--json", "--quiet")
    )
    again = found(run("tune", facts, "--out", tmp_path / "study", *FIXED, "--json", "--quiet"))
    assert trained["best"] == again["best"]["value"]
    assert trained["best_epoch"] == again["best"]["epoch"]


def test_json_holds_every_trial(facts: Path, tmp_path: Path) -> None:
    result = run("tune", facts, "--out", tmp_path, *FIXED, "--space", "wide", "--trials", "2", "--json", "--quiet")
    printed = found(result)
    assert result.stderr == ""
    assert printed["study"] == str(tmp_path)
    assert (printed["model"], printed["metric"]) == ("ukge-rect", "mse")
    assert [trial["number"] for trial in printed["trials"]] == [0, 1]
    for trial in printed["trials"]:
        assert trial["state"] == "complete"
        assert trial["epochs"] == 4
        assert set(trial["settings"]) == {"lr", "l2", "init_scale", "negatives", "by_degree", "negative_weight"}
    assert printed["best"] in printed["trials"]


def test_the_metric_is_a_flag(facts: Path, tmp_path: Path) -> None:
    printed = found(
        run("tune", facts, "--out", tmp_path, *FIXED, "--metric", "ndcg", "--trials", "2", "--json", "--quiet")
    )
    assert printed["metric"] == "ndcg"
    assert printed["best"]["value"] == max(trial["value"] for trial in printed["trials"])


@pytest.mark.parametrize(
    ("more", "said"),
    [(("--space", "huge"), "unknown search space"), (("--pruner", "x"), "unknown pruner"), (("--lr", "1"), "nothing")],
)
def test_mistakes_are_said(facts: Path, tmp_path: Path, more: tuple[str, ...], said: str) -> None:
    with pytest.raises(UkgeError, match=said):
        run("tune", facts, "--out", tmp_path / "study", *FIXED, *more)


def test_help_names_what_can_be_set() -> None:
    printed = CliRunner().invoke(app, ["tune", "--help"], env={"COLUMNS": "200"}).output
    for word in ("--trials", "--timeout", "--space", "--pruner", "--metric", "--dim", "--json", "--out"):
        assert word in printed


def test_a_search_killed_at_any_moment_goes_on_with_the_same_command(facts: Path, tmp_path: Path) -> None:
    settings = ("--dim", "8", "--epochs", "30", "--every", "1", "--patience", "30", "--threads", "1", "--rules", "none")
    command = ["tune", str(facts), *settings, "--space", "wide", "--trials", "4", "--json", "--quiet"]
    whole = found(run(*command, "--out", tmp_path / "whole"))
    journal = tmp_path / "cut" / "journal.log"
    code = "from ukge.cli import main; main()"
    process = subprocess.Popen(
        [sys.executable, "-c", code, *command, "--out", str(tmp_path / "cut")], stdout=subprocess.DEVNULL
    )
    try:
        while not journal.exists() or journal.read_bytes().count(b"\n") < 60:
            assert process.poll() is None
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    gone_on = found(run(*command, "--out", tmp_path / "cut"))

    def ended(printed: dict[str, Any]) -> list[tuple[Any, ...]]:
        trials = [trial for trial in printed["trials"] if trial["state"] != "interrupted"]
        return [(trial["state"], trial["value"], trial["epoch"], trial["settings"]) for trial in trials]

    assert ended(gone_on) == ended(whole)
    assert [trial["state"] for trial in gone_on["trials"]].count("interrupted") <= 1
    assert (tmp_path / "cut" / "best.toml").read_bytes() == (tmp_path / "whole" / "best.toml").read_bytes()


def test_a_search_that_finds_nothing_alive_says_so(facts: Path, tmp_path: Path) -> None:
    dead = ("--dim", "8", "--batch-size", "64", "--epochs", "60", "--rules", "none", "--l2", "5", "--lr", "0.01")
    arguments = ["tune", str(facts), "--out", str(tmp_path / "study"), "--threads", "1", "--space", "near", *dead]
    result = CliRunner().invoke(app, [*arguments, "--negative-weight", "1", "--quiet"])
    assert result.exit_code == ExitCode.DEAD
    shown = " ".join(result.stdout.split())
    assert re.search(r"trials 0, 1, 2\b.* dead: one prediction for everything: the embeddings have shrunk", shown)
    assert "Nothing learnt: no trial ended with more than one prediction for everything" in result.stderr
    assert not (tmp_path / "study" / "best.toml").exists()
