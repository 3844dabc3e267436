"""`fit`: read, audit, cut, search settings, train, fit evidence, judge, and write a page; stopped, it goes on.

RUN                  the run that was chosen and judged, with its evidence, as every other command takes it
RUN/report           the page
RUN.final            if asked for: the same once more on all facts, for use (see `ukge.pipeline.final`)
RUN.search           what it began with, what was tried (see `ukge.learning.tuning.studies`), the second model
"""

from __future__ import annotations

import importlib.util
import shutil
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from ukge.errors import CollapseWarning, ConfigError, RunError, Wording, in_python, worded
from ukge.evaluation.evaluate import Evaluation, evaluate, prepare
from ukge.evaluation.metric import Bootstrap
from ukge.evaluation.protocols import Settings
from ukge.evaluation.report import write_report
from ukge.evaluation.tasks import Predictor
from ukge.evidence import Evidence, EvidenceSettings
from ukge.evidence.fitting import FEWEST_FACTS
from ukge.evidence.storage import has_evidence
from ukge.graph.audit import audit
from ukge.graph.dataset import Dataset
from ukge.learning.data import Opening, opened
from ukge.learning.estimator import UKGE
from ukge.learning.tuning.studies import TrialSummary
from ukge.pipeline.final import all_known, as_long, evidence_over_all
from ukge.pipeline.origin import ANOTHER, Origin
from ukge.pipeline.search import MODEL, PROBE, SEARCH, Search
from ukge.progress.steps import Steps, Tell
from ukge.runs.directory import Run, refuse_if_taken
from ukge.runs.learnt import EpochEvent, Learnt, open_run
from ukge.runs.manifest import FILE as MANIFEST
from ukge.runs.manifest import FINISHED
from ukge.settings.config import Config
from ukge.storage.files import temporary_beside
from ukge.storage.locks import alone

PROTOCOL = "clean"
TEST = 0.08
"""Share of facts that judge, where they come whole."""

SEARCHING = 0.5
"""Share of the time that the search has; the rest is for the training, the evidence and the judgement."""

LEARNT_PER_MINUTE, FEWEST_LEARNT = 4_000, 2_000
"""Validation facts that evidence may learn from: of more than those, so many are drawn."""

SECOND_AT_MOST = 0.1
"""Share of the time that the first training may have taken for a second one to have time too."""

OTHER = {"distmult": "complex", "complex": "distmult", "rectifier": "logistic", "logistic": "rectifier"}
"""What a second model has instead of the scorer and the link of the first."""

SENTENCES = 3
REPORT = "report"

READ, TRAIN, SECOND, FIT, JUDGE, FINAL = (
    "reading and auditing",
    "training with the best",
    "training a second model",
    "fitting evidence",
    "judging",
    "training on all facts",
)
STEPS = {READ: 2, PROBE: 4, SEARCH: 100 * SEARCHING, TRAIN: 8, SECOND: 8, FIT: 24, JUDGE: 6}
"""What is done, with the share of the time that each step has."""


@dataclass(frozen=True, eq=False)
class Fitted:
    """What was made of a file: the run, what was tried on the way, and how it is judged."""

    run: Path
    """the run that was judged"""
    final: Path | None
    """the run that learnt from all facts, if it was asked for"""
    dataset: Dataset
    sentences: tuple[str, ...]
    """what the audit says first"""
    trials: tuple[TrialSummary, ...]
    config: Config
    evaluation: Evaluation
    page: Path | None
    """None where nothing can be drawn"""
    remarks: tuple[str, ...]
    """what is to be said of it; arguments are named as errors name them"""

    @property
    def best(self) -> str:
        """The name of the row that should be asked: that of the evidence, or of the model where there is none."""
        return self.evaluation.rows[-1].name

    def notes(self, wording: Wording = in_python) -> list[str]:
        """Return what is to be said of it, in the words of a surface."""
        return [worded(each, wording) for each in self.remarks]

    @property
    def for_use(self) -> Path:
        """The run that should be asked: the one that learnt from all facts, if there is one."""
        return self.final or self.run


def fit(
    data: Any,
    out: str | Path,
    *,
    minutes: float = 10.0,
    final: bool = False,
    seed: int = 0,
    overwrite: bool = False,
    tell: Tell | None = None,
    **opening: Unpack[Opening],
) -> Fitted:
    """Make a run of a graph: settings chosen by validation, evidence fitted, judged on facts that nothing has seen.

    `data` is what `UKGE.fit` takes, and `opening` says how it becomes a data set, as there; it is cut so that no
    held-out fact has a twin in train, but a `Dataset` stays as it is cut. Half of the `minutes` are for the search
    for settings. With `final`, a run beside it, `OUT.final`, learns from all facts with what was chosen, for use; the
    figures are those of the run that was judged. A call that was stopped goes on when it is given again, one that asks
    for `final` later too; `overwrite` begins anew. `tell` hears what is being done, and the share of all that is done.
    """
    if not minutes > 0:
        raise ConfigError(f"‹minutes› must be above 0, not {minutes:g}")
    opening.setdefault("leak_safe", True)
    path, steps = Path(out), Steps(tell, STEPS | ({FINAL: 16} if final else {}))
    beside = {name: path.with_name(f"{path.name}.{name}") for name in ("search", "final")}
    with alone(path):
        before = None if overwrite else Origin.read(beside["search"])
        if before is None:
            for each in (path, beside["final"]):
                refuse_if_taken(each, overwrite=overwrite)
            Origin.refuse_others(beside["search"])
        steps.begin(READ)
        dataset, reference = opened(data, seed=seed, test=TEST, **opening)
        now = Origin.of(dataset, reference, seed, minutes)
        notes = [] if before is None else before.go_on(now, path)
        if before is None:
            for each in (path, *beside.values()):
                _remove(each)
            now.write(beside["search"])
        sentences = audit(dataset).headlines()[:SENTENCES]
        chosen = Search(dataset, beside["search"], (before or now).minutes * 60 * SEARCHING, steps).choose(seed)
        steps.begin(TRAIN)
        notes += chosen.notes
        notes += _train(dataset, path, chosen.config, reference, steps)
        models = [path, *_second(dataset, path, beside["search"], before or now, steps)]
        steps.begin(FIT)
        notes += _evidence(dataset, models, before or now, steps)
        steps.begin(JUDGE)
        evaluation, page = _judged(path, seed, steps)
        if final:
            steps.begin(FINAL)
            _train_finally(dataset, models, beside["final"], reference, steps)
    last = beside["final"] if final else None
    return Fitted(path, last, dataset, sentences, chosen.trials, chosen.config, evaluation, page, tuple(notes))


