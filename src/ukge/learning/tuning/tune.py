"""The search for hyper-parameters: many trainings, judged on the validation facts alone, kept in a study directory."""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np

from ukge.errors import ConfigError, RunError, in_python, refuse_unknown_keywords, worded
from ukge.graph.dataset import Dataset
from ukge.learning.data import ground_rules, opened
from ukge.learning.estimator_settings import EstimatorSettings
from ukge.learning.memory import estimate, refuse_if_too_large
from ukge.learning.train import EpochEvent, train
from ukge.learning.tuning.search_spaces import Space, Value, defaults_in, grid, space_for
from ukge.learning.tuning.studies import COMPLETE, DEAD, FAILED, PRUNED, Study, TrialSummary, open_study
from ukge.learning.validation import metrics
from ukge.logic.ground_rules import GroundRules
from ukge.settings.config import Config

if TYPE_CHECKING:
    import optuna

TRIALS = 50
IRRELEVANT = ("threads", "checkpoint_seconds", "tensorboard", "device", "engine")
"""Settings that may differ when a search is resumed: they change no result, or none to speak of."""


class Hooks(TypedDict, total=False):
    """Who is told how a search goes on."""

    on_start: Callable[[int, int, Config], None]
    """a trial begins: how many are done, how many there will be in all, and its settings"""
    on_epoch: Callable[[EpochEvent], None]
    on_trial: Callable[[TrialSummary], None]


@dataclass(frozen=True)
class TuneResult:
    """What a search found; `config` holds the best settings, if any trial came to an end."""

    directory: Path
    model: str
    metric: str
    higher_is_better: bool
    trials: tuple[TrialSummary, ...]
    best: TrialSummary | None
    config: Config | None


def tune(
    data: Any,
    model: str | EstimatorSettings = "ukge-rect",
    *,
    directory: str | Path,
    space: str = "paper",
    trials: int | None = None,
    timeout: float | None = None,
    pruner: str = "median",
    rules: GroundRules | str | Path | None = None,
    **hooks: Unpack[Hooks],
) -> TuneResult:
    """Search a space of settings, or go on with the search that `directory` holds; `data` is what `UKGE.fit` takes.

    `model` is a model's name, or a `UKGE` that is not trained: settings that were given to it by name are fixed and not
    searched, and its `config` holds those that are neither searched nor fixed. The search ends with `trials` trials in
    all (the whole grid, or 50 where the space has no end), or begins no new one after `timeout` seconds of this call. A
    trial that diverges, or does not fit into memory, is recorded as failed, one that predicts the same for everything
    as dead: neither can be the best. The best settings so far are in `best.toml`; the same call goes on with a search
    that was interrupted. `hooks` (`on_start`, `on_epoch`, `on_trial`) are told how it goes on.
    """
    estimator = EstimatorSettings(model) if isinstance(model, str) else model
    base, fixed = estimator.settings.replace(probe="none"), estimator.given()
    refuse_unknown_keywords("tune", hooks, Hooks.__annotations__, "Settings are given to the model: UKGE(dim=64).")
    for name, value in (("trials", trials), ("timeout", timeout)):
        if value is not None and value <= 0:
            raise ConfigError(f"{name} must be above 0, not {value}")
    seed = base.runtime.seed
    dataset, _ = opened(data, seed=seed, leak_safe=False, caller="tune")
    ground = ground_rules(dataset, rules, base)
    searched = space_for(space, base, ground is not None, fixed)
    if not searched:
        raise ConfigError(
            f"nothing is left to search: every setting of the space '{space}' is fixed", hint="Fix fewer settings."
        )
    metric = metrics.get(base.stopping.metric)
    about = _about(estimator.model, space, pruner, base, searched, dataset, ground)
    with open_study(
        directory,
        about,
        searched,
        pruner=pruner,
        every=base.stopping.every,
        higher_is_better=metric.higher_is_better,
    ) as study:
        search = _Search(study, dataset, ground, base, hooks)
        study.keep_best(base)  # a search that was killed may have left an older one
        search.run(trials, timeout)
        best = study.best()
        return TuneResult(
            study.path,
            estimator.model,
            base.stopping.metric,
            metric.higher_is_better,
            tuple(study.trials()),
            best,
            None if best is None else base.replace(**best.settings),
        )


