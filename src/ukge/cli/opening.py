"""Evidence for a command that asks it and ends: nothing is loaded that the answer does not need."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ukge.cli.console import err

if TYPE_CHECKING:
    from rich.console import Console

    from ukge.evidence import Evidence

BLAS = "scipy.linalg"


@contextmanager
def open_evidence(run: Path, console: Console | None = None) -> Iterator[Evidence]:
    """Open the evidence of a run, or in a directory of its own; the first question on a machine has to wait."""
    from ukge.compiling import when_compiling
    from ukge.evidence import Evidence
    from ukge.evidence.kernels import before_compiler

    with ExitStack() as stack:

        def ready() -> None:
            _ready_kernels()
            stack.enter_context(when_compiling(lambda told: (console or err()).print(told, style="dim")))

        stack.enter_context(before_compiler(ready))
        yield Evidence.load(run)


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
