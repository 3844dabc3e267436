"""Callbacks that tell a training to TensorBoard, MLflow or Weights & Biases: losses, speed, the validation metric.

    UKGE("ukge-rect", dim=64).fit(facts, callbacks=[MlflowCallback(), WandbCallback(mode="offline")])

Each is an extra: `ukge[tensorboard]`, `ukge[mlflow]`, `ukge[wandb]`. A tracker is told the settings, those that a probe
chose too, begins at the first epoch, and is closed when the training ends; one that failed is told as such.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from ukge.errors import ConfigError
from ukge.learning.train import Callback, EpochEvent
from ukge.settings.config import Config


def on_request(config: Config, out: str | Path | None) -> list[Callback]:
    """Return what writes events into a run directory, if the settings ask for it."""
    if not config.runtime.tensorboard:
        return []
    if out is None:
        raise ConfigError(
            "‹tensorboard› writes into the run directory, and none is kept",
            hint="Say where to keep the run with ‹out›, or leave out ‹tensorboard›.",
        )
    return [TensorBoardCallback(Path(out) / "tensorboard")]


def scalars(event: EpochEvent) -> dict[str, float]:
    """Return the numbers of an epoch by name."""
    found = {f"loss/{name}": value for name, value in event.losses.items()}
    found["facts_per_second"] = event.facts / max(event.seconds, 1e-9)
    if event.value is not None:
        found[f"validation/{event.metric}"] = event.value
    return found


@contextmanager
def tracked(callbacks: Iterable[Callback], config: Config) -> Iterator[None]:
    """Tell the trackers among some callbacks the settings of a training, and its end."""
    trackers = [each for each in callbacks if isinstance(each, Tracker)]
    for each in trackers:
        each.settings = {name: value for section in config.to_dict().values() for name, value in section.items()}
    failed = True
    try:
        yield
        failed = False
    finally:
        for each in trackers:
            each.close(failed=failed)


class Tracker(ABC):
    """Told of the settings, of every epoch, and of the end."""

    settings: Mapping[str, Any] = MappingProxyType({})

    @abstractmethod
    def __call__(self, event: EpochEvent) -> None:
        """Tell one epoch."""

    @abstractmethod
    def close(self, *, failed: bool = False) -> None:
        """Say that the training is over; a later epoch begins anew."""


class TensorBoardCallback(Tracker):
    """Writes each epoch's losses, speed and validation metric to a directory that TensorBoard reads."""

    def __init__(self, directory: Path) -> None:
        try:
            from torch.utils.tensorboard import SummaryWriter  # noqa: PLC0415 — an extra
        except ImportError:
            raise ConfigError(
                "TensorBoard is not installed", hint="pip install 'ukge[tensorboard]', or leave out ‹tensorboard›."
            ) from None
        # Opened at the first epoch: a run directory must be empty when the run is made.
        self.kind: Any = SummaryWriter
        self.directory = directory
        self.writer: SummaryWriter | None = None

    def __call__(self, event: EpochEvent) -> None:
        """Write one epoch."""
        if self.writer is None:
            self.writer = self.kind(str(self.directory))
        for name, value in scalars(event).items():
            self.writer.add_scalar(name, value, event.epoch)
        self.writer.flush()

    def close(self, *, failed: bool = False) -> None:  # noqa: ARG002 — TensorBoard knows no failure
        """Close the file."""
        if self.writer is not None:
            self.writer.close()
            self.writer = None


class MlflowCallback(Tracker):
    """One run of MLflow for a training. Without a `uri`, it goes where MLFLOW_TRACKING_URI says."""

    def __init__(self, *, name: str | None = None, experiment: str = "ukge", uri: str | None = None) -> None:
        module = _imported("mlflow", "MLflow")
        try:
            self.client: Any = module.MlflowClient(tracking_uri=uri)
            self.client.get_experiment_by_name(experiment)  # what is wrong is told now, not after an epoch
        except module.MlflowException as error:
            raise ConfigError(
                f"MLflow cannot keep runs at {uri or module.get_tracking_uri()}: {str(error).partition('. ')[0]}",
                hint="Name a tracking server or a database with ‹uri›.",
            ) from None
        self.name, self.experiment = name, experiment
        self.run_id: str | None = None

    def __call__(self, event: EpochEvent) -> None:
        """Log one epoch."""
        if self.run_id is None:
            known = self.client.get_experiment_by_name(self.experiment)
            number = self.client.create_experiment(self.experiment) if known is None else known.experiment_id
            self.run_id = str(self.client.create_run(number, run_name=self.name).info.run_id)
            for name, value in self.settings.items():
                self.client.log_param(self.run_id, name, value)
        for name, value in scalars(event).items():
            self.client.log_metric(self.run_id, name, value, step=event.epoch)

    def close(self, *, failed: bool = False) -> None:
        """End the run."""
        if self.run_id is not None:
            self.client.set_terminated(self.run_id, "FAILED" if failed else "FINISHED")
            self.run_id = None


class WandbCallback(Tracker):
    """One run of Weights & Biases for a training. `mode="offline"` writes to a directory alone."""

    def __init__(
        self,
        *,
        name: str | None = None,
        project: str = "ukge",
        mode: Literal["online", "offline", "disabled"] | None = None,
        directory: str | Path | None = None,
    ) -> None:
        self.module = _imported("wandb", "Weights & Biases")
        self.about = {
            "name": name,
            "project": project,
            "mode": mode,
            "dir": None if directory is None else str(directory),
        }
        self.run: Any = None

    def __call__(self, event: EpochEvent) -> None:
        """Log one epoch."""
        if self.run is None:
            self.run = self.module.init(config=dict(self.settings), **self.about)
        self.run.log(scalars(event), step=event.epoch, commit=True)

    def close(self, *, failed: bool = False) -> None:
        """End the run."""
        if self.run is not None:
            self.run.finish(exit_code=int(failed))
            self.run = None


def _imported(module: str, called: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise ConfigError(f"{called} is not installed", hint=f"pip install 'ukge[{module}]'") from None
