"""`refresh`: a run trained on from its present weights, on all facts, those that were added too; and what that changed.

What was held out for validation and test stays so. The evidence keeps its trees and bounds, and is read over the new
weights. The old run stays until the new one, evidence and all, takes its place in one step.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ukge.asking import Predictor
from ukge.errors import ConfigError, RunError
from ukge.evidence import Evidence
from ukge.evidence.backbones import Backbone
from ukge.graph.dataset import Dataset
from ukge.graph.fact import Fact
from ukge.learning.train import train
from ukge.learning.validation import Validation, metrics
from ukge.models.losses import losses
from ukge.models.tables import Parameters
from ukge.progress.bars import watched_training
from ukge.runs.additions import OWN
from ukge.runs.directory import CHECKPOINT, EVIDENCE, Run
from ukge.runs.journal import FOLDER
from ukge.runs.learnt import Callback, Learnt, Trained
from ukge.runs.manifest import DataNote
from ukge.settings.config import Config
from ukge.storage.locks import alone

SHARE = 0.3
"""Epochs of a refresh, for each epoch that was the best of the training."""

REPLACED = frozenset({EVIDENCE, FOLDER, CHECKPOINT, "index"})
"""What a run directory keeps that a refresh makes anew, or makes needless."""

COMPARED = 20_000
"""Known facts by which it is told what moved."""

TOLD = 5
"""Relations, and facts, that moved most and are told."""


@dataclass(frozen=True)
class Moved:
    """How far what is said of a relation's known facts moved, on average."""

    relation: str
    facts: int
    change: float


@dataclass(frozen=True)
class MovedFact:
    """A fact of which another confidence is said."""

    fact: Fact
    before: float
    after: float


@dataclass(frozen=True)
class Figures:
    """Errors before and after: by the metric of the training, and mean squared ones of evidence; None without any."""

    metric: str
    before: float | None
    after: float | None
    evidence_before: float | None
    evidence_after: float | None


@dataclass(frozen=True)
class Refreshed:
    """What a refresh changed."""

    run: Path
    additions: int
    facts: int
    """facts that were added and are trained on now"""
    entities: int
    relations: int
    epochs: int
    seconds: float
    figures: Figures
    change: float
    """how far what is said of known facts moved, on average"""
    relations_moved: tuple[Moved, ...]
    facts_moved: tuple[MovedFact, ...]


def refresh(
    run: str | Path,
    *,
    epochs: int | None = None,
    progress: bool | None = None,
    callbacks: tuple[Callback, ...] = (),
    on_facts: Callable[[int], None] | None = None,
) -> Refreshed:
    """Train a run on from its present weights, on all facts that it knows by now, and return what changed.

    Additions become training facts, and cannot be undone then. A run without any is refused, unless `epochs` are given,
    which else are a share of those that were the best. `progress` shows a bar; `callbacks` hear of every epoch,
    `on_facts` of facts gone through.
    """
    if epochs is not None and epochs < 1:
        raise ConfigError(f"‹epochs› is {epochs}: there is no such training", hint="Give 1 or more.")
    path = Path(run)
    Run(path).manifest()  # says if there is no run
    with alone(path, hint="Wait for it, then give the same command again."):
        opened = Run.open(path)
        if opened.added is None and epochs is None:
            raise RunError(
                f"nothing is added to {path}: it knows no more than it was trained on",
                hint="Say for how many ‹epochs=...› to train it on all the same.",
            )
        learnt, before = Learnt.load(opened, copied=True), Predictor.open(path, copied=True)
        config, dataset = _settings(opened, learnt, epochs), before.dataset
        added = opened.added
        counts = (0, 0, 0, 0) if added is None else (len(added), len(added.facts), *_more(opened))
        title = f"refreshing {path.name}: {len(dataset.train):,} facts"
        with watched_training(progress, title, callbacks, on_facts) as (heard, counting):
            trained = train(
                dataset.train,
                dataset.val,
                config,
                rules=opened.rules,
                resume=_own(learnt.trained.parameters),
                callbacks=heard,
                on_facts=counting,
            )
        now = replace(learnt, trained=trained, trace=[event.line() for event in trained.events])
        evidence = None if before.evidence is None else _read_over(before.evidence, now)
        _write(opened, dataset, now, evidence)
        after = Predictor.open(path, copied=True)
    figures = _figures(dataset, learnt, now.trained, before, after)
    return Refreshed(path, *counts, trained.epochs, trained.seconds, figures, *_moved(before, after))


