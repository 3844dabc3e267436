"""The one relational seam: Ibis expressions, run by DuckDB in this process or by Spark."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Self

import ibis
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from ukge.errors import ConfigError, DataError
from ukge.storage.files import temporary_beside
from ukge.storage.memory import MACHINE, free_memory

LOOPBACK = "127.0.0.1"
SHARE = 0.8
"""How much of the free memory DuckDB may hold before it spills, as it takes of a machine by itself."""

SPARK_MASTER = re.compile(r"spark://.+|local(-cluster)?(\[.+\])?")


class Engine(ABC):
    """Runs Ibis expressions. All relational work goes through this class, so every engine gives the same result."""

    name: str

    def __init__(self) -> None:
        self._numbers = count()

    @abstractmethod
    def load(self, table: pa.Table) -> Any:
        """Bring an Arrow table in and return it as an Ibis table."""

    @abstractmethod
    def keep(self, expression: Any) -> Any:
        """Compute an expression once, for later ones to use, and return it as an Ibis table."""

    @abstractmethod
    def drop(self, table: Any) -> None:
        """Let go of a table that `load` or `keep` returned."""

    @abstractmethod
    def collect(self, expression: Any) -> pa.Table:
        """Compute an expression and return it as an Arrow table."""

    @abstractmethod
    def write_parquet(self, expression: Any, path: Path) -> None:
        """Compute an expression straight into one Parquet file, without holding it in memory."""

    @abstractmethod
    def scan(self, path: str) -> Any:
        """Return the Parquet files below a directory or bucket as an Ibis table, read when an expression needs them.

        Directories `column=value` are columns of text.
        """

    @abstractmethod
    def write_parts(self, expression: Any, path: Path) -> None:
        """Compute an expression into a new directory of Parquet files, as many as the engine likes."""

    @abstractmethod
    def close(self) -> None:
        """Let go of everything."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.close()

    def rows(self, expression: Any) -> list[dict[str, Any]]:
        """Compute a small expression and return its rows."""
        rows: list[dict[str, Any]] = self.collect(expression).to_pylist()
        return rows

    def count(self, expression: Any) -> int:
        """Return how many rows an expression has."""
        return int(self.rows(expression.agg(n=expression.count()))[0]["n"])

    def _name(self) -> str:
        return f"ukge_{next(self._numbers)}"


class DuckDBEngine(Engine):
    """In this process. What does not fit in memory goes to a directory of its own, which is removed at the end."""

    name = "duckdb"

    def __init__(self, memory: str | None = None, threads: int | None = None, spill: str | Path | None = None) -> None:
        super().__init__()
        self._spill = tempfile.mkdtemp(prefix="ukge-", dir=spill)
        settings: dict[str, Any] = {"temp_directory": self._spill, "preserve_insertion_order": False}
        free = free_memory()
        if memory is not None:
            settings["memory_limit"] = memory
        elif free.of != MACHINE:  # DuckDB takes its share of what the machine has, whatever this process may take
            settings["memory_limit"] = f"{int(SHARE * free.bytes) >> 20}MiB"
        if threads is not None:
            settings["threads"] = threads
        try:
            self._connection = ibis.duckdb.connect(**settings)
        except Exception as error:
            shutil.rmtree(self._spill, ignore_errors=True)
            raise ConfigError(f"DuckDB does not start: {error}", hint="A memory limit looks like 8GB.") from None
        # Tables are made with plain statements: Ibis's own ways to do it lag behind DuckDB's and sqlglot's releases.
        self._run = self._connection.con

    def load(self, table: pa.Table) -> Any:  # noqa: D102
        name = self._name()
        self._run.register("arriving", table)
        self._run.execute(f"CREATE TEMP TABLE {name} AS SELECT * FROM arriving")
        self._run.unregister("arriving")
        return ibis.table(ibis.Schema.from_pyarrow(table.schema), name=name)

    def keep(self, expression: Any) -> Any:  # noqa: D102
        name = self._name()
        self._run.execute(f"CREATE TEMP TABLE {name} AS {self._connection.compile(expression)}")
        return ibis.table(expression.schema(), name=name)

    def drop(self, table: Any) -> None:  # noqa: D102
        self._run.execute(f"DROP TABLE IF EXISTS {table.get_name()}")

    def collect(self, expression: Any) -> pa.Table:  # noqa: D102
        return self._connection.to_pyarrow(expression)

    def write_parquet(self, expression: Any, path: Path) -> None:  # noqa: D102
        query = self._connection.compile(expression)
        self._run.execute(f"COPY ({query}) TO {_quoted(str(path))} (FORMAT parquet, COMPRESSION zstd)")

    def scan(self, path: str) -> Any:  # noqa: D102
        name = self._name()
        pattern = _quoted(path if path.endswith(".parquet") else f"{path.rstrip('/')}/**/*.parquet")
        options = "hive_partitioning = true, hive_types_autocast = false, union_by_name = true"
        try:
            self._run.execute(f"CREATE TEMP VIEW {name} AS SELECT * FROM read_parquet({pattern}, {options})")
        except Exception as error:
            first = str(error).strip().splitlines()[0]
            raise DataError(f"cannot be read as Parquet: {first}", source=path) from None
        schema = self._run.sql(f"SELECT * FROM {name} LIMIT 0").to_arrow_table().schema
        return ibis.table(ibis.Schema.from_pyarrow(schema), name=name)

    def write_parts(self, expression: Any, path: Path) -> None:  # noqa: D102
        query = self._connection.compile(expression)
        options = "FORMAT parquet, COMPRESSION zstd, PER_THREAD_OUTPUT true"
        self._run.execute(f"COPY ({query}) TO {_quoted(str(path))} ({options})")

    def close(self) -> None:  # noqa: D102
        self._connection.disconnect()
        shutil.rmtree(self._spill, ignore_errors=True)


