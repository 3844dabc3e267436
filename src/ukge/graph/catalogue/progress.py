"""A progress bar for downloads, on standard error, for people only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn

from ukge.graph.catalogue.fetch import Advance


@contextmanager
def download_progress(title: str) -> Iterator[Advance]:
    """Show one bar per file while the block runs; yields what `fetch` calls to advance them."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        tasks: dict[str, TaskID] = {}

        def advance(file: str, done: int, total: int | None) -> None:
            if file not in tasks:
                tasks[file] = progress.add_task(f"{title}/{file}", total=total)
            progress.update(tasks[file], completed=done, total=total)

        yield advance
