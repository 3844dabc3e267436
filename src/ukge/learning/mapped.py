"""Entity tables in files of the run directory, mapped into memory: they may be larger than that."""

from __future__ import annotations

import mmap
import shutil
from typing import Any

import numpy as np
import numpy.typing as npt

from ukge.errors import ConfigError
from ukge.learning.engine import Engine
from ukge.learning.keepers import InMemory
from ukge.models.parameters import Floats, Parameters
from ukge.runs.directory import Progress, Run
from ukge.settings.config import Config
from ukge.storage.arrays import map_arrays

FOLDER = "tables"
ROWS = 1 << 16
"""Rows that are copied at a time."""


def mapped_table(run: Run | None, name: str, shape: tuple[int, int]) -> Floats:
    """Return a new table of zeros in a file of the run; only the rows that are used take memory, while they are."""
    if run is None:
        raise ConfigError(
            "‹memory_map› keeps tables in files of a run directory, and there is none",
            hint="Say where: ‹out=DIR›.",
        )
    folder = run.path / FOLDER
    folder.mkdir(exist_ok=True)
    table = np.memmap(folder / f"{name}.f32", np.float32, "w+", shape=shape)
    if hasattr(mmap, "MADV_RANDOM"):
        # Read ahead, Linux keeps a file in pieces of up to 2 MB, and a change of one row writes a whole piece to disk.
        memory: mmap.mmap = vars(table)["_mmap"]
        memory.madvise(mmap.MADV_RANDOM)
    return table.view(np.ndarray)


def copy_rows(source: Floats, target: Floats) -> None:
    """Copy a table piece by piece, so that neither has to be in memory as a whole."""
    for start in range(0, len(source), ROWS):
        target[start : start + ROWS] = source[start : start + ROWS]


class Mapped(InMemory):
    """Keeps the best weights in a file too, and leaves the weights of a finished run in theirs."""

    def __init__(
        self,
        engine: Engine,
        config: Config,
        run: Run,
        best: Parameters | None,
        undirected: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        super().__init__(engine, config, run, None, undirected)
        self._path = run.path
        if best is not None:
            self._keep(best)

    def keep_best(self, progress: Progress) -> None:  # noqa: ARG002
        """Copy the weights, those of the entities into a file."""
        self._engine.sync()
        self._keep(self._engine.parameters)

    def finish(self, result: dict[str, Any]) -> Parameters:
        """Write the best weights, return them as they lie in their file, and remove the tables."""
        super().finish(result)
        self.best = None
        shutil.rmtree(self._path / FOLDER, ignore_errors=True)
        return Parameters(**map_arrays(self._path / "weights.safetensors")[0])

    def _keep(self, weights: Parameters) -> None:
        if self.best is None:
            entity = mapped_table(self._run, "best", (len(weights.entity), weights.entity.shape[1]))
            self.best = Parameters(entity, weights.relation.copy(), weights.link.copy())
        copy_rows(weights.entity, self.best.entity)
        self.best.relation[:], self.best.link[:] = weights.relation, weights.link
