"""How a reproduction shows itself: a bar over the trainings, and one over the epochs of the one at work."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from ukge.reproduction.reproduce import KEPT, LEFT_OUT, Watcher

if TYPE_CHECKING:
    from ukge.reproduction.jobs import Job
    from ukge.train import EpochEvent


class ReproductionProgress(Watcher):
    """Two bars on a terminal; elsewhere a line per training that had to be done."""

    def __init__(self, console: Console, *, quiet: bool) -> None:
        self.console = console
        self.quiet = quiet
        self.bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TextColumn("{task.fields[news]}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self.all = self.bars.add_task("trainings", total=1, news="")
        self.one = self.bars.add_task("epochs", total=1, news="")
        self.jobs = self.done = 0
        self.began = time.monotonic()

    def __enter__(self) -> Self:
        self.bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bars.stop()

    def on_plan(self, jobs: int) -> None:
        """Show how many trainings there are."""
        self.jobs = jobs
        self.bars.update(self.all, total=jobs)

    def on_job(self, job: Job) -> None:
        """Show whose turn it is."""
        self.began = time.monotonic()
        self.bars.update(self.all, news=str(job))
        self.bars.update(self.one, total=1, completed=0, news="")

    def on_epoch(self, event: EpochEvent) -> None:
        """Show an epoch."""
        best = "" if event.best is None else f"{event.metric} {event.best:.5f}"
        self.bars.update(self.one, total=event.epochs, completed=event.epoch, news=best)

    def on_done(self, job: Job, how: str) -> None:
        """Count a training."""
        self.done += 1
        self.bars.update(self.all, completed=self.done)
        if not self.quiet and not self.console.is_terminal and how not in (KEPT, LEFT_OUT):
            seconds = time.monotonic() - self.began
            self.console.print(f"{self.done}/{self.jobs}  {job}: {how} in {seconds:.0f} s", soft_wrap=True)

    def on_news(self, text: str) -> None:
        """Show what the user should know."""
        self.console.print(Text("Note: ", style="bold yellow") + Text(text), soft_wrap=True)
