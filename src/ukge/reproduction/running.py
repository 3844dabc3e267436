"""Bringing a training to its end: not again if it is done, from its checkpoint if it was killed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ukge.errors import RunError
from ukge.graph.dataset import Dataset
from ukge.learning.estimator import UKGE
from ukge.learning.train import Callback
from ukge.reproduction.jobs import Job
from ukge.reproduction.outcomes import comparable
from ukge.reproduction.recipes import contestants
from ukge.runs.directory import Run
from ukge.settings.config import Config

MISSING, UNFINISHED, FINISHED, OTHER = "missing", "unfinished", "finished", "other"


@dataclass(frozen=True, slots=True)
class Standing:
    """How far the training of a run directory has come; `why` says what is wrong with one that cannot be used."""

    state: str
    why: str = ""


def standing(path: Path, config: Config, dataset: Dataset) -> Standing:
    """Return whether the run at `path` is the one that these settings and this data ask for, and whether it is done."""
    if not path.exists() or (path.is_dir() and not any(path.iterdir())):
        return Standing(MISSING)
    try:
        run = Run.open(path)
        manifest, used = run.manifest(), run.config
    except RunError as error:
        return Standing(OTHER, error.what)
    if comparable(used) != comparable(config):
        return Standing(OTHER, f"it was trained with other settings: {differences(used, config)}")
    for part in ("train", "val"):
        if manifest["data"][part] != dataset.parts[part].fingerprint:
            return Standing(OTHER, f"it learnt from other {part} facts")
    return Standing(FINISHED if manifest["status"] == "finished" else UNFINISHED)


def differences(before: Config, after: Config) -> str:
    """Return the settings in which two configs differ, with both values."""
    old, new = comparable(before), comparable(after)
    return ", ".join(
        f"{name} {old[section][name]} → {value}"
        for section, values in new.items()
        for name, value in values.items()
        if old[section][name] != value
    )


def set_aside(path: Path) -> Path:
    """Rename a run directory that is in the way, so that nothing that was trained is lost, and return its new place."""
    number = 1
    while (aside := path.with_name(f"{path.name}~{number}")).exists():
        number += 1
    path.rename(aside)
    return aside


def trained(
    job: Job,
    config: Config,
    dataset: Dataset,
    path: Path,
    *,
    state: str,
    reference: str,
    callback: Callback,
    on_facts: Callable[[int], None] | None = None,
) -> UKGE:
    """Return the finished model of a run that is missing, unfinished or finished."""
    if state == FINISHED:
        return UKGE.load(path)
    if state == UNFINISHED:
        return UKGE.resume(path, progress=False, callbacks=[callback], on_facts=on_facts)
    return UKGE(contestants.get(job.model).variant, config=config).fit(
        dataset,
        rules=job.rules,
        out=path,
        reference=reference,
        leak_safe=job.clean,
        progress=False,
        callbacks=[callback],
        on_facts=on_facts,
    )
