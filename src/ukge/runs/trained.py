"""What training tells while it goes on, and what it found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from ukge.errors import Wording, in_python, worded
from ukge.models.model import Model, as_model
from ukge.models.parameters import Parameters
from ukge.settings.config import Config


@dataclass(frozen=True, slots=True)
class Collapse:
    """What is seen of a model that predicts the same for everything, the likely cause, and what to do.

    `harmless` if there was nothing to learn. The texts name arguments as those of errors do.
    """

    seen: str
    cause: str
    remedy: str
    harmless: bool = False

    def what(self, wording: Wording = in_python) -> str:
        """Return what is seen and why, in the words of a surface."""
        return worded(f"{self.seen}: {self.cause}", wording)

    def hint(self, wording: Wording = in_python) -> str:
        """Return what to do, in the words of a surface."""
        return worded(self.remedy, wording)


@dataclass(frozen=True)
class EpochEvent:
    """What a callback is told after each epoch."""

    epoch: int
    epochs: int
    losses: dict[str, float]
    loss: float
    facts: int
    seconds: float
    metric: str
    value: float | None
    best: float | None
    best_epoch: int

    def line(self) -> dict[str, Any]:
        """Return the event as a line of the trace."""
        return {
            "epoch": self.epoch,
            "loss": self.loss,
            "losses": self.losses,
            "facts_per_second": round(self.facts / max(self.seconds, 1e-9)),
            "seconds": round(self.seconds, 4),
            "metric": self.metric,
            "value": self.value,
            "best": self.best,
            "best_epoch": self.best_epoch,
        }


Callback = Callable[[EpochEvent], None]


@dataclass(repr=False)
class Trained:
    """What training found: the weights of the best epoch, and how it went."""

    parameters: Parameters
    config: Config
    metric: str
    best: float | None
    best_epoch: int
    epochs: int
    seconds: float
    events: list[EpochEvent] = field(default_factory=list)
    collapsed: Collapse | None = None
    """What is wrong, if the model predicts the same for everything."""
    undirected: npt.NDArray[np.bool_] | None = None
    """Which relations have no direction, if any."""

    def result(self) -> dict[str, Any]:
        """Return what a run's manifest keeps of it."""
        result = {"metric": self.metric, "best": self.best, "best_epoch": self.best_epoch, "epochs": self.epochs}
        return result if self.collapsed is None else {**result, "collapsed": asdict(self.collapsed)}

    def __repr__(self) -> str:
        best = "" if self.best is None else f"validation {self.metric} {self.best:.5f} in epoch {self.best_epoch}, "
        return f"Trained({best}{self.epochs} epochs)"

    def model(self, device: str = "cpu") -> Model:
        """Return the model that predicts with these weights."""
        return as_model(self.parameters, self.config, device, self.undirected)
