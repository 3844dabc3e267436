"""How a search shows itself while it runs."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from ukge.engines.fused.compiling import when_compiling

if TYPE_CHECKING:
    from ukge.config import Config
    from ukge.studies import TrialSummary
    from ukge.train import EpochEvent


class SearchProgress:
    """One bar over the trials and one over the epochs of the current one; a line per trial where nobody looks."""

    def __init__(self, console: Console, title: str, metric: str, *, quiet: bool) -> None:
        self.console = console
        self.metric = metric
        self.quiet = quiet
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.completed:.0f}/{task.total:.0f}"),
            TextColumn("{task.fields[news]}"),
            TimeElapsedColumn(),
            TextColumn("ETA"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=quiet or not console.is_terminal,
        )
        self.trials = self.bar.add_task(title, total=None, news="starting")
        self.epochs = self.bar.add_task("trial", total=None, news="", visible=False)
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

    def on_start(self, done: int, total: int, config: Config) -> None:
        """Show a trial that begins."""
        self.bar.update(self.trials, total=total, completed=done)
        self.bar.reset(self.epochs, total=config.stopping.epochs, visible=True)
        self.bar.update(self.epochs, description=f"trial {done + 1} of {total}", news="")

    def on_epoch(self, event: EpochEvent) -> None:
        """Show an epoch of the current trial."""
        best = "" if event.best is None else f"{event.metric} {event.best:.5f} (epoch {event.best_epoch})"
        self.bar.update(self.epochs, completed=event.epoch, news=best)

    def on_trial(self, trial: TrialSummary) -> None:
        """Show a trial that ended."""
        value = trial.note if trial.value is None else f"{self.metric} {trial.value:.5f}"
        self.bar.update(self.trials, advance=1, news=f"trial {trial.number} {trial.state}: {value}")
        if not self.quiet and not self.console.is_terminal:
            chosen = "  ".join(f"{name} {setting:.4g}" for name, setting in trial.settings.items())
            self.console.print(f"trial {trial.number} {trial.state}  {value}  {chosen}", soft_wrap=True)

    def _tell_compiling(self) -> None:
        if not self.quiet:
            self.console.print("compiling for this machine; later runs take it from the cache …", style="dim")
