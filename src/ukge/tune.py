"""Searching hyper-parameters on validation data: pruned, resumable, with every trial on record."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ukge.config import Config, to_toml
from ukge.engines.base import GroundRules
from ukge.errors import ConfigError, RunError
from ukge.graph.dataset import Dataset
from ukge.registry import Registry
from ukge.rule_sources import OWN, rules_for
from ukge.storage import write_atomically
from ukge.train import EpochEvent, train
from ukge.validation import metrics
from ukge.variants import variant

if TYPE_CHECKING:
    import optuna

Suggest = Callable[["optuna.Trial"], dict[str, Any]]
PAPER_GRID: dict[str, list[Any]] = {
    "lr": [0.001, 0.005, 0.01],
    "dim": [64, 128, 256, 512],
    "batch_size": [128, 256, 512, 1024],
}


@dataclass(frozen=True, slots=True)
class TrialNote:
    """One trial: what was tried, what came of it (`complete`, `pruned` or `fail`), and its validation metric."""

    number: int
    state: str
    value: float | None
    best_epoch: int | None
    seconds: float | None
    settings: dict[str, Any]
    why: str | None = None


@dataclass(frozen=True, slots=True)
class TuneResult:
    """The trials of a study, in order, and the best settings."""

    model: str
    metric: str
    higher_is_better: bool
    trials: tuple[TrialNote, ...]
    best: Config | None

    @property
    def best_trial(self) -> TrialNote | None:
        """The completed trial with the best validation metric."""
        done = [t for t in self.trials if t.state == "complete" and t.value is not None]
        sign = -1.0 if self.higher_is_better else 1.0
        return min(done, key=lambda t: sign * (t.value or 0.0), default=None)


spaces: Registry[Suggest] = Registry("space")


@spaces.register("paper")
def _paper(trial: optuna.Trial) -> dict[str, Any]:
    """The paper's grid."""
    return {name: trial.suggest_categorical(name, values) for name, values in PAPER_GRID.items()}


@spaces.register("wide")
def _wide(trial: optuna.Trial) -> dict[str, Any]:
    """What matters beyond the paper's grid: regularisation, negatives and rules as well."""
    return {
        "lr": trial.suggest_float("lr", 3e-4, 3e-2, log=True),
        "dim": trial.suggest_categorical("dim", [64, 128, 256, 512]),
        "batch_size": trial.suggest_categorical("batch_size", [128, 256, 512, 1024, 2048]),
        "l2": trial.suggest_float("l2", 1e-5, 3e-2, log=True),
        "negatives": trial.suggest_categorical("negatives", [5, 10, 20]),
        "negative_weight": trial.suggest_float("negative_weight", 0.25, 4.0, log=True),
        "rule_weight": trial.suggest_float("rule_weight", 1e-3, 1.0, log=True),
        "init_scale": trial.suggest_float("init_scale", 0.05, 0.5, log=True),
    }


def tune(
    dataset: Dataset,
    model: str,
    *,
    directory: str | Path,
    space: str = "paper",
    trials: int = 20,
    timeout: float | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    rules: str | Path = OWN,
    on_trial: Callable[[TrialNote], None] | None = None,
) -> TuneResult:
    """Run trials until the study holds `trials` of them (or time is out); a study that exists is gone on with.

    Only training and validation facts are looked at. `settings` are fixed for all trials. The best settings are kept in
    `best.toml` of the directory, ready for `ukge train --config`.
    """
    study = Study(dataset, model, Path(directory), space, seed, dict(settings or {}))
    return study.run(rules, trials, timeout, on_trial)