@dataclass
class _Search:
    """One call of `tune`."""

    study: Study
    dataset: Dataset
    rules: GroundRules | None
    base: Config
    hooks: Hooks

    def run(self, trials: int | None, timeout: float | None) -> None:
        """Run trials until there are enough, or no time or no point is left."""
        began = time.monotonic()
        seed = self.base.runtime.seed
        points = grid(self.study.space, seed)
        total = _total(points, trials)
        while True:
            done = self.study.done()
            if len(done) >= total or (timeout is not None and time.monotonic() - began >= timeout):
                return
            if points is not None:
                tried = [trial.settings for trial in done]
                point = next(point for point in points if point not in tried)
            else:
                point = {} if done else defaults_in(self.study.space, self.base)
            mixed = int(np.random.SeedSequence([seed, len(done)]).generate_state(1)[0])
            trial = self.study.ask(mixed, point)
            config = self.base.replace(**trial.params)
            if "on_start" in self.hooks:
                self.hooks["on_start"](len(done), total, config)
            summary = self._try(trial, config)
            self.study.keep_best(self.base)
            if "on_trial" in self.hooks:
                self.hooks["on_trial"](summary)

    def _try(self, trial: optuna.Trial, config: Config) -> TrialSummary:
        from optuna import TrialPruned  # noqa: PLC0415 — an extra, loaded when a search begins

        def report(event: EpochEvent) -> None:
            if "on_epoch" in self.hooks:
                self.hooks["on_epoch"](event)
            if event.value is not None:
                trial.report(event.value, step=event.epoch)
                if trial.should_prune():
                    raise TrialPruned

        train_facts, val_facts = self.dataset.train, self.dataset.val
        try:
            self._refuse_if_too_large(config)
            trained = train(train_facts, val_facts, config, rules=self.rules, callbacks=[report])
        except TrialPruned:
            return self.study.finish(trial, PRUNED)
        except RunError as error:
            return self.study.finish(trial, FAILED, note=error.what)
        if trained.best is None or not math.isfinite(trained.best):
            return self.study.finish(trial, FAILED, note=f"its validation {trained.metric} is {trained.best}")
        if trained.collapsed is not None and not trained.collapsed.harmless:
            note = f"one prediction for everything: {worded(trained.collapsed.cause, in_python)}"
            return self.study.finish(trial, DEAD, value=trained.best, note=note)
        return self.study.finish(trial, COMPLETE, value=trained.best)

    def _refuse_if_too_large(self, config: Config) -> None:
        """Turn the refusal of one trial's size into its failure: another trial may fit."""
        facts = self.dataset.train
        n_rules = 0 if self.rules is None else len(self.rules)
        try:
            refuse_if_too_large(estimate(config, facts.n_entities, facts.n_relations, len(facts), n_rules))
        except ConfigError as error:
            raise RunError(error.what) from None


def _total(points: list[dict[str, Value]] | None, trials: int | None) -> int:
    if points is None:
        return TRIALS if trials is None else trials
    return len(points) if trials is None else min(trials, len(points))


def _about(
    model: str,
    space: str,
    pruner: str,
    base: Config,
    searched: Space,
    dataset: Dataset,
    rules: GroundRules | None,
) -> dict[str, Any]:
    """Return all that the trials of a search have in common, as JSON-able values."""
    settings = {
        section: {n: v for n, v in values.items() if n not in searched and n not in IRRELEVANT}
        for section, values in base.to_dict().items()
    }
    return {
        "model": model,
        "space": space,
        "pruner": pruner,
        "searched": {name: str(values) for name, values in searched.items()},
        "settings": settings,
        "data": {
            "train": dataset.train.fingerprint,
            "val": dataset.val.fingerprint,
            "rules": "" if rules is None else _digest(rules),
        },
    }


def _digest(rules: GroundRules) -> str:
    hasher = hashlib.sha256()
    for column in (rules.head, rules.relation, rules.tail, rules.body, rules.weight):
        hasher.update(column.tobytes())
    return hasher.hexdigest()
