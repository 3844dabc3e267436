"""How a search and a reproduction show themselves: a bar over all trainings, and one over the epochs of one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.console import Console

from ukge.cli.console import note
from ukge.progress.bars import LiveBars, duration, joined
from ukge.reproduction.reproduce import KEPT, LEFT_OUT, Watcher

if TYPE_CHECKING:
    from ukge.learning.train import EpochEvent
    from ukge.learning.tuning.studies import TrialSummary
    from ukge.reproduction.jobs import Job
    from ukge.settings.config import Config


class TrainingsProgress(LiveBars):
    """Two bars on a terminal; elsewhere a line per training."""

    def __init__(self, console: Console, title: str = "", *, quiet: bool) -> None:
        super().__init__(console, title, quiet=quiet)
        self.all = self.bar.add_task("", total=None, news="starting")
        self.one = self.bar.add_task("", total=None, news="", visible=False)
        self.done = self.total = 0

    @property
    def share(self) -> float:
        """How much of all is done."""
        return self.done / max(self.total, 1)

    def begin(self, news: str) -> None:
        """Show a training that begins."""
        self.show_all(news)
        self.bar.reset(self.one, total=1.0, visible=True)
        self.show(self.one, 0.0)

    def show_all(self, *news: str) -> None:
        """Show how far all is."""
        self.show(self.all, self.share, news[0], self.clock.left(self.share), *news[1:])

    def on_epoch(self, event: EpochEvent) -> None:
        """Show an epoch of the training at work."""
        best = "" if event.best is None else f"{event.metric} {event.best:.5f} (epoch {event.best_epoch})"
        self.show(self.one, event.epoch / event.epochs, f"epoch {event.epoch}/{event.epochs}", best)


class SearchProgress(TrainingsProgress):
    """Shows the trials of a search."""

    def __init__(self, console: Console, title: str, metric: str, *, quiet: bool) -> None:
        super().__init__(console, title, quiet=quiet)
        self.metric = metric

    def on_start(self, done: int, total: int, config: Config) -> None:  # noqa: ARG002
        """Show a trial that begins."""
        if not self.total:
            self.clock.start(done / total)
        self.done, self.total = done, total
        self.begin(f"trial {done + 1} of {total}")

    def on_trial(self, trial: TrialSummary) -> None:
        """Show a trial that ended."""
        from ukge.learning.tuning.search_spaces import shown

        value = trial.note if trial.value is None else f"{self.metric} {trial.value:.5f}"
        self.done += 1
        self.show_all(f"{self.done} of {self.total} trials", f"trial {trial.number} {trial.state}: {value}")
        chosen = joined(*(f"{name} {shown(setting)}" for name, setting in trial.settings.items()))
        state = f"trial {trial.number} {trial.state} ({self.share:.0%})"
        self.line(state, value, chosen, self.clock.left(self.share))


class ReproductionProgress(TrainingsProgress, Watcher):
    """Shows the trainings of a reproduction; a line tells of those that had to be done."""

    def on_plan(self, jobs: int) -> None:
        """Show how many trainings there are."""
        self.total = jobs

    def on_job(self, job: Job) -> None:
        """Show whose turn it is."""
        self.began, self.epochs = time.monotonic(), 0
        self.begin(f"training {self.done + 1} of {self.total}: {job}")

    def on_epoch(self, event: EpochEvent) -> None:
        """Show an epoch, and count it."""
        self.epochs = event.epoch
        super().on_epoch(event)

    def on_done(self, job: Job, how: str) -> None:
        """Count a training; those that were there already took no time, and tell nothing of the time left."""
        self.done += 1
        if how in (KEPT, LEFT_OUT):
            self.clock.first += 1 / max(self.total, 1)
        else:
            seconds = duration(time.monotonic() - self.began)
            epochs = f", {self.epochs} epochs" if self.epochs else ""
            self.line(f"{self.done}/{self.total}", f"{job}: {how} in {seconds}{epochs}", self.clock.left(self.share))
        self.show_all(f"{self.done} of {self.total} trainings")

    def on_news(self, text: str) -> None:
        """Show what the user should know."""
        note(text, self.console)
