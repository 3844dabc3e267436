"""The service in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.serve.small_run import SERVICE

STARTED = re.compile(r"on http://127\.0\.0\.1:(\d+)/")


@contextmanager
def serving(run: Path, *options: str, explorer: bool = False) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Start `ukge serve` on a free port and yield the process and the port."""
    command = [sys.executable, "-c", SERVICE, "serve", str(run), "--port", "0"]
    environment = {key: value for key, value in os.environ.items() if key != "UKGE_API_KEY"}
    process = subprocess.Popen(
        [*command, "--explorer" if explorer else "--no-explorer", *options],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert process.stderr is not None
        told = ""
        while (found := STARTED.search(told)) is None:
            line = process.stderr.readline()
            assert line, f"the server did not start: {told}"
            told += line
        threading.Thread(target=process.stderr.read, daemon=True).start()
        yield process, int(found[1])
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
