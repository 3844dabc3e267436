"""Work in steps: which one is under way, and how much of all is done. Who listens decides how to show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

Tell = Callable[[str, float], None]
"""Hears what is being done, and the share of all work that is done by now."""


class Steps:
    """Tells of work whose steps take about known shares of its time."""

    def __init__(self, tell: Tell | None, weights: Mapping[str, float]) -> None:
        self._tell = tell
        self._weights = weights
        self._total = sum(weights.values())
        self._step = ""
        self._before = 0.0

    def begin(self, step: str) -> None:
        """Begin a step; those that stand before it are done, or were not needed."""
        names = list(self._weights)
        self._step = step
        self._before = sum(self._weights[name] for name in names[: names.index(step)])
        self.within(0.0)

    def within(self, share: float) -> None:
        """Tell the share of this step that is done."""
        if self._tell is not None:
            self._tell(self._step, (self._before + share * self._weights[self._step]) / self._total)
