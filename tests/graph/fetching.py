"""Fetching in processes of its own: what a child of the tests runs, importable without them."""

from __future__ import annotations

import os
from pathlib import Path

from ukge.graph.catalogue import BENCHMARKS, Benchmark, load


def fetch_first(benchmark: Benchmark, base_url: str, cache: Path, go: Path, result: Path) -> None:
    """Wait until `go` is there, load the benchmark into an empty cache, and write how that went to `result`."""
    os.environ["XDG_CACHE_HOME"] = str(cache)
    os.environ.pop("UKGE_DATA", None)
    BENCHMARKS[benchmark.name] = benchmark
    while not go.exists():
        pass
    try:
        result.write_text(repr(load(benchmark.name, base_urls=(base_url,))))
    except BaseException as error:
        result.write_text(f"{type(error).__name__}: {error}")
        raise
