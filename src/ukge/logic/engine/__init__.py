"""The one relational seam: Ibis expressions, run by DuckDB in this process or by Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ukge.errors import ConfigError
from ukge.logic.engine.base import Engine

__all__ = ["Engine", "connect", "using"]

SPARK_MASTER = re.compile(r"spark://.+|local(-cluster)?(\[.+\])?")


def connect(
    engine: str = "duckdb", *, memory: str | None = None, threads: int | None = None, spill: str | Path | None = None
) -> Engine:
    """Start an engine: `duckdb`, `spark` (all cores of this machine), `local[2]` or `spark://host:port`.

    `memory` limits what it holds before it spills (`8GB`), `threads` its cores, `spill` says where DuckDB spills to.
    """
    if engine == "duckdb":
        from ukge.logic.engine.duckdb_engine import DuckDBEngine  # noqa: PLC0415 - each engine loads when it is used

        return DuckDBEngine(memory, threads, spill)
    if engine == "spark" or SPARK_MASTER.fullmatch(engine):
        from ukge.logic.engine.spark_engine import SparkEngine  # noqa: PLC0415 - as above

        cores = "*" if threads is None else str(threads)
        return SparkEngine(f"local[{cores}]" if engine == "spark" else engine, memory)
    raise ConfigError(f"unknown engine {engine!r}", hint="Known: duckdb, spark, local[N], spark://host:port.")


@contextmanager
def using(engine: str | Engine) -> Iterator[Engine]:
    """Yield an engine: the one given, left open, or a new one of that name, closed at the end."""
    if isinstance(engine, Engine):
        yield engine
        return
    started = connect(engine)
    try:
        yield started
    finally:
        started.close()
