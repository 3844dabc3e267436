"""A finished run, opened with the data it learnt from: what evaluating it needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ukge.graph.catalogue import BENCHMARKS
from ukge.graph.dataset import Dataset
from ukge.models.model import Model
from ukge.runs.dataset import dataset_of
from ukge.runs.directory import Run
from ukge.runs.learnt import Learnt
from ukge.settings.variants import paper_tau


@dataclass(frozen=True, eq=False)
class OpenedRun:
    """A run directory with its model, by ids, and its data set. `tau` is the confidence above which a fact is strong.

    On the paper's graphs τ is the paper's; elsewhere it is what the run was trained with.
    """

    run: Run
    model: Model
    dataset: Dataset
    tau: float

    @property
    def name(self) -> str:
        """The name of the run directory."""
        return self.run.path.resolve().name

    @property
    def data_key(self) -> tuple[str, str]:
        """What two runs must share to stand in one table: the training facts and the test facts."""
        note = self.run.data
        return (note.train, note.test) if note.train else (note.reference, "")


def open_run(path: str | Path, data: str | Path | None = None) -> OpenedRun:
    """Open a finished run with its data; `data` is where facts are now that the run refers to."""
    run = Run.open(path)
    learnt = Learnt.load(run)
    graph = Path(run.data.reference).name
    tau = paper_tau(graph) if graph in BENCHMARKS else run.config.sampling.tau
    return OpenedRun(run, learnt.predictor, dataset_of(run, data), tau)
