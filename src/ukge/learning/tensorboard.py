"""Losses and the validation metric as TensorBoard events."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


class TensorBoardCallback:
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
        for name, value in event.losses.items():
            self.writer.add_scalar(f"loss/{name}", value, event.epoch)
        self.writer.add_scalar("facts_per_second", event.facts / max(event.seconds, 1e-9), event.epoch)
        if event.value is not None:
            self.writer.add_scalar(f"validation/{event.metric}", event.value, event.epoch)
        self.writer.flush()