def _remove(place: Path) -> None:
    """Remove a directory at once: one that is half gone would be taken for something else after a kill."""
    if place.is_dir():
        aside = temporary_beside(place)
        place.rename(aside)
        shutil.rmtree(aside)


def _train(dataset: Dataset, path: Path, config: Config, reference: str, steps: Steps) -> list[str]:
    """Train, or go on with that training; one that is finished is left as it is. Return what is to be said of it."""

    def hear(event: EpochEvent) -> None:
        steps.within(event.epoch / event.epochs)

    if (path / MANIFEST).is_file():
        run = Run.open(path)
        if run.config != config or run.data.train != dataset.train.fingerprint:
            raise RunError(f"{path} holds a run of other facts or settings", hint=ANOTHER)
        if run.manifest()["status"] != FINISHED:
            UKGE.resume(path, progress=False, callbacks=[hear])
    else:
        model = UKGE(MODEL, config=config)
        model.fit(dataset, out=path, reference=reference, rules="none", progress=False, callbacks=[hear])
    remark = Learnt.load(Run.open(path)).trained.remark
    return [f"{remark}; more time may help: ‹minutes=...›"] if remark else []


def _second(dataset: Dataset, first: Path, place: Path, now: Origin, steps: Steps) -> list[Path]:
    """Train a model with another scorer and another link beside the first, if there is time and it comes alive.

    Evidence over two models that err in different ways is better than over one; it keeps a copy of both.
    """
    run = Run.open(first)
    took = sum(line["seconds"] for line in run.trace())
    if len(dataset.val) < FEWEST_FACTS or took > SECOND_AT_MOST * 60 * now.minutes:
        return []
    steps.begin(SECOND)
    model = run.config.model
    config = run.config.replace(scorer=OTHER[model.scorer], link=OTHER[model.link])
    path = place / f"{config.model.scorer}-{config.model.link}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CollapseWarning)
        _train(dataset, path, config, now.reference, steps)
    dead = Learnt.load(Run.open(path)).trained.collapsed
    return [path] if dead is None or dead.harmless else []


def _evidence(dataset: Dataset, models: Sequence[Path], now: Origin, steps: Steps) -> list[str]:
    """Fit evidence, unless it is there; return what is to be said of it.

    It goes into the first of the models. Its trees learn from as many validation facts as the time allows for.
    """
    path = models[0]
    held, most = len(dataset.val), max(FEWEST_LEARNT, round(LEARNT_PER_MINUTE * now.minutes))
    if held < FEWEST_FACTS:
        return [f"{held} validation facts are too few for evidence: the model answers alone"]
    notes = []
    if held > most:
        drawn = np.sort(np.random.default_rng(now.seed).permutation(held)[:most])
        dataset = replace(dataset, val=dataset.val[drawn])
        notes.append(f"so that the time holds, evidence learnt from {most:,} of {held:,} validation facts")
    if not has_evidence(path):
        settings = EvidenceSettings(seed=now.seed)
        Evidence.fit(models, dataset, settings=settings, tell=lambda _, share: steps.within(share)).save(path)
    return [*notes, *Evidence.load(path).notes]


def _judged(path: Path, seed: int, steps: Steps) -> tuple[Evaluation, Path | None]:
    """Judge the model and its evidence by facts that neither has seen, and write the page where one can be drawn."""
    opened = open_run(path)
    predictors: dict[str, Predictor] = {"model": opened.model}
    if has_evidence(path):
        predictors["evidence"] = Evidence.load(path)
    plan = prepare(opened.dataset, PROTOCOL, Settings(tau=opened.tau, seed=seed))
    found = evaluate(plan, predictors, bootstrap=Bootstrap(0), tell=lambda _, share: steps.within(share))
    if importlib.util.find_spec("matplotlib") is None:
        return found, None
    name = found.rows[-1].name
    return found, write_report(path / REPORT, found, plan, predictors[name], name, opened.run.trace())


def _train_finally(dataset: Dataset, judged: Sequence[Path], path: Path, reference: str, steps: Steps) -> None:
    """Train on all facts, or go on with it, and give the run the evidence of the one that was judged."""
    whole = all_known(dataset)
    models = [path, *(each.with_name(f"{each.name}.final") for each in judged[1:])]
    for before, each in zip(judged, models, strict=True):
        _train(whole, each, as_long(before), reference, steps)
    Run(path).update(judged=judged[0].name)
    if has_evidence(judged[0]) and not has_evidence(path):
        evidence_over_all(judged[0], models, whole).save(path)
