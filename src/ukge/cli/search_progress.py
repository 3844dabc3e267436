"""How a search shows itself while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from ukge.progress.bars import LiveBars, told

if TYPE_CHECKING:
    from ukge.learning.train import EpochEvent
    from ukge.learning.tuning.studies import TrialSummary
    from ukge.settings.config import Config


class SearchProgress(LiveBars):
    """One bar over the trials and one over the epochs of the current one; a line per trial where nobody looks."""

    def __init__(self, console: Console, title: str, metric: str, *, quiet: bool) -> None:
        super().__init__(console, title, quiet=quiet)
        self.metric = metric
        self.trials = self.bar.add_task("", total=None, news="starting")
        self.epochs = self.bar.add_task("", total=None, news="", visible=False)
        self.done, self.total = 0, 0
        self.last = ""

    def on_start(self, done: int, total: int, config: Config) -> None:
        """Show a trial that begins."""
        if not self.total:
            self.clock.start(done / total)
        self.done, self.total = done, total
        self.bar.reset(self.epochs, total=config.stopping.epochs, visible=True)
        self._show(f"trial {done + 1} of {total}")

    def on_epoch(self, event: EpochEvent) -> None:
        """Show an epoch of the current trial."""
        best = "" if event.best is None else f"{event.metric} {event.best:.5f} (epoch {event.best_epoch})"
        self.show(self.epochs, event.epoch / event.epochs, f"epoch {event.epoch}/{event.epochs}", best)

    def on_trial(self, trial: TrialSummary) -> None:
        """Show a trial that ended."""
        value = trial.note if trial.value is None else f"{self.metric} {trial.value:.5f}"
        self.done += 1
        self.last = f"trial {trial.number} {trial.state}: {value}"
        self._show(f"{self.done} of {self.total} trials")
        chosen = told(*(f"{name} {setting:.4g}" for name, setting in trial.settings.items()))
        share = self.done / max(self.total, 1)
        self.line(f"trial {trial.number} {trial.state} ({share:.0%})", value, chosen, self.clock.left(share))

    def _show(self, count: str) -> None:
        share = self.done / max(self.total, 1)
        self.show(self.trials, share, count, self.clock.left(share), self.last)