class SparkEngine(Engine):
    """A Spark session for the master given: `local[2]` for this machine, `spark://host:port` for a cluster."""

    name = "spark"

    def __init__(self, master: str, memory: str | None = None) -> None:
        super().__init__()
        with warnings.catch_warnings():
            # Spark warns of every pandas that is newer than itself; here tables travel as Arrow, not as pandas.
            warnings.filterwarnings("ignore", message=".*pandas.*", category=FutureWarning)
            self._session = _session(master, memory)
            self._connection = ibis.pyspark.connect(self._session)

    def load(self, table: pa.Table) -> Any:  # noqa: D102
        return self._view(self._session.createDataFrame(table).persist())

    def keep(self, expression: Any) -> Any:  # noqa: D102
        return self._view(self._frame(expression).persist())

    def drop(self, table: Any) -> None:  # noqa: D102
        self._session.catalog.uncacheTable(table.get_name())
        self._session.catalog.dropTempView(table.get_name())

    def collect(self, expression: Any) -> pa.Table:  # noqa: D102
        return self._frame(expression).toArrow()

    def write_parquet(self, expression: Any, path: Path) -> None:  # noqa: D102
        # The executors write their parts side by side; one file is what the other engine leaves too.
        parts = str(temporary_beside(path))
        try:
            self._frame(expression).write.mode("overwrite").parquet(parts)
            found = ds.dataset(parts, format="parquet")
            with pq.ParquetWriter(path, found.schema, compression="zstd", write_page_checksum=True) as writer:
                for batch in found.to_batches():
                    writer.write_batch(batch)
        finally:
            shutil.rmtree(parts, ignore_errors=True)

    def scan(self, path: str) -> Any:  # noqa: D102
        reader = self._session.read.option("mergeSchema", "true")
        try:
            return self._view(reader.parquet(path))
        except Exception as error:
            first = str(error).strip().splitlines()[0]
            raise DataError(f"cannot be read as Parquet: {first}", source=path) from None

    def write_parts(self, expression: Any, path: Path) -> None:  # noqa: D102
        self._frame(expression).write.option("compression", "zstd").parquet(str(path))

    def close(self) -> None:  # noqa: D102
        self._session.stop()

    def _frame(self, expression: Any) -> Any:
        return self._session.sql(self._connection.compile(expression))

    def _view(self, frame: Any) -> Any:
        name = self._name()
        frame.createOrReplaceTempView(name)
        return self._connection.table(name)


def _session(master: str, memory: str | None) -> Any:
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        raise ConfigError("Spark needs Java, which is not installed", hint="Install Java 17, or use ‹engine='duckdb'›.")
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra, wanted only when Spark is asked for
    except ImportError:
        raise ConfigError("Spark is not installed", hint="pip install 'ukge[spark]'") from None
    builder = SparkSession.builder.master(master).appName("ukge").config("spark.log.level", "ERROR")
    for key, value in _settings(master, memory).items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except Exception as error:
        first = str(error).strip().splitlines()[0]
        raise ConfigError(f"Spark does not start with master {master!r}: {first}") from None


def _settings(master: str, memory: str | None) -> dict[str, str]:
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.ansi.enabled": "false",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.sources.partitionColumnTypeInference.enabled": "false",
    }
    if memory is not None:
        settings["spark.driver.memory"] = memory
    if master.startswith("local") or LOOPBACK in master or "localhost" in master:
        # A machine's own name often resolves to an address it cannot reach itself under.
        os.environ.setdefault("SPARK_LOCAL_IP", LOOPBACK)
        settings["spark.driver.host"] = LOOPBACK
        settings["spark.sql.shuffle.partitions"] = str(os.cpu_count() or 1)
    return settings


def connect(
    engine: str = "duckdb", *, memory: str | None = None, threads: int | None = None, spill: str | Path | None = None
) -> Engine:
    """Start an engine: `duckdb`, `spark` (all cores of this machine), `local[2]` or `spark://host:port`.

    `memory` limits what it holds before it spills (`8GB`), `threads` its cores, `spill` says where DuckDB spills to.
    """
    if engine == "duckdb":
        return DuckDBEngine(memory, threads, spill)
    if engine == "spark" or SPARK_MASTER.fullmatch(engine):
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


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "''") + "'"
