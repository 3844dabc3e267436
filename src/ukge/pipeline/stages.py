"""`fit`: read, audit, cut, search settings, train, fit evidence, judge, and write a page; stopped, it goes on.

RUN                  the run that was chosen, with its evidence, as every other command takes it
RUN/report           the page
RUN.search           what was tried (see `ukge.learning.tuning.studies`), and what it began with
"""

from __future__ import annotations

import importlib.util
import math
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ukge.errors import ConfigError, RunError
from ukge.evaluation.evaluate import Evaluation, evaluate, prepare
from ukge.evaluation.metric import Bootstrap
from ukge.evaluation.protocols import Settings
from ukge.evaluation.report import write_report
from ukge.evaluation.tasks import Predictor
from ukge.evidence import Evidence, EvidenceSettings
from ukge.evidence.fitting import FEWEST_FACTS
from ukge.graph.audit import audit
from ukge.graph.dataset import Dataset
from ukge.graph.given import as_graph
from ukge.graph.split import split
from ukge.learning.data import TAKEN, opened
from ukge.learning.engines import resolve
from ukge.learning.estimator import UKGE
from ukge.learning.probe import probe
from ukge.learning.tuning.studies import TrialSummary
from ukge.learning.tuning.tune import tune
from ukge.progress.steps import Steps, Tell
from ukge.runs.directory import EVIDENCE, IN_MEMORY, Run, refuse_if_taken
from ukge.runs.learnt import EpochEvent, open_run
from ukge.runs.manifest import FILE as MANIFEST
from ukge.runs.manifest import FINISHED
from ukge.settings.config import Config, read_config, to_toml
from ukge.settings.variants import probed, variant
from ukge.storage.files import write_atomically
from ukge.storage.locks import alone

MODEL, SPACE, PROTOCOL = "ukge-rect", "fit", "clean"

SEARCHING = 0.5
"""Share of the time that the search has; the rest is for the training, the evidence and the judgement."""

TRAININGS = 6
"""Whole trainings that the search shall have time for: on a large graph each has fewer epochs."""

FEWEST_EPOCHS = 10
NO_TIME = 1e-9
SENTENCES = 3
REPORT, BASE, DONE = "report", "base.toml", "done"

