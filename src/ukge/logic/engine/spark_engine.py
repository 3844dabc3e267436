"""Spark, on this machine or on many: the same expressions, the same results."""

from __future__ import annotations

import os
import shutil
import warnings
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from ukge.errors import ConfigError, DataError
from ukge.logic.engine.base import Engine
from ukge.storage.files import temporary_beside

LOOPBACK = "127.0.0.1"


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
            with pq.ParquetWriter(path, found.schema, compression="zstd") as writer:
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
