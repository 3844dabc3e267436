"""`ukge train --distributed`: as good as one process, a killed rank, another number of ranks, the export."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file
from tests.distributed.launching import environment, run_ranks, torchrun, ukge

from ukge import cli
from ukge.cli.console import ExitCode
from ukge.distributed.checkpoints import last_checkpoint
from ukge.distributed.prepare import PrepareSettings, prepare
from ukge.errors import RunError
from ukge.graph.catalogue import open_dataset, save_dataset
from ukge.graph.split import split
from ukge.graph.synthetic import generate, stream_parquet
from ukge.graph.uncertain import concat
from ukge.learning.estimator import UKGE
from ukge.runs.directory import Run
from ukge.runs.learnt import open_run

EPOCHS = 20
SETTINGS: dict[str, Any] = {
    "dim": 16,
    "epochs": EPOCHS,
    "every": 5,
    "batch_size": 256,
    "negatives": 64,
    "lr": 0.1,
    "checkpoint_seconds": 0.0,
    "rule_weight": 0.0,
}


def flags() -> list[str]:
    return [part for name, value in SETTINGS.items() for part in (f"--{name.replace('_', '-')}", str(value))]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "world"
    save_dataset(split(generate(n_entities=300, n_facts=4000, seed=1).graph, seed=0, name="world"), folder)
    return folder


@pytest.fixture(scope="module")
def whole(torchrec: None, data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two ranks that nothing happened to."""
    path = tmp_path_factory.mktemp("runs") / "whole"
    done = run_ranks(2, *ukge("train", str(data), "--distributed", "--json", "--out", str(path), *flags()))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["epochs"] == EPOCHS, "the first rank alone speaks"
    return path


def test_two_ranks_learn_what_one_process_learns(whole: Path, data: Path) -> None:
    dataset = open_dataset(data)
    settings = {**SETTINGS, "sampler": "shared", "optimiser": "rowwise-adagrad", "engine": "torch", "threads": 1}
    alone = UKGE("ukge-rect", **settings).fit(dataset, rules="none")
    together = UKGE.load(whole)
    assert alone.trained is not None
    assert together.trained is not None
    assert alone.trained.best is not None
    # Other unseen facts are drawn; on a graph this small the seeds of one process differ by as much.
    assert together.trained.best == pytest.approx(alone.trained.best, rel=0.1)
    facts = dataset.test
    errors = [float(np.mean((model.predict(facts) - facts.confidence) ** 2)) for model in (alone, together)]
    assert errors[1] == pytest.approx(errors[0], rel=0.1)
    assert errors[1] < 0.9 * float(np.var(facts.confidence)), "both learnt something"


def test_the_run_is_an_ordinary_one(whole: Path, data: Path) -> None:
    run = Run.open(whole)
    assert run.manifest()["status"] == "finished"
    assert [line["epoch"] for line in run.trace()] == list(range(1, EPOCHS + 1))
    assert run.vocabularies[0] == open_dataset(data).entities
    weights = run.load_weights()
    best = run.manifest()["result"]["best_epoch"]
    shards = sorted((whole / "checkpoints" / f"best-{best:06d}").glob("*.safetensors"))
    assert len(shards) == 2
    parts = [load_file(shard)["entity"] for shard in shards]
    np.testing.assert_array_equal(np.concatenate(parts), weights.entity)
    assert len(parts[0]) == len(parts[1]) == 150
    with pytest.raises(RunError, match="trained by"):
        UKGE.resume(whole)