READ, PROBE, SEARCH, TRAIN, FIT, JUDGE = (
    "reading and auditing",
    "probing rate and λ",
    "searching settings",
    "training with the best",
    "fitting evidence",
    "judging",
)
STEPS = {READ: 2, PROBE: 4, SEARCH: 100 * SEARCHING, TRAIN: 12, FIT: 26, JUDGE: 6}
"""What is done, with the share of the time that each step has."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """What was made of a file: the run, what was tried on the way, and how it is judged."""

    run: Path
    dataset: Dataset
    sentences: tuple[str, ...]
    """what the audit says first"""
    trials: tuple[TrialSummary, ...]
    config: Config
    evaluation: Evaluation
    page: Path | None
    """None where nothing can be drawn"""
    notes: tuple[str, ...]

    @property
    def best(self) -> str:
        """The name of the row that should be asked: that of the evidence, or of the model where there is none."""
        return self.evaluation.rows[-1].name


def fit(
    data: Any,
    out: str | Path,
    *,
    minutes: float = 10.0,
    seed: int = 0,
    undirected: str | Sequence[str] = "auto",
    reading: Mapping[str, Any] | None = None,
    reference: str | None = None,
    overwrite: bool = False,
    tell: Tell | None = None,
) -> Fitted:
    """Make a run of a graph: settings chosen by validation, evidence fitted, judged on facts that nothing has seen.

    `data` is what `UKGE.fit` takes, cut so that no held-out fact has a twin in train; a `Dataset` stays as it is cut.
    `tell` hears what is being done, and the share of all that is done. About half of the `minutes`
    go into the search for settings; no new trial begins after that. A call that was stopped goes on when it is given
    again. `overwrite` begins anew.
    """
    if not minutes > 0:
        raise ConfigError(f"‹minutes› must be above 0, not {minutes:g}")
    path, steps = Path(out), Steps(tell, STEPS)
    search = path.with_name(f"{path.name}.search")
    with alone(path):
        if overwrite or not search.is_dir():
            refuse_if_taken(path, overwrite=overwrite)
        if overwrite and search.is_dir():
            shutil.rmtree(search)
        steps.begin(READ)
        dataset, found = _cut(data, seed, undirected, reading)
        sentences = audit(dataset).headlines()[:SENTENCES]
        chosen = _Search(dataset, search, minutes * 60 * SEARCHING, steps).choose(seed)
        steps.begin(TRAIN)
        _train(dataset, path, chosen.config, reference or found, steps, overwrite=overwrite)
        steps.begin(FIT)
        notes = [*chosen.notes, *_evidence(dataset, path, seed, steps)]
        steps.begin(JUDGE)
        evaluation, page = _judged(path, seed, steps)
    return Fitted(path, dataset, sentences, chosen.trials, chosen.config, evaluation, page, tuple(notes))


def _cut(
    data: Any, seed: int, undirected: str | Sequence[str], reading: Mapping[str, Any] | None
) -> tuple[Dataset, str]:
    """Return the data set, and what opens it again; facts in memory are cut in three as those of a file are."""
    if isinstance(data, (Dataset, str, os.PathLike)):
        return opened(data, seed=seed, leak_safe=True, undirected=undirected, reading=reading)
    graph = as_graph(data, None, "fit", TAKEN, reading)
    return split(graph, seed=seed, leak_safe=True, undirected=undirected), IN_MEMORY


class Chosen(NamedTuple):
    """The settings that validation chose, what was tried, and what is to be said of it."""

    config: Config
    trials: tuple[TrialSummary, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class _Search:
    """The search for settings within some seconds; what it found is kept in a directory, where it goes on."""

    dataset: Dataset
    place: Path
    seconds: float
    steps: Steps

    def choose(self, seed: int) -> Chosen:
        """Return the best settings: by successive halving, or without Optuna those of the probe."""
        base = self._base(seed)
        if importlib.util.find_spec("optuna") is None:
            note = "only rate and λ were searched; Optuna searches all settings: pip install 'ukge[tune]'"
            return Chosen(base, (), (note,))
        done, began = self.place / DONE, time.monotonic()
        left = NO_TIME if done.is_file() else self.seconds

        def hear(_: EpochEvent) -> None:
            self.steps.within(min(1.0, (time.monotonic() - began) / self.seconds))

        self.steps.begin(SEARCH)
        how: dict[str, Any] = {"space": SPACE, "timeout": left, "pruner": "halving"}
        found = tune(self.dataset, UKGE(MODEL, config=base), directory=self.place / "study", on_epoch=hear, **how)
        write_atomically(done, b"")
        return Chosen(found.config or base, found.trials, ())

    def _base(self, seed: int) -> Config:
        """Return what the search begins with: the rate and λ of a probe, and epochs that leave time for trainings.

        It is written down: a search that is gone on with must begin with the same.
        """
        file = self.place / BASE
        if file.is_file():
            return read_config(file)
        config = probed(variant(MODEL).replace(seed=seed), ())
        config = config.replace(engine=resolve(config))
        self.steps.begin(PROBE)
        found = probe(self.dataset, config, None, lambda _, share: self.steps.within(share))
        config = config.replace(probe="none")
        if found is not None:
            config = config.replace(lr=found.chosen.lr, l2=found.chosen.l2)
            steps = sum(each.steps for each in found.tried) / found.seconds
            epoch = math.ceil(len(self.dataset.train) / config.optimiser.batch_size) / steps
            epochs = max(FEWEST_EPOCHS, min(config.stopping.epochs, int(self.seconds / TRAININGS / epoch)))
            config = config.replace(epochs=epochs, every=max(1, min(config.stopping.every, epochs // FEWEST_EPOCHS)))
        self.place.mkdir(parents=True, exist_ok=True)
        write_atomically(file, to_toml(config).encode())
        return config


def _train(dataset: Dataset, path: Path, config: Config, reference: str, steps: Steps, *, overwrite: bool) -> None:
    """Train with what was chosen, or go on with that training; one that is finished is left as it is."""

    def hear(event: EpochEvent) -> None:
        steps.within(event.epoch / event.epochs)

    if not overwrite and (path / MANIFEST).is_file():
        run = Run.open(path)
        if run.config != config or run.data.train != dataset.train.fingerprint:
            hint = "Begin anew (‹overwrite=True›), or choose another directory."
            raise RunError(f"{path} holds a run of other facts or settings", hint=hint)
        if run.manifest()["status"] != FINISHED:
            UKGE.resume(path, progress=False, callbacks=[hear])
        return
    model = UKGE(MODEL, config=config)
    model.fit(
        dataset, out=path, reference=reference, rules="none", overwrite=overwrite, progress=False, callbacks=[hear]
    )


def _evidence(dataset: Dataset, path: Path, seed: int, steps: Steps) -> list[str]:
    """Fit evidence, unless it is there; return what is to be said of it."""
    if (path / EVIDENCE).is_dir():
        return []
    if len(dataset.val) < FEWEST_FACTS:
        return [f"{len(dataset.val)} validation facts are too few for evidence: the model answers alone"]
    settings = EvidenceSettings(seed=seed)
    fitted = Evidence.fit([path], dataset, settings=settings, tell=lambda _, share: steps.within(share))
    fitted.save(path / EVIDENCE)
    return list(fitted.notes)


def _judged(path: Path, seed: int, steps: Steps) -> tuple[Evaluation, Path | None]:
    """Judge the model and its evidence by facts that neither has seen, and write the page where one can be drawn."""
    opened = open_run(path)
    predictors: dict[str, Predictor] = {"model": opened.model}
    if (path / EVIDENCE).is_dir():
        predictors["evidence"] = Evidence.load(path)
    plan = prepare(opened.dataset, PROTOCOL, Settings(tau=opened.tau, seed=seed))
    found = evaluate(plan, predictors, bootstrap=Bootstrap(0), tell=lambda _, share: steps.within(share))
    if importlib.util.find_spec("matplotlib") is None:
        return found, None
    name = found.rows[-1].name
    return found, write_report(path / REPORT, found, plan, predictors[name], name, opened.run.trace())
