"""A run for a command that asks it and ends: nothing is loaded that the answer does not need."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ukge.cli.console import err, note

if TYPE_CHECKING:
    from rich.console import Console

    from ukge.asking import Predictor
    from ukge.settings.config import Config

BLAS = "scipy.linalg"


@contextmanager
def open_predictor(run: Path, console: Console | None = None) -> Iterator[Predictor]:
    """Open a run to be asked; the first question on a machine has to wait for the compiler."""
    from ukge.asking import Predictor
    from ukge.evidence.kernels import before_compiler
    from ukge.progress.bars import when_compiling

    with ExitStack() as stack:

        def ready() -> None:
            _ready_kernels()
            stack.enter_context(when_compiling(lambda said: (console or err()).print(said, style="dim")))

        stack.enter_context(before_compiler(ready))
        yield Predictor.open(run)


def tell_of_judge(predictor: Predictor, run: Path) -> None:
    """Say what the answers of a run without evidence are not."""
    if predictor.evidence is not None:
        return
    for text in order_only(predictor.config, run):
        note(text)
    note(
        f"{run} has no evidence: confidences are those of its model, bounds as wide as its errors on validation facts "
        f"(ukge evidence fit {run} fits some)"
    )


def order_only(config: Config, run: Path | str) -> list[str]:
    """Return a sentence on a model that learnt an order; nothing where it learnt confidences."""
    if config.objective.learns_confidence:
        return []
    return [
        f"{run} learnt an order, not confidences ({config.objective.loss} loss): its numbers compare facts and mean "
        f"nothing else (ukge evidence fit {run} makes confidences of them)"
    ]


def _ready_kernels() -> None:
    """Have Numba set itself up without SciPy's linear algebra, which it looks for in case a kernel multiplies matrices.

    None of evidence does, and loading it takes as long as everything that is asked. Numba does so once and for all
    kernels of a process, so this is for commands alone, whose process has no others.
    """
    modules: dict[str, Any] = sys.modules
    if BLAS in modules:
        return
    modules[BLAS] = None  # an import of it fails
    try:
        from numba.core.registry import cpu_target

        cpu_target.target_context.refresh()
    finally:
        del modules[BLAS]
