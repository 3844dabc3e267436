"""A finished run, opened with the data it learnt from: what evaluating it needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ukge.errors import RunError
from ukge.graph.catalogue import BENCHMARKS, open_dataset
from ukge.graph.dataset import Dataset
from ukge.models.model import Model
from ukge.runs.directory import IN_MEMORY, Run
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
        return self.dataset.train.fingerprint, self.dataset.test.fingerprint


def open_run(path: str | Path, data: str | Path | None = None, reading: Mapping[str, Any] | None = None) -> OpenedRun:
    """Open a finished run; its data is looked up where the run says, or at `data`, and must be what it learnt from."""
    run = Run.open(path)
    learnt = Learnt.load(run)
    dataset = dataset_of(run, data, reading)
    if (dataset.entities, dataset.relations) != run.vocabularies:
        raise RunError(
            f"{run.path} learnt other names than {data or run.data.reference} has: their ids would not mean the same",
            hint="Give the data the run learnt from: ‹data=DATA›.",
        )
    graph = Path(run.data.reference).name
    tau = paper_tau(graph) if graph in BENCHMARKS else run.config.sampling.tau
    return OpenedRun(run, learnt.predictor, dataset, tau)


def dataset_of(run: Run, data: str | Path | None = None, reading: Mapping[str, Any] | None = None) -> Dataset:
    """Open the data set of a run and check that its training and validation facts are those the run saw.

    A file is read as the run remembers, unless `reading` says otherwise.
    """
    note = run.data
    if data is None and note.reference == IN_MEMORY:
        raise RunError(f"{run.path} learnt from data in memory", hint="Say where the data is: ‹data=DATA›.")
    reference = note.reference if data is None else str(data)
    told = reading or (note.reading if data is None or Path(data).is_file() else {})
    dataset = open_dataset(reference, seed=note.seed, leak_safe=note.leak_safe, undirected=note.undirected, **told)
    for part, expected in (("train", note.train), ("val", note.val)):
        if expected and dataset.parts[part].fingerprint != expected:
            raise RunError(
                f"{run.path} learnt from other data: the {part} facts of {reference} are not those it saw",
                hint="Restore the data, say where it is (‹data=DATA›), or train a new run.",
            )
    return dataset