def _settings(run: Run, learnt: Learnt, epochs: int | None) -> Config:
    """Return the settings of the run, for a few epochs; a run that cannot be trained on is refused."""
    config = run.config
    if run.kept is None:
        raise RunError(f"{run.path} refers to facts elsewhere", hint="Train it again on these.")
    if config.model.encodes or getattr(losses.get(config.objective.loss), "pseudo", None) is not None:
        raise RunError(
            f"{run.path} has an encoder, or a student who learnt from a teacher: such a training does not go on from "
            "the weights that it kept",
            hint="Train again on all facts.",
        )
    best = learnt.trained.best_epoch if learnt.trained.best_epoch > 0 else learnt.trained.epochs
    chosen = math.ceil(SHARE * best) if epochs is None else epochs
    every = min(config.stopping.every, max(1, chosen // 3))
    return config.replace(epochs=max(1, chosen), every=every, probe="none", memory_map=False)


def _own(weights: Parameters) -> Parameters:
    """Return weights that may be written to."""
    return Parameters.of({name: np.array(array) for name, array in weights.as_dict().items()})


def _read_over(evidence: Evidence, now: Learnt) -> Evidence:
    """Return evidence with the same trees over the weights that were trained on; other models of it stay."""
    backbones = tuple(Backbone.of(now, each.name) if name == OWN else each for name, each in evidence.models.items())
    return evidence.over(replace(evidence.features, backbones=backbones))


def _write(old: Run, dataset: Dataset, now: Learnt, evidence: Evidence | None) -> None:
    """Let the run take the place of the old one, whole."""
    manifest = old.manifest()
    note = DataNote.of(dataset, old.data.reference)
    kept = replace(dataset, claims=old.claims())
    made = Run.create(old.path, old.config, note, kept, old.rules, model=manifest["model"], overwrite=True)
    try:
        now.write(made, **{name: manifest[name] for name in ("judged", "probe") if name in manifest})
        _keep_others(old.path, made.path)
        if evidence is not None:
            evidence.save(made.path / EVIDENCE, held=True)
        made.publish()
    finally:
        made.discard()


def _keep_others(old: Path, made: Path) -> None:
    """Copy what somebody else keeps in a run directory, such as labels and reports: it is not of the training."""
    for each in old.iterdir():
        if each.name in REPLACED or each.name.startswith(".") or (made / each.name).exists():
            continue
        if each.is_dir():
            shutil.copytree(each, made / each.name, symlinks=True)
        else:
            shutil.copy2(each, made / each.name)


def _more(run: Run) -> tuple[int, int]:
    """Return how many entities and relations were added."""
    entities, relations = (
        len(names) - len(trained) for names, trained in zip(run.vocabularies, run.trained_vocabularies, strict=True)
    )
    return entities, relations


def _figures(dataset: Dataset, old: Learnt, now: Trained, before: Predictor, after: Predictor) -> Figures:
    """Return errors on validation facts before and after."""
    config, val = now.config, dataset.val
    if not len(val):
        return Figures(config.stopping.metric, None, None, None, None)
    validation = Validation(dataset.train, val, config.sampling.tau, config.runtime.seed)
    metric = metrics.get(config.stopping.metric)(validation)
    measured = [metric.measure(each) for each in (old.predictor, now.model())]
    of_evidence: list[float | None] = [None, None]
    if before.evidence is not None:
        said = [each.judge(val.head, val.relation, val.tail, assume_holds=True).confidence for each in (before, after)]
        of_evidence = [float(np.mean((each - val.confidence) ** 2)) for each in said]
    return Figures(config.stopping.metric, *measured, *of_evidence)


def _moved(before: Predictor, after: Predictor) -> tuple[float, tuple[Moved, ...], tuple[MovedFact, ...]]:
    """Return how far what is said of known facts moved: on average, by relation, and the facts that moved most."""
    facts = before.known.all()
    rows = np.random.default_rng(0).permutation(len(facts.head))[:COMPARED]
    head, relation, tail = (column[rows] for column in facts[:3])
    old, new = (each.judge(head, relation, tail).confidence for each in (before, after))
    change = np.abs(new - old)
    count = np.bincount(relation, minlength=len(before.relations))
    mean = np.bincount(relation, weights=change, minlength=len(count)) / np.maximum(count, 1)
    most = [int(each) for each in np.argsort(-mean, kind="stable")[:TOLD] if count[each]]
    moved = tuple(Moved(before.relations[each], int(count[each]), float(mean[each])) for each in most)
    entities, relations = before.names
    told = tuple(
        MovedFact(
            Fact(entities[head[at]], relations[relation[at]], entities[tail[at]], float(facts.confidence[rows[at]])),
            float(old[at]),
            float(new[at]),
        )
        for at in np.argsort(-change, kind="stable")[:TOLD]
    )
    return float(change.mean()) if len(change) else 0.0, moved, told
