"""DuckDB inside this process: the engine where nothing is said. What does not fit in memory goes to disk."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa

from ukge.errors import ConfigError, DataError
from ukge.logic.engine.base import Engine


class DuckDBEngine(Engine):
    """In-process, spilling into a directory of its own that is removed at the end."""

    name = "duckdb"

    def __init__(self, memory: str | None = None, threads: int | None = None, spill: str | Path | None = None) -> None:
        super().__init__()
        self._spill = tempfile.mkdtemp(prefix="ukge-", dir=spill)
        settings: dict[str, Any] = {"temp_directory": self._spill, "preserve_insertion_order": False}
        if memory is not None:
            settings["memory_limit"] = memory
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


def _quoted(path: str) -> str:
    return "'" + path.replace("'", "''") + "'"
