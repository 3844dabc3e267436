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


class TrainingProgress:
    """A bar over the epochs with loss, validation metric and facts per second; silent where nobody looks."""

    def __init__(self, console: Console, title: str, *, quiet: bool) -> None:
        self.console = console
        self.quiet = quiet
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("epoch {task.completed:.0f}/{task.total:.0f}"),
            TextColumn("{task.fields[news]}"),
            TimeElapsedColumn(),
            TextColumn("ETA"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self.task = self.bar.add_task(title, total=None, news="starting")
        self.title = title
        self.done = 0
        self.since = time.monotonic()
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

    def on_facts(self, facts: int) -> None:
        """Count facts within an epoch."""
        self.done += facts

    def on_epoch(self, event: EpochEvent) -> None:
        """Show an epoch; where there is no terminal, only those that were validated."""
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

    def _tell_compiling(self) -> None:
        if not self.quiet:
            self.console.print("compiling for this machine; later runs take it from the cache …", style="dim")


def _thousands(value: float) -> str:
    return f"{value / 1000:,.0f}k" if value >= 1000 else f"{value:.0f}"