def test_a_killed_rank_is_started_again_and_nothing_is_lost(whole: Path, data: Path, tmp_path: Path) -> None:
    """Then the run as it was at that moment goes on with one rank instead of two."""
    path, early = tmp_path / "killed", tmp_path / "early"
    command = ukge("train", str(data), "--distributed", "--quiet", "--out", str(path), *flags())
    launcher = subprocess.Popen(torchrun(2, *command, restarts=1), env=environment(), stderr=subprocess.PIPE, text=True)
    try:
        wait_for_epoch(path, 4, launcher)
        survivor = rank_process(launcher.pid, 0)
        os.kill(rank_process(launcher.pid, 1), signal.SIGKILL)
        wait_for_end(survivor)
        shutil.copytree(path, early)
        _, told = launcher.communicate(timeout=300)
    finally:
        launcher.kill()
    assert launcher.returncode == 0, told
    assert (path / "weights.safetensors").read_bytes() == (whole / "weights.safetensors").read_bytes()
    trace = Run.open(path).trace()
    assert [line["epoch"] for line in trace] == list(range(1, EPOCHS + 1))
    assert [line["loss"] for line in trace] == [line["loss"] for line in Run(whole).trace()]

    done = run_ranks(1, *ukge("train", "--distributed", "--json", "--resume", str(early)))
    assert done.returncode == 0, done.stderr
    assert [line["epoch"] for line in Run.open(early).trace()] == list(range(1, EPOCHS + 1))
    before = [line["loss"] for line in Run(whole).trace()]
    after = [line["loss"] for line in Run(early).trace()]
    assert after[:4] == before[:4]
    assert after != before
    assert json.loads(done.stdout)["best"] == pytest.approx(UKGE.load(whole).trained.best, rel=0.1)  # type: ignore[union-attr]


def test_a_prepared_directory_is_trained_on_where_it_lies(torchrec: None, tmp_path: Path) -> None:
    stream_parquet(tmp_path / "bucket", 300, 2000, seed=2, partition_by="relation")
    prepared = prepare(str(tmp_path / "bucket"), tmp_path / "prepared", PrepareSettings(val=0.1))
    run = tmp_path / "run"
    few = ["--dim", "8", "--epochs", "2", "--every", "1"]
    done = run_ranks(1, *ukge("train", str(prepared.path), "--distributed", "--json", "--out", str(run), *few))
    assert done.returncode == 0, done.stderr
    assert not (run / "facts").exists(), "the facts are not copied"
    model = UKGE.load(run)
    assert model.entities == prepared.vocabulary("entity")
    assert model.trained is not None
    facts = prepared.graph("val", *Run(run).vocabularies)
    links = prepared.graph("links", *Run(run).vocabularies)
    asked = concat([facts, links])
    expected = float(np.mean((model.predict(asked) - asked.confidence) ** 2))
    assert model.trained.best == pytest.approx(expected, rel=1e-4)
    assert len(open_run(run).dataset.train) == prepared.facts["train"]


def wait_for_epoch(run: Path, epoch: int, launcher: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 200
    while (found := last_checkpoint(run / "checkpoints")) is None or found.name < f"epoch-{epoch:06d}":
        assert launcher.poll() is None, "the ranks ended before the kill"
        assert time.monotonic() < deadline, "the ranks never came so far"
        time.sleep(0.01)


def wait_for_end(process: int) -> None:
    deadline = time.monotonic() + 60
    while Path(f"/proc/{process}").exists():
        assert time.monotonic() < deadline, "a rank outlived the others"
        time.sleep(0.01)


def rank_process(launcher: int, rank: int) -> int:
    """Return the process of a rank: the launcher's child with that rank in its environment."""
    children = Path(f"/proc/{launcher}/task/{launcher}/children").read_text().split()
    for child in children:
        if f"RANK={rank}".encode() in Path(f"/proc/{child}/environ").read_bytes().split(b"\0"):
            return int(child)
    raise AssertionError(f"no process of rank {rank} among {children}")


def test_without_torchrun_it_says_how_to_start(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert cli.run(["train", str(data), "--distributed", "--out", str(tmp_path / "run")]) == ExitCode.MISTAKE
    said = capsys.readouterr().err
    assert "torchrun --nproc-per-node 2" in said
    assert "Traceback" not in said
    assert not (tmp_path / "run").exists()
