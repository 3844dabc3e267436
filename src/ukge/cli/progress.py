"""How training shows itself while it runs."""

from __future__ import annotations

import time
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ukge.engines.fused.compiling import when_compiling

if TYPE_CHECKING:
    from ukge.train import EpochEvent


LONG_EPOCH = 3.0
"""Seconds after which an epoch shows how far it is."""


class LiveBars:
    """Bars that count with `counted`, and a word when code is being compiled; silent where nobody looks."""

    def __init__(self, console: Console, counted: str, *, quiet: bool) -> None:
        self.console = console
        self.quiet = quiet
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn(counted),
            TextColumn("{task.fields[news]}"),
            TimeElapsedColumn(),
            TextColumn("ETA"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self.compiling = when_compiling(self._tell_compiling)

    def __enter__(self) -> Self:
        self.compiling.__enter__()
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()
        self.compiling.__exit__(kind, error, trace)

    def _tell_compiling(self) -> None:
        if not self.quiet:
            self.console.print("compiling for this machine; later runs take it from the cache …", style="dim")


class TrainingProgress(LiveBars):
    """A bar over the epochs with loss, validation metric and facts per second."""

    def __init__(self, console: Console, title: str, *, quiet: bool) -> None:
        super().__init__(console, "epoch {task.completed:.0f}/{task.total:.0f}", quiet=quiet)
        self.task = self.bar.add_task(title, total=None, news="starting")
        self.done = 0
        self.since = time.monotonic()

    def on_facts(self, facts: int) -> None:
        """Count facts within an epoch, and show them where an epoch is long."""
        self.done += facts
        seconds = time.monotonic() - self.since
        if seconds > LONG_EPOCH:
            speed = _thousands(self.done / seconds)
            self.bar.update(self.task, news=f"{_thousands(self.done)} facts of this epoch  {speed} facts/s")

    def on_epoch(self, event: EpochEvent) -> None:
        """Show an epoch; where there is no terminal, only those that were validated."""
        self.done, self.since = 0, time.monotonic()
        speed = event.facts / max(event.seconds, 1e-9)
        best = "" if event.best is None else f"  {event.metric} {event.best:.5f} (epoch {event.best_epoch})"
        news = f"loss {event.loss:.5f}{best}  {_thousands(speed)} facts/s"
        self.bar.update(self.task, total=event.epochs, completed=event.epoch, news=news)
        if not self.quiet and not self.console.is_terminal and event.value is not None:
            self.console.print(
                f"epoch {event.epoch}/{event.epochs}  loss {event.loss:.5f}  {event.metric} {event.value:.5f}  "
                f"{_thousands(speed)} facts/s",
                soft_wrap=True,
            )


def _thousands(value: float) -> str:
    return f"{value / 1000:,.0f}k" if value >= 1000 else f"{value:.0f}"
