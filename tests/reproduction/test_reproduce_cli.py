"""`ukge reproduce` on a small data set: the whole way, again, after a kill, and with other settings."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from ukge.cli import app
from ukge.errors import ConfigError, RunError
from ukge.learning.train import EpochEvent
from ukge.reproduction.reproduce import Request, Watcher, reproduce
from ukge.runs.directory import Run

QUICK = ["--dim", "8", "--every", "1", "--batch-size", "256", "--threads", "1", "--quiet"]
SETTINGS = {"dim": 8, "every": 1, "batch_size": 256, "threads": 1, "epochs": 2}
MODELS = ("ukge-p", "ukge-rect")
KILLER = """
import os, sys
from pathlib import Path
from ukge.reproduction.reproduce import Request, Watcher, reproduce

class Killer(Watcher):
    def on_epoch(self, event):
        if event.epoch == 2:
            os.kill(os.getpid(), 9)

data, out = sys.argv[1], Path(sys.argv[2])
"""
runner = CliRunner()


def arguments(world: Path, out: Path, *more: str) -> list[str]:
    return ["reproduce", str(world), "--models", ",".join(MODELS), "--out", str(out), *QUICK, *more]


@pytest.fixture(scope="module")
def done(world: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which everything was reproduced with two seeds."""
    out = tmp_path_factory.mktemp("out") / "results"
    result = runner.invoke(
        app,
        arguments(world, out, "--seeds", "2", "--epochs", "2", "--parts", "paper,rules,clean"),
        catch_exceptions=False,
    )
    assert result.exit_code == 0, result.output
    for title in ("Graphs", "Fact ranking", "Strong facts", "Case study", "Do rules help?", "under `clean`"):
        assert title in result.stdout
    return out


def test_it_leaves_runs_figures_and_a_page(done: Path, world: Path) -> None:
    runs = sorted(str(path.parent.relative_to(done / "runs")) for path in done.rglob("manifest.json"))
    labels = ("ukge-p", "ukge-p-clean", "ukge-rect", "ukge-rect-clean", "ukge-rect-mined")
    assert runs == sorted(f"world/{label}/seed-{seed}" for label in labels for seed in (0, 1))
    figures = json.loads((done / "world-ukge-rect-mined-seed-1.json").read_text(encoding="utf-8"))
    assert (figures["seed"], figures["rules"], figures["protocol"]) == (1, "mined", "paper")
    assert figures["settings"]["model"]["dim"] == 8
    assert 0 < figures["figures"]["confidence"]["mse"] < 1
    assert str(world.parent) not in (done / "results.md").read_text(encoding="utf-8")
    assert Run(done / "runs/world/ukge-rect-clean/seed-1").data.name.endswith("leak-safe")
    evaluated = runner.invoke(
        app, ["evaluate", str(done / "runs/world/ukge-rect/seed-0"), "--json", "--replicates", "0", "--tau", "0.85"]
    )
    theirs = json.loads(evaluated.stdout)["rows"][-1]["figures"]
    ours = json.loads((done / "world-ukge-rect-seed-0.json").read_text(encoding="utf-8"))["figures"]
    assert {t: {m: f["value"] for m, f in each.items()} for t, each in theirs.items()} == ours


class Recorder(Watcher):
    """Remembers the epochs; may raise after some of them, as a user who stops the command."""

    def __init__(self, stop_after: int = -1) -> None:
        self.epochs: list[int] = []
        self.news: list[str] = []
        self.stop_after = stop_after

    def on_epoch(self, event: EpochEvent) -> None:
        self.epochs.append(event.epoch)
        if len(self.epochs) == self.stop_after:
            raise KeyboardInterrupt

    def on_news(self, text: str) -> None:
        self.news.append(text)


def request(world: Path, out: Path, **settings: object) -> Request:
    return Request((str(world),), MODELS, 2, ("paper", "rules", "clean"), out, None, {**SETTINGS, **settings})


def test_a_second_call_trains_nothing_and_says_the_same(done: Path, world: Path) -> None:
    before = {path: path.read_bytes() for path in done.rglob("*") if path.is_file() and path.name != ".lock"}
    watch = Recorder()
    found = reproduce(request(world, done), watch)
    assert watch.epochs == []
    assert set(found.done.values()) == {"kept"}
    assert {path: path.read_bytes() for path in before} == before


