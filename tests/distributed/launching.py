"""How the tests start ranks."""

from __future__ import annotations

import os
import subprocess
import sys


def torchrun(ranks: int, *command: str, restarts: int = 0) -> list[str]:
    """Return the command that starts `command` on so many ranks."""
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
    return [*launcher, f"--max-restarts={restarts}", "--monitor-interval=0.1", *command]


def ukge(*arguments: str) -> list[str]:
    """Return what torchrun runs for `ukge` with arguments."""
    return ["--no-python", sys.executable, "-c", "from ukge.cli import main; main()", *arguments]


def run_ranks(ranks: int, *command: str, restarts: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command on ranks and wait for it."""
    started = torchrun(ranks, *command, restarts=restarts)
    return subprocess.run(started, capture_output=True, text=True, check=False, timeout=300, env=environment())


def environment() -> dict[str, str]:
    """Return the environment of ranks: one thread each."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
