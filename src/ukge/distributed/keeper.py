"""What remembers the weights of a distributed training: shards in checkpoints, and a run directory at the end."""

from __future__ import annotations

import time
from typing import Any

from ukge.distributed.checkpoints import Checkpoints
from ukge.distributed.engine import DistributedEngine
from ukge.distributed.export import export_weights, exported
from ukge.distributed.table import ShardedTables
from ukge.evaluation.tasks import Predictor
from ukge.learning.validation import Metric, metrics
from ukge.models.model import Model
from ukge.models.tables import Parameters
from ukge.runs.directory import Progress, Run


class ShardKeeper:
    """A `Keeper` on every rank; only the first one writes to the run directory itself."""

    def __init__(self, engine: DistributedEngine, run: Run) -> None:
        self.where: str | None = str(run.path)
        self.tables = ShardedTables(engine.table, engine.replicated)
        self.model = Model(self.tables, engine.scorer, engine.link, engine.undirected)
        self.checkpoints = Checkpoints(run.path, engine)
        self._run = run
        self.world = engine.world
        self._saved = time.monotonic()

    def predictor(self) -> Predictor:
        """Return what predicts with the shards, for the first rank to ask while the others answer."""
        return self.model

    def keep_best(self, progress: Progress) -> None:
        """Write the weights to disk, where they cost no memory."""
        self.checkpoints.save_best(progress.epoch)

    def hand_over(self, progress: Progress, *, tired: bool) -> bool:  # noqa: ARG002
        """Return False: ranks train no students."""
        return False

    def due(self, seconds: float) -> bool:
        """Return what the first rank's clock says."""
        return self.world.broadcast(float(time.monotonic() - self._saved >= seconds)) > 0

    def checkpoint(self, progress: Progress) -> None:
        """Write a checkpoint, all ranks together."""
        self.checkpoints.save(progress)
        self._saved = time.monotonic()

    def trace(self, line: dict[str, Any]) -> None:
        """Add a line to the run's trace."""
        if self.world.first:
            self._run.append_trace(line)

    def note(self, **changes: Any) -> None:
        """Change the run's manifest."""
        if self.world.first:
            self._run.update(**changes)

    def finish(self, result: dict[str, Any]) -> Parameters:
        """Let the first rank write the ordinary weights; every rank gets them as they lie in their file."""
        self.world.by_first(lambda: export_weights(self._run.path, result["best_epoch"], result))
        return exported(self._run.path)


class SharedMetric(Metric):
    """A metric that the first rank measures, with all ranks answering, and that all ranks then know."""

    def __init__(self, name: str, own: Metric | None, keeper: ShardKeeper) -> None:
        self.higher_is_better = metrics.get(name).higher_is_better
        self._own = own
        self._keeper = keeper

    def measure(self, model: Predictor) -> float:
        """Return the metric on every rank."""
        value = 0.0
        with self._keeper.tables.answering(self._keeper.model.scorer):
            if self._own is not None:
                value = self._own.measure(model)
        return self._keeper.world.broadcast(value)
