"""The search for settings that `fit` makes: within some seconds, kept in a directory, where it goes on."""

from __future__ import annotations

import importlib.util
import math
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from ukge.graph.dataset import Dataset
from ukge.learning.engines import resolve
from ukge.learning.estimator import UKGE
from ukge.learning.probe import probe
from ukge.learning.tuning.studies import COMPLETE, TrialSummary
from ukge.learning.tuning.tune import tune
from ukge.progress.steps import Steps
from ukge.runs.learnt import EpochEvent
from ukge.settings.config import Config, read_config, to_toml
from ukge.settings.variants import probed, variant
from ukge.storage.files import write_atomically

MODEL, SPACE = "ukge-rect", "fit"
PROBE, SEARCH = "probing rate and λ", "searching settings"

PROBING = 0.2
"""Share of the search's time that the probe before it has beside it: the search looks at rate and λ too."""

TRAININGS = 6
"""Whole trainings that the search shall have time for: on a large graph each has fewer epochs."""

FEWEST_EPOCHS = 10
NO_TIME = 1e-9
BASE, DONE, STUDY = "base.toml", "done", "study"


class Chosen(NamedTuple):
    """The settings that validation chose, what was tried, and what is to be said of it."""

    config: Config
    trials: tuple[TrialSummary, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Search:
    """The search for settings within some seconds; what it found is kept in a directory, where it goes on."""

    dataset: Dataset
    place: Path
    seconds: float
    steps: Steps

    def choose(self, seed: int) -> Chosen:
        """Return the best settings: by successive halving, or without Optuna those of the probe."""
        base = self.base(seed)
        if importlib.util.find_spec("optuna") is None:
            note = "only rate and λ were searched; Optuna searches all settings: pip install 'ukge[tune]'"
            return Chosen(base, (), (note,))
        from optuna import TrialPruned  # noqa: PLC0415 — an extra

        done, began = self.place / DONE, time.monotonic()
        ended: list[TrialSummary] = []

        def hear(_: EpochEvent) -> None:
            share = 1.0 - (left - (time.monotonic() - began)) / self.seconds
            self.steps.within(min(1.0, share))
            if share > 1.0 and any(trial.state == COMPLETE for trial in ended):
                raise TrialPruned  # the time is over, and there is a best one

        self.steps.begin(SEARCH)
        place, model = self.place / STUDY, UKGE(MODEL, config=base)
        search = partial(tune, self.dataset, model, directory=place, space=SPACE, pruner="halving")
        found = search(timeout=NO_TIME)  # what was tried before it was stopped
        ended += found.trials
        left = self.seconds - sum(trial.seconds or 0.0 for trial in found.trials)
        if left > 0 and not done.is_file():
            found = search(timeout=left, on_epoch=hear, on_trial=ended.append)
        write_atomically(done, b"")
        return Chosen(found.config or base, found.trials, ())

    def base(self, seed: int) -> Config:
        """Return what the search begins with: the rate and λ of a probe, and epochs that leave time for trainings.

        It is written down: a search that is gone on with must begin with the same.
        """
        file = self.place / BASE
        if file.is_file():
            return read_config(file)
        config = probed(variant(MODEL).replace(seed=seed), ())
        config = config.replace(engine=resolve(config))
        self.steps.begin(PROBE)
        found = probe(self.dataset, config, None, lambda _, share: self.steps.within(share), PROBING * self.seconds)
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