class Study:
    """A study directory: `journal.log` (all trials), `study.json` (what is searched), `best.toml` (the best so far)."""

    def __init__(
        self, dataset: Dataset, model: str, path: Path, space: str, seed: int, settings: dict[str, Any]
    ) -> None:
        self.optuna = _optuna()
        self.dataset, self.model, self.path, self.seed, self.settings = dataset, model, path, seed, settings
        self.base = variant(model).replace(**settings)
        self.suggest = spaces.get(space)
        self.metric = self.base.stopping.metric
        self.higher_is_better = metrics.get(self.metric).higher_is_better
        path.mkdir(parents=True, exist_ok=True)
        self._same_search({"model": model, "space": space, "settings": settings, "train": dataset.train.fingerprint})
        self.study = self._open(space)

    def run(
        self,
        rules: str | Path,
        trials: int,
        timeout: float | None,
        on_trial: Callable[[TrialNote], None] | None,
    ) -> TuneResult:
        """Run what is missing of the trials."""
        ground = rules_for(self.dataset, rules, self.base.sampling.tau)

        def told(_: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
            self._keep_best()
            if on_trial is not None:
                on_trial(as_note(trial))

        left = trials - len(self.study.trials)
        if left > 0:
            self.study.optimize(
                lambda trial: self._objective(trial, ground),
                n_trials=left,
                timeout=timeout,
                catch=(RunError,),
                callbacks=[told],
            )
        return self.result()

    def result(self) -> TuneResult:
        """Return the trials so far."""
        notes = tuple(as_note(trial) for trial in self.study.trials)
        found = TuneResult(self.model, self.metric, self.higher_is_better, notes, None)
        best = found.best_trial
        config = None if best is None else self.base.replace(**{**best.settings, **self.settings})
        return TuneResult(self.model, self.metric, self.higher_is_better, notes, config)

    def _objective(self, trial: optuna.Trial, ground: GroundRules | None) -> float:
        config = self.base.replace(**{**self.suggest(trial), **self.settings})

        def report(event: EpochEvent) -> None:
            if event.value is None:
                return
            trial.report(event.value, event.epoch)
            if trial.should_prune():
                raise self.optuna.TrialPruned

        try:
            trained = train(self.dataset.train, self.dataset.val, config, rules=ground, callbacks=[report])
        except RunError as error:
            trial.set_user_attr("why", error.what)
            raise
        trial.set_user_attr("best_epoch", trained.best_epoch)
        if trained.best is None:
            raise RunError("the trial ended without a validation")
        return trained.best

    def _open(self, space: str) -> optuna.Study:
        journal = self.optuna.storages.journal
        storage = journal.JournalStorage(journal.JournalFileBackend(str(self.path / "journal.log")))
        study: optuna.Study = self.optuna.create_study(
            study_name="ukge",
            storage=storage,
            direction="maximize" if self.higher_is_better else "minimize",
            load_if_exists=True,
            pruner=self.optuna.pruners.MedianPruner(n_startup_trials=4, n_warmup_steps=self.base.stopping.every),
        )
        state = self.optuna.trial.TrialState
        for trial in study.get_trials(states=(state.RUNNING,)):
            study.tell(trial.number, state=state.FAIL)  # a search that was killed left it behind
        # A fresh seed per start: the same one would propose again what the study has already seen.
        seed = self.seed + len(study.trials)
        if space == "paper":
            study.sampler = self.optuna.samplers.GridSampler(PAPER_GRID, seed=self.seed)
        else:
            study.sampler = self.optuna.samplers.TPESampler(seed=seed, multivariate=True)
        return study

    def _same_search(self, search: dict[str, Any]) -> None:
        file = self.path / "study.json"
        if not file.is_file():
            if any(self.path.iterdir()):
                raise RunError(f"{self.path} is not empty and holds no study", hint="Choose another --out.")
            write_atomically(file, json.dumps(search, indent=2).encode())
            return
        found = json.loads(file.read_text(encoding="utf-8"))
        for name, value in search.items():
            if found.get(name) != value:
                raise RunError(
                    f"{self.path} is a study of another {name}: {found.get(name)}",
                    hint="Go on with the same arguments, or choose another --out.",
                )

    def _keep_best(self) -> None:
        best = self.result().best
        if best is not None:
            write_atomically(self.path / "best.toml", to_toml(best).encode())


def as_note(trial: optuna.trial.FrozenTrial) -> TrialNote:
    """Return a trial of Optuna's as a plain note."""
    value = trial.value
    if value is None and trial.intermediate_values:
        value = trial.intermediate_values[max(trial.intermediate_values)]
    return TrialNote(
        trial.number,
        trial.state.name.lower(),
        value,
        trial.user_attrs.get("best_epoch"),
        None if trial.duration is None else trial.duration.total_seconds(),
        dict(trial.params),
        trial.user_attrs.get("why"),
    )


def _optuna() -> Any:
    try:
        import optuna  # noqa: PLC0415 — an extra
        import optuna.storages.journal  # noqa: PLC0415
    except ImportError:
        raise ConfigError("Optuna is not installed", hint="pip install 'ukge[tune]'") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
