"""The data set of a run."""

from __future__ import annotations

from pathlib import Path

from ukge.errors import RunError
from ukge.graph.dataset import Dataset
from ukge.graph.partitioned import is_prepared, open_prepared
from ukge.runs.directory import Run


def dataset_of(run: Run, data: str | Path | None = None) -> Dataset:
    """Return the data set that a run keeps, or, of facts too large for that, the prepared directory it refers to."""
    note, kept = run.data, run.kept
    if kept is not None:
        if data is not None:
            raise RunError(f"{run.path} keeps its facts", hint="Leave out ‹data›.")
        return kept.dataset(note.name)
    place = Path(note.reference if data is None else data)
    if not is_prepared(place):
        raise RunError(f"the facts of {run.path} are not at {place}", hint="Say where they are now: ‹data=DIR›.")
    dataset = open_prepared(place).dataset()
    if (dataset.entities, dataset.relations) != run.vocabularies or len(dataset.train) != note.facts:
        raise RunError(
            f"{run.path} learnt from other facts than {place} holds",
            hint="Say where those are that it learnt from: ‹data=DIR›.",
        )
    return dataset
