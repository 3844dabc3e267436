"""Entity tables in files of the run directory, mapped into memory: they may be larger than that."""

from __future__ import annotations

import mmap
import shutil
from typing import Any

import numpy as np
import numpy.typing as npt

from ukge.errors import ConfigError
from ukge.learning.engines import Engine
from ukge.learning.keepers import InMemory
from ukge.models.tables import Floats, Parameters
from ukge.runs.directory import Progress, Run
from ukge.settings.config import Config
from ukge.storage.arrays import map_arrays
from ukge.storage.files import reserve, writing

FOLDER = "tables"
ROWS = 1 << 16
"""Rows that are copied at a time."""


def mapped_table(run: Run | None, name: str, shape: tuple[int, int]) -> Floats:
    """Return a new table of zeros in a file of the run; only the rows that are used take memory, while they are.

    Its room on the disk is taken at once.
    """
    if run is None:
        raise ConfigError(
            "‹memory_map› keeps tables in files of a run directory, and there is none",
            hint="Say where: ‹out=DIR›.",
        )
    file = run.path / FOLDER / f"{name}.f32"
    with writing(file):
        file.parent.mkdir(exist_ok=True)
        with file.open("w+b") as handle:
            reserve(handle, 4 * shape[0] * shape[1])
    table = np.memmap(file, np.float32, "r+", shape=shape)
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
    """Keeps the best weights in a file too, whose room is taken at the start, and leaves a finished run's in theirs."""

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
        rows, width = engine.parameters.entity.shape
        self._room = mapped_table(run, "best", (rows, width))
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
        return Parameters.of(map_arrays(self._path / "weights.safetensors")[0])

    def _keep(self, weights: Parameters) -> None:
        if self.best is None:
            small = {name: array.copy() for name, array in weights.as_dict().items() if name != "entity"}
            self.best = Parameters.of({"entity": self._room, **small})
        for kept, array in zip(self.best.as_dict().values(), weights.as_dict().values(), strict=True):
            copy_rows(array, kept)
