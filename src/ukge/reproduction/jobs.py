"""Which trainings the tables need, where each is kept, and how it is brought to its end.

One that is done is not done again, and one that was killed goes on from its checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ukge.errors import ConfigError, RunError
from ukge.graph.dataset import Dataset
from ukge.learning.data import MINED
from ukge.learning.estimator import UKGE
from ukge.learning.train import Callback
from ukge.reproduction.recipes import (
    ABLATION,
    FIELD,
    FIELD_MODELS,
    MAIN,
    PAPER_MODELS,
    Recipes,
    comparable,
    contestants,
    registered,
)
from ukge.runs.directory import Run
from ukge.settings.config import Config

PAPER, RULES, CLEAN = "paper", "rules", "clean"
PARTS = (PAPER, RULES, CLEAN, FIELD)
EVIDENCE = "evidence"
"""In the place of a model: the evidence over the best of them."""
MISSING, UNFINISHED, FINISHED, OTHER = "missing", "unfinished", "finished", "other"


@dataclass(frozen=True, slots=True)
class Job:
    """One training: a model on a graph with a seed, for a task; `clean` on a leak-safe cut of the graph."""

    graph: str
    model: str
    seed: int
    task: str = MAIN
    clean: bool = False

    @property
    def label(self) -> str:
        """The model, with what makes this training of it different."""
        return self.model + f"-{self.task}" * (self.task != MAIN) + f"-{CLEAN}" * self.clean

    @property
    def protocol(self) -> str:
        """The protocol that judges it."""
        return CLEAN if self.clean else PAPER

    @property
    def rules(self) -> str:
        """Where its rules come from. The authors' were grounded on their own split, so a clean one mines its own."""
        return MINED if self.clean else contestants.get(self.model).rules

    def run_path(self, out: Path) -> Path:
        """Return the run directory."""
        return out / "runs" / self.graph / self.label / f"seed-{self.seed}"

    def result_path(self, out: Path) -> Path:
        """Return the file of its figures."""
        return out / f"{self.graph}-{self.label}-seed-{self.seed}.json"

    def __str__(self) -> str:
        return f"{self.graph} {self.label} seed {self.seed}"


def planned(
    graphs: Mapping[str, Recipes], models: Sequence[str], seeds: Iterable[int], parts: Sequence[str]
) -> list[Job]:
    """Return the trainings in the order in which they are done: graph by graph, seed by seed.

    Without `models` each part has its own. The evidence comes after the models that it may rest upon.
    """
    for part in parts:
        if part not in PARTS:
            raise ConfigError(f"unknown part '{part}'", hint=f"Known: {', '.join(PARTS)}.")
    for model in models:
        contestants.get(model)
    jobs: dict[Job, None] = {}
    for graph, recipes in graphs.items():
        for seed in seeds:
            for part, own in ((PAPER, PAPER_MODELS), (FIELD, FIELD_MODELS)):
                for model in (models or own) if part in parts else ():
                    if part == FIELD and not (registered(model) and recipes.enters(model)):
                        continue
                    jobs[Job(graph, model, seed)] = None
                    jobs |= {Job(graph, model, seed, task): None for task in recipes.apart(model)}
            if RULES in parts:
                jobs |= {Job(graph, model, seed): None for model in ABLATION}
            if CLEAN in parts:
                jobs |= {Job(graph, model, seed, clean=True): None for model in models or PAPER_MODELS}
            if FIELD in parts:
                jobs[Job(graph, EVIDENCE, seed)] = None
    return list(jobs)


def estimates(
    jobs: Iterable[Job], graphs: Mapping[str, Recipes], overrides: Mapping[str, Any]
) -> dict[Job, tuple[int, float]]:
    """Return the epochs at most and the seconds of one, for the trainings whose settings say how long one takes."""
    found = {}
    for job in jobs:
        recipes = graphs[job.graph]
        if job.model != EVIDENCE and (seconds := recipes.seconds(job.model, job.task)) is not None:
            found[job] = (recipes.config(job.model, job.task, overrides).stopping.epochs, seconds)
    return found


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
) -> UKGE:
    """Return the finished model of a run that is missing, unfinished or finished."""
    if state == FINISHED:
        return UKGE.load(path)
    if state == UNFINISHED:
        return UKGE.resume(path, progress=False, callbacks=[callback])
    return UKGE(contestants.get(job.model).variant, config=config).fit(
        dataset,
        rules=job.rules,
        out=path,
        reference=reference,
        leak_safe=job.clean,
        progress=False,
        callbacks=[callback],
    )
