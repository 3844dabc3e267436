"""What MLflow and Weights & Biases are told of a training: settings, every epoch, and how it ended."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from ukge.errors import ConfigError
from ukge.graph.dataset import Dataset
from ukge.graph.split import split
from ukge.graph.synthetic import generate
from ukge.learning.estimator import UKGE
from ukge.learning.trackers import MlflowCallback, TensorBoardCallback, WandbCallback
from ukge.runs.learnt import EpochEvent

QUICK: dict[str, Any] = {"dim": 4, "epochs": 4, "every": 2, "lr": 0.01, "l2": 0.001, "engine": "torch", "threads": 1}


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return split(generate(n_entities=150, n_facts=700, seed=1).graph, seed=0, name="world")


def test_mlflow_has_settings_every_epoch_and_the_end(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = pytest.importorskip("mlflow")
    uri = f"file:{tmp_path / 'mlruns'}"
    with pytest.raises(ConfigError, match="MLflow cannot keep runs at"):
        MlflowCallback(uri=uri)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # a server or a database needs more than is installed here
    events: list[EpochEvent] = []
    told = MlflowCallback(name="first", uri=uri)
    UKGE(**QUICK).fit(dataset, callbacks=[told, events.append])
    client = mlflow.MlflowClient(tracking_uri=uri)
    number = client.get_experiment_by_name("ukge").experiment_id
    (run,) = client.search_runs([number])
    assert (run.info.status, run.info.run_name) == ("FINISHED", "first")
    assert (run.data.params["lr"], run.data.params["scorer"]) == ("0.01", "distmult")
    steps = {each.step: each.value for each in client.get_metric_history(run.info.run_id, "validation/mse")}
    assert steps == {event.epoch: event.value for event in events if event.value is not None}
    assert len(client.get_metric_history(run.info.run_id, "facts_per_second")) == 4

    def fail(event: EpochEvent) -> None:
        raise RuntimeError(event.epoch)

    with pytest.raises(RuntimeError):
        UKGE(**QUICK).fit(dataset, callbacks=[told, fail])
    assert sorted(each.info.status for each in client.search_runs([number])) == ["FAILED", "FINISHED"]


def test_weights_and_biases_offline(dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a run of theirs holds after each epoch is what the epoch found."""
    pytest.importorskip("wandb")
    for name in ("WANDB_SILENT", "WANDB_DISABLE_GIT", "WANDB_DISABLE_CODE"):
        monkeypatch.setenv(name, "true")
    told = WandbCallback(mode="offline", directory=tmp_path, name="first")
    seen = []

    def look(event: EpochEvent) -> None:
        kept = told.run.summary
        seen.append((event.epoch, kept["facts_per_second"] > 0, kept.get("validation/mse") == event.value))
        assert (told.run.name, told.run.config["scorer"], told.run.config["lr"]) == ("first", "distmult", 0.01)

    UKGE(**QUICK).fit(dataset, callbacks=[told, look])
    assert [epoch for epoch, fast, _ in seen if fast] == [1, 2, 3, 4]
    assert [epoch for epoch, _, same in seen if same] == [1, 2, 4]  # none is validated in the first and the third
    assert told.run is None
    assert list((tmp_path / "wandb").glob("offline-run-*/run-*.wandb"))


@pytest.mark.parametrize(
    ("kind", "module", "extra"),
    [(MlflowCallback, "mlflow", "mlflow"), (WandbCallback, "wandb", "wandb")],
)
def test_what_is_not_installed_is_named(kind: type, module: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=rf"pip install 'ukge\[{extra}\]'"):
        kind()


def test_tensorboard_is_closed_at_the_end(dataset: Dataset, tmp_path: Path) -> None:
    board = TensorBoardCallback(tmp_path / "board")
    UKGE(**QUICK).fit(dataset, callbacks=[board])
    assert board.writer is None
    assert list((tmp_path / "board").glob("events.out.tfevents*"))
