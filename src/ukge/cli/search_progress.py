"""How a search shows itself while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from ukge.cli.progress import LiveBars

if TYPE_CHECKING:
    from ukge.config import Config
    from ukge.studies import TrialSummary
    from ukge.train import EpochEvent


class SearchProgress(LiveBars):
    """One bar over the trials and one over the epochs of the current one; a line per trial where nobody looks."""

    def __init__(self, console: Console, title: str, metric: str, *, quiet: bool) -> None:
        super().__init__(console, "{task.completed:.0f}/{task.total:.0f}", quiet=quiet)
        self.metric = metric
        self.trials = self.bar.add_task(title, total=None, news="starting")
        self.epochs = self.bar.add_task("trial", total=None, news="", visible=False)

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
