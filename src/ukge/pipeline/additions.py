"""`add` and `undo`: facts taken into a run directory and out of it again, by the one predictor."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Unpack

from ukge.asking import Predictor
from ukge.asking.adding import How
from ukge.runs.directory import Run
from ukge.runs.journal import Addition


def add(run: str | Path, facts: Any, **how: Unpack[How]) -> Addition:
    """Take facts into a finished run, in seconds, and return what was new; see `Predictor.add`."""
    return _opened(run).add(facts, **how)


def undo(run: str | Path, steps: int | None = 1, *, who: str | None = None) -> list[Addition]:
    """Undo the last additions to a run, or with None all of them, and return them; see `Predictor.undo`."""
    return _opened(run).undo(steps, who=who)


def _opened(run: str | Path) -> Predictor:
    Run(run).manifest()  # says if there is no run
    return Predictor.open(run)
