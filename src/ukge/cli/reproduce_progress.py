"""How a reproduction shows itself: a bar over the trainings, and one over the epochs of the one at work."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from rich.console import Console

from ukge.cli.console import note
from ukge.progress.bars import LiveBars, duration
from ukge.reproduction.reproduce import KEPT, LEFT_OUT, Watcher

if TYPE_CHECKING:
    from ukge.learning.train import EpochEvent
    from ukge.reproduction.jobs import Job


class ReproductionProgress(LiveBars, Watcher):
    """Two bars on a terminal; elsewhere a line per training that had to be done."""

    def __init__(self, console: Console, *, quiet: bool) -> None:
        super().__init__(console, quiet=quiet)
        self.all = self.bar.add_task("", total=None, news="starting")
        self.one = self.bar.add_task("", total=None, news="", visible=False)
        self.jobs = self.done = 0
        self.began = time.monotonic()

    def on_plan(self, jobs: int) -> None:
        """Show how many trainings there are."""
        self.jobs = jobs

    def on_job(self, job: Job) -> None:
        """Show whose turn it is."""
        self.began = time.monotonic()
        self._show(f"training {self.done + 1} of {self.jobs}: {job}")
        self.bar.reset(self.one, total=1.0, visible=True)
        self.show(self.one, 0.0)

    def on_epoch(self, event: EpochEvent) -> None:
        """Show an epoch."""
        best = "" if event.best is None else f"{event.metric} {event.best:.5f}"
        self.show(self.one, event.epoch / event.epochs, f"epoch {event.epoch}/{event.epochs}", best)

    def on_done(self, job: Job, how: str) -> None:
        """Count a training; those that were there already took no time, and tell nothing of the time left."""
        self.done += 1
        share = self.done / max(self.jobs, 1)
        if how in (KEPT, LEFT_OUT):
            self.clock.first += 1 / max(self.jobs, 1)
        else:
            seconds = duration(time.monotonic() - self.began)
            self.line(f"{self.done}/{self.jobs}", f"{job}: {how} in {seconds}", self.clock.left(share))
        self._show(f"{self.done} of {self.jobs} trainings")

    def on_news(self, text: str) -> None:
        """Show what the user should know."""
        note(text, self.console)

    def _show(self, news: str) -> None:
        share = self.done / max(self.jobs, 1)
        self.show(self.all, share, news, self.clock.left(share))
