"""What remembers weights for the training loop: the best so far, checkpoints, and the end."""

from __future__ import annotations

import time
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ukge.evaluation.tasks import Predictor
from ukge.learning.engines import Engine, Teaching
from ukge.models.model import as_model
from ukge.models.tables import Parameters
from ukge.runs.directory import Progress, Run
from ukge.settings.config import Config


class Keeper(Protocol):
    """Stands between the loop and wherever weights live: in this process, in files, or on many machines."""

    where: str | None
    """Where something is kept, for messages; None if nowhere."""

    def predictor(self) -> Predictor:
        """Return what predicts with the engine's weights as they are now."""

    def keep_best(self, progress: Progress) -> None:
        """Remember the weights as they are now: they are the best so far."""

    def hand_over(self, progress: Progress, *, tired: bool) -> bool:
        """Let a student begin where a teacher's epochs are over or brought nothing; return whether one does."""

    def due(self, seconds: float) -> bool:
        """Return whether the last checkpoint is so long ago."""

    def checkpoint(self, progress: Progress) -> None:
        """Write all that resuming needs."""

    def trace(self, line: dict[str, Any]) -> None:
        """Add one epoch to the trace."""

    def note(self, **changes: Any) -> None:
        """Change entries of the run's manifest."""

    def finish(self, result: dict[str, Any]) -> Parameters:
        """Write the weights of the best epoch, or without one the last epoch's, and return them."""


class InMemory:
    """Keeps the weights of an engine that works on arrays of this process, with or without a run directory."""

    def __init__(
        self,
        engine: Engine,
        config: Config,
        run: Run | None,
        best: Parameters | None,
        undirected: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        self.where = None if run is None else str(run.path)
        self.best = best
        self._engine = engine
        self._config = config
        self._undirected = undirected
        self._run = run
        self._saved = time.monotonic()

    def predictor(self) -> Predictor:
        """Return a model that reads the engine's arrays in place."""
        self._engine.sync()
        return as_model(self._engine.parameters, self._config, undirected=self._undirected)

    def keep_best(self, progress: Progress) -> None:  # noqa: ARG002
        """Copy the weights."""
        self.best = self._engine.parameters.copy()

    def hand_over(self, progress: Progress, *, tired: bool) -> bool:
        """Let a student begin, who learns from the teacher's best weights and is judged without them."""
        engine = self._engine
        if not isinstance(engine, Teaching) or not engine.has_taught(progress.epoch, tired=tired):
            return False
        engine.sync()
        weights = engine.parameters if self.best is None else self.best
        engine.begin_student(as_model(weights, self._config, undirected=self._undirected))
        self.best = None
        return True

    def due(self, seconds: float) -> bool:
        """Return whether there is a run whose last checkpoint is so long ago."""
        return self._run is not None and time.monotonic() - self._saved >= seconds

    def checkpoint(self, progress: Progress) -> None:
        """Write the weights, the optimiser's state and the best weights to one file."""
        if self._run is not None:
            self._engine.sync()
            self._run.save_checkpoint(self._engine.parameters, self._engine.state(), self.best, progress)
            self._saved = time.monotonic()

    def trace(self, line: dict[str, Any]) -> None:
        """Add a line to the run's trace."""
        if self._run is not None:
            self._run.append_trace(line)

    def note(self, **changes: Any) -> None:
        """Change the run's manifest."""
        if self._run is not None:
            self._run.update(**changes)

    def finish(self, result: dict[str, Any]) -> Parameters:
        """Write the best weights to the run directory and return them."""
        if self.best is None:
            self._engine.sync()
        weights = self._engine.parameters if self.best is None else self.best
        if self._run is not None:
            self._run.save_weights(weights, result)
        return weights
