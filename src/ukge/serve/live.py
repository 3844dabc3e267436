"""The run that is served now. A new one is opened and checked beside it, then takes its place between two requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from ukge.errors import UkgeError
from ukge.serve.metrics import Metrics
from ukge.serve.snapshot import Snapshot

log = logging.getLogger("ukge.serve")

Signature = tuple[tuple[str, int, int, int], ...]

WATCHED = ("manifest.json", "evidence/evidence.safetensors")


class Live:
    """Holds the current snapshot. Whoever answers a request takes it once and keeps it until the answer is out."""

    def __init__(self, path: Path, open_run: Callable[[Path], Snapshot], metrics: Metrics | None = None) -> None:
        self._path = path
        self._open = open_run
        self.metrics = metrics or Metrics()
        self._signature = signature(path)
        self.reloads = 0
        self._one_at_a_time = asyncio.Lock()
        self._take(open_run(path))

    def _take(self, snapshot: Snapshot) -> None:
        self.current = snapshot
        self.loaded = datetime.now(UTC)
        self.metrics.facts.set(len(snapshot.known))
        self.metrics.entities.set(len(snapshot.entities))

    async def reload(self) -> bool:
        """Open the run again and serve it once all of it is prepared; return whether it is served.

        If it is refused, the one that is served stays.
        """
        async with self._one_at_a_time:
            self._signature = await asyncio.to_thread(signature, self._path)
            try:
                fresh = await asyncio.to_thread(self._open, self._path)
                await asyncio.to_thread(fresh.prepare)
            except (UkgeError, OSError, ValueError) as error:
                self.metrics.reloads.labels("refused").inc()
                log.warning("the new run is refused, the old one is still served: %s", error)
                return False
            self._take(fresh)
            self.reloads += 1
            self.metrics.reloads.labels("loaded").inc()
            log.info("now serving the new run in %s", self._path)
            return True

    async def watch(self, every: float) -> None:
        """Reload whenever the run directory changes, once it has stopped changing."""
        before = self._signature
        while True:
            await asyncio.sleep(every)
            now = await asyncio.to_thread(signature, self._path)
            if now == before and now != self._signature and now:
                await self.reload()
            before = now


def signature(path: Path) -> Signature:
    """Return what tells one run from the next at the same path: which files its manifests are, and when written."""
    told = []
    for name in WATCHED:
        try:
            found = (path.resolve() / name).stat()
        except OSError:
            continue
        told.append((name, found.st_ino, found.st_mtime_ns, found.st_size))
    return tuple(told)
