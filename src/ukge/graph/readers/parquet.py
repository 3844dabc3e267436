"""Parquet files: only the columns of facts are read."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ukge.errors import DataError
from ukge.graph.checks import Where
from ukge.graph.formats import Format
from ukge.graph.readers.formats import readers
from ukge.graph.readers.frames import Columns, parsed_columns
from ukge.graph.readers.layout import ColumnMap, assign_roles
from ukge.graph.readers.parsed import Parsed, Request


def read_parquet(path: Path, request: Request, *, columns: ColumnMap | None = None) -> Parsed:
    """Read the facts of a Parquet file, one per row."""
    where = Where(str(path))
    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            roles = assign_roles(len(names), header=names, columns=columns, source=str(path))
            table = file.read(columns=[names[at] for at in roles.values()])
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise DataError(
            f"is no readable Parquet file: {error}",
            source=str(path),
            hint="Fetch or write the file again, or name its true format with format=...",
        ) from None
    return parsed_columns(Columns({role: table[names[at]] for role, at in roles.items()}, roles, names, where), request)


readers.register("parquet")(Format(read_parquet, (".parquet", ".pq")))
