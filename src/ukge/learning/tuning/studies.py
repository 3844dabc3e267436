"""The study directory: what a search for hyper-parameters tried, found, and still has to do.

study.json       what is searched, on which data: a search is only resumed if this is the same
journal.log      Optuna's record of the trials, one JSON object per line
best.toml        the best settings so far, ready for `ukge train --config`
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ukge.errors import ConfigError, RunError
from ukge.learning.tuning.search_spaces import Choices, Range, Space, Value
from ukge.registry import Registry
from ukge.settings.config import Config, to_toml
from ukge.storage.files import write_atomically, writing
from ukge.storage.locks import LOCK, alone

if TYPE_CHECKING:
    import optuna

FORMAT = 1
MANIFEST, JOURNAL, BEST = "study.json", "journal.log", "best.toml"
COMPLETE, DEAD, PRUNED, FAILED = "complete", "dead", "pruned", "failed"
INTERRUPTED, RUNNING = "interrupted", "running"
INSTALL = "Install it: pip install 'ukge[tune]'"

pruners: Registry[Callable[[int], optuna.pruners.BasePruner]] = Registry("pruner", "ukge.pruners")


@pruners.register("median")
def _median(every: int) -> optuna.pruners.BasePruner:
    """Give up a trial whose best value so far is worse than the median of the others at that epoch."""
    from optuna.pruners import MedianPruner  # noqa: PLC0415 — an extra, loaded when a search begins

    return MedianPruner(n_startup_trials=5, n_warmup_steps=3 * every)


@pruners.register("halving")
def _halving(every: int) -> optuna.pruners.BasePruner:
    """Let a third of the trials go on, again and again (asynchronous successive halving)."""
    from optuna.pruners import SuccessiveHalvingPruner  # noqa: PLC0415

    return SuccessiveHalvingPruner(min_resource=3 * every, reduction_factor=3)


@pruners.register("none")
def _none(every: int) -> optuna.pruners.BasePruner:  # noqa: ARG001
    """Run every trial to its end."""
    from optuna.pruners import NopPruner  # noqa: PLC0415

    return NopPruner()


@dataclass(frozen=True, slots=True)
class TrialSummary:
    """One training of a search. `epoch` is that of the best validation, `epochs` the last one that was validated."""

    number: int
    state: str
    value: float | None
    epoch: int | None
    epochs: int
    seconds: float | None
    settings: Mapping[str, Value]
    note: str = ""


class Study:
    """A study directory that this process alone writes to."""

    def __init__(self, path: Path, record: optuna.Study, space: Space, *, higher_is_better: bool) -> None:
        self.path = path
        self.record = record
        self.space = space
        self.higher_is_better = higher_is_better

    def trials(self) -> list[TrialSummary]:
        """Return all trials, in order."""
        return [self._summary(trial) for trial in self.record.get_trials(deepcopy=False)]

    def done(self) -> list[TrialSummary]:
        """Return the trials that count: those that ended, well or not."""
        return [trial for trial in self.trials() if trial.state in (COMPLETE, DEAD, PRUNED, FAILED)]

    def best(self) -> TrialSummary | None:
        """Return the best complete trial, the earliest of equals; a dead one is never it, whatever its value."""
        complete = [trial for trial in self.trials() if trial.state == COMPLETE and trial.value is not None]
        sign = -1.0 if self.higher_is_better else 1.0
        return min(complete, key=lambda trial: sign * (trial.value or 0.0), default=None)

    def ask(self, seed: int, point: Mapping[str, Value] | None) -> optuna.Trial:
        """Begin a trial: at `point` as far as that goes, else where Optuna suggests.

        The suggestion depends on the seed and the trials before it alone, so that a search that was killed goes on as
        if it had not been.
        """
        import optuna  # noqa: PLC0415

        self.record.sampler = optuna.samplers.TPESampler(seed=seed)
        waiting = self.record.get_trials(deepcopy=False, states=(optuna.trial.TrialState.WAITING,))
        if point and not waiting:
            self.record.enqueue_trial(dict(point))
        return self.record.ask(_distributions(self.space))

    def finish(self, trial: optuna.Trial, state: str, *, value: float | None = None, note: str = "") -> TrialSummary:
        """End a trial as COMPLETE or DEAD with its value, as PRUNED, or as FAILED or INTERRUPTED; note the reason."""
        from optuna.trial import TrialState  # noqa: PLC0415

        states = {COMPLETE: TrialState.COMPLETE, DEAD: TrialState.COMPLETE, PRUNED: TrialState.PRUNED}
        if note:
            trial.set_user_attr("note", note)
        if state == DEAD:
            trial.set_user_attr(DEAD, True)
        return self._summary(self.record.tell(trial, value, states.get(state, TrialState.FAIL)))

    def keep_best(self, base: Config) -> Config | None:
        """Return the best settings so far, and see that `best.toml` holds them, or is not there if there are none."""
        best, file = self.best(), self.path / BEST
        if best is None:
            file.unlink(missing_ok=True)
            return None
        config = base.replace(**best.settings)
        content = to_toml(config).encode()
        if not file.is_file() or file.read_bytes() != content:
            write_atomically(file, content)
        return config

    def _mark_interrupted(self) -> None:
        """End the trials of a process that was killed; they are run again and do not count."""
        from optuna.trial import TrialState  # noqa: PLC0415

        for trial in self.record.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            self.record.tell(trial.number, state=TrialState.FAIL)

    def _summary(self, trial: optuna.trial.FrozenTrial) -> TrialSummary:
        from optuna.trial import TrialState  # noqa: PLC0415

        note = str(trial.user_attrs.get("note", ""))
        states = {TrialState.COMPLETE: COMPLETE, TrialState.PRUNED: PRUNED, TrialState.FAIL: FAILED}
        state = states.get(trial.state, RUNNING)
        if state == FAILED and not note:
            state = INTERRUPTED
        if state == COMPLETE and trial.user_attrs.get(DEAD):
            state = DEAD
        seen = trial.intermediate_values
        pick = max if self.higher_is_better else min
        epoch = pick(seen, key=lambda step: seen[step], default=None)
        value = trial.value if state in (COMPLETE, DEAD) else None if epoch is None else seen[epoch]
        # An interrupted trial is only marked when the search goes on, so nobody knows how long it ran.
        known = state in (COMPLETE, DEAD, PRUNED, FAILED) and trial.duration is not None
        seconds = trial.duration.total_seconds() if known and trial.duration is not None else None
        return TrialSummary(trial.number, state, value, epoch, max(seen, default=0), seconds, dict(trial.params), note)


@contextmanager
def open_study(
    path: str | Path, about: Mapping[str, Any], space: Space, *, pruner: str, every: int, higher_is_better: bool
) -> Iterator[Study]:
    """Make a study directory, or go on with one that is about the same; nobody else may use it meanwhile."""
    optuna = _optuna()
    chosen = pruners.get(pruner)(every)
    path = Path(path)
    with alone(path, hint="Wait for it, or choose another ‹directory›."), _quiet(optuna), writing(path):
        path.mkdir(parents=True, exist_ok=True)
        _check_manifest(path, {"format": FORMAT, **about})
        record = _record(path / JOURNAL, chosen, higher_is_better=higher_is_better)
        study = Study(path, record, space, higher_is_better=higher_is_better)
        study._mark_interrupted()
        yield study


@contextmanager
def _quiet(optuna: Any) -> Iterator[None]:
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(verbosity)


def _optuna() -> Any:
    try:
        import optuna  # noqa: PLC0415
    except ImportError:
        raise ConfigError("a search needs Optuna, which is not installed", hint=INSTALL) from None
    return optuna


def _check_manifest(path: Path, about: Mapping[str, Any]) -> None:
    file = path / MANIFEST
    if not file.exists():
        if any(entry.name != LOCK for entry in path.iterdir()):
            raise RunError(f"{path} is not empty and holds no search", hint="Choose another ‹directory›.")
        write_atomically(file, json.dumps(about, indent=2, ensure_ascii=False).encode())
        return
    try:
        before = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise RunError(
            f"{file} is damaged: it is not JSON", hint="Restore it, or choose another ‹directory›."
        ) from None
    known, now = _flat(before), _flat(json.loads(json.dumps(about)))
    for name in sorted(known.keys() | now.keys()):
        was, is_now = known.get(name), now.get(name)
        if was != is_now:
            raise RunError(
                f"{path} holds another search: {name} was {was!r}, now it is {is_now!r}",
                hint="Give the settings it began with to go on with it, or choose another ‹directory›.",
            )


def _flat(value: Any, name: str = "") -> dict[str, Any]:
    if not isinstance(value, dict):
        return {name: value}
    return {
        key: leaf for part, inner in value.items() for key, leaf in _flat(inner, f"{name}.{part}".strip(".")).items()
    }


def _record(journal: Path, pruner: Any, *, higher_is_better: bool) -> optuna.Study:
    """Open Optuna's journal; a last line that a kill cut short is dropped, or the next one would be glued to it."""
    import optuna  # noqa: PLC0415
    from optuna.storages import JournalStorage  # noqa: PLC0415
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock  # noqa: PLC0415

    class AlreadyLocked(JournalFileOpenLock):
        """Optuna's own lock survives a kill and then holds up the next process; the directory is locked already."""

        def acquire(self) -> bool:
            return True

        def release(self) -> None:
            pass

    if journal.exists():
        content = journal.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            write_atomically(journal, whole)
    try:
        storage = JournalStorage(JournalFileBackend(str(journal), lock_obj=AlreadyLocked(str(journal))))
        return optuna.create_study(
            storage=storage,
            study_name="ukge",
            direction="maximize" if higher_is_better else "minimize",
            pruner=pruner,
            load_if_exists=True,
        )
    except (ValueError, LookupError, TypeError, AttributeError, AssertionError, RecursionError) as error:
        raise RunError(
            f"{journal} is damaged: {error}", hint="Restore it, or begin a new search with another ‹directory›."
        ) from None


def _distributions(space: Space) -> dict[str, optuna.distributions.BaseDistribution]:
    from optuna.distributions import (  # noqa: PLC0415
        BaseDistribution,
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )

    def one(values: Choices | Range) -> BaseDistribution:
        if isinstance(values, Choices):
            return CategoricalDistribution(values.values)
        if values.whole:
            return IntDistribution(int(values.low), int(values.high), log=True)
        return FloatDistribution(values.low, values.high, log=True)

    return {name: one(values) for name, values in space.items()}