def test_figures_that_are_missing_or_damaged_are_measured_again(done: Path, world: Path) -> None:
    missing, damaged = (done / f"world-ukge-p-seed-{seed}.json" for seed in (0, 1))
    before = missing.read_bytes(), damaged.read_bytes()
    missing.unlink()
    damaged.write_bytes(before[1][: len(before[1]) // 2])
    watch = Recorder()
    found = reproduce(request(world, done), watch)
    assert watch.epochs == []
    assert sorted(found.done.values()) == ["evaluated"] * 2 + ["kept"] * 8
    assert (missing.read_bytes(), damaged.read_bytes()) == before


def test_a_stopped_call_is_gone_on_with(world: Path, tmp_path: Path) -> None:
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    asked = {"epochs": 4, "checkpoint_seconds": 0.0}
    plain = Request((str(world),), ("ukge-p",), 2, ("paper",), whole, None, {**SETTINGS, **asked})
    reproduce(plain)
    cut = Request((str(world),), ("ukge-p",), 2, ("paper",), stopped, None, {**SETTINGS, **asked})
    with pytest.raises(KeyboardInterrupt):
        reproduce(cut, Recorder(stop_after=7))  # the third epoch of the second seed
    watch = Recorder()
    found = reproduce(cut, watch)
    assert list(found.done.values()) == ["kept", "resumed"]
    assert watch.epochs == [3, 4]
    for name in ("world-ukge-p-seed-0.json", "world-ukge-p-seed-1.json"):
        ours, theirs = (json.loads((path / name).read_text(encoding="utf-8")) for path in (stopped, whole))
        assert (ours["weights"], ours["figures"]) == (theirs["weights"], theirs["figures"])


def test_a_killed_process_leaves_nothing_that_stops_the_next(world: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = f"{KILLER}\nreproduce(Request((data,), ('ukge-p',), 1, ('paper',), out, None, {SETTINGS}), Killer())"
    killed = subprocess.run([sys.executable, "-c", script, str(world), str(out)], check=False, timeout=300)
    assert killed.returncode == -9
    found = reproduce(Request((str(world),), ("ukge-p",), 1, ("paper",), out, None, SETTINGS))
    assert list(found.done.values()) == ["resumed"]
    assert len(found.graphs[0].outcomes) == 1


def test_other_settings_train_anew_and_keep_the_old_run(world: Path, tmp_path: Path) -> None:
    asked = Request((str(world),), ("ukge-p",), 1, ("paper",), tmp_path, None, SETTINGS)
    reproduce(asked)
    watch = Recorder()
    found = reproduce(
        Request((str(world),), ("ukge-p",), 1, ("paper",), tmp_path, None, {**SETTINGS, "lr": 0.02}), watch
    )
    assert list(found.done.values()) == ["trained"]
    assert "lr 0.001 → 0.02" in watch.news[0]
    assert Run.open(tmp_path / "runs/world/ukge-p/seed-0~1").config.optimiser.lr == 0.001
    (tmp_path / "runs/world/ukge-p/seed-0/weights.safetensors").write_bytes(b"x")
    assert list(reproduce(asked).done.values()) == ["trained"]  # what is damaged is set aside as well


def test_without_training_what_is_there_is_shown(done: Path, world: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    more = ["--epochs", "2", "--seeds", "3", "--no-train", "--page", str(page), "--json"]
    result = runner.invoke(app, arguments(world, done, *more), catch_exceptions=False)
    assert result.exit_code == 0
    assert {each["seed"] for each in json.loads(result.stdout)} == {0, 1}
    assert "with seeds 0 to 1" in page.read_text(encoding="utf-8")


def test_one_failure_does_not_stop_the_others(world: Path, tmp_path: Path) -> None:
    settings = tmp_path / "settings"
    settings.mkdir()
    wild = "[ukge-rect]\ninit_scale = 1e30\n[ukge-p]\ninit_scale = 0.3\n"
    (settings / "world.toml").write_text(wild, encoding="utf-8")
    out = tmp_path / "out"
    more = ["--seeds", "1", "--epochs", "2", "--parts", "paper", "--settings", str(settings), "--engine", "torch"]
    more += ["--models", "ukge-rect,ukge-p"]
    result = runner.invoke(app, arguments(world, out, *more), catch_exceptions=False)
    assert result.exit_code == 1
    assert not (out / "world-ukge-rect-seed-0.json").exists()
    assert (out / "world-ukge-p-seed-0.json").is_file()
    assert "training diverged" in (out / "results.md").read_text(encoding="utf-8")


def test_mistakes_are_told(world: Path, tmp_path: Path) -> None:
    for more, error, message in (
        (["--models", "ukge-rekt"], ConfigError, "Did you mean 'ukge-rect'"),
        (["--parts", "papers"], ConfigError, "unknown part 'papers'"),
        (["--settings", str(tmp_path / "none")], ConfigError, "is not a directory of settings"),
        ([str(world)], ConfigError, "called the same"),
    ):
        with pytest.raises(error) as caught:
            runner.invoke(app, arguments(world, tmp_path / "o", *more), catch_exceptions=False)
        assert message in str(caught.value)
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(RunError, match="is a file"):
        runner.invoke(app, arguments(world, tmp_path / "file"), catch_exceptions=False)
