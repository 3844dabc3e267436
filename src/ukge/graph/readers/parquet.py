"""Parquet files: only the columns of facts are read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ukge.errors import DataError
from ukge.graph.checks import Where
from ukge.graph.formats import Format
from ukge.graph.readers.formats import readers
from ukge.graph.readers.frames import Columns, parsed_columns
from ukge.graph.readers.layout import FACTS, ColumnMap, assign_roles
from ukge.graph.readers.parsed import Parsed, Request


def read_parquet(
    path: Path, request: Request, *, columns: ColumnMap | None = None, relation: str | None = None
) -> Parsed:
    """Read the facts of a Parquet file, one per row; all have the one given `relation` if no column says it."""
    with opened_parquet(path) as file:
        names, wanted = file.schema_arrow.names, FACTS.given(relation)
        roles = assign_roles(len(names), header=names, columns=columns, source=str(path), wanted=wanted)
        table = file.read(columns=[names[at] for at in roles.values()])
    found = Columns({role: table[names[at]] for role, at in roles.items()}, roles, names, Where(str(path)))
    return parsed_columns(found, request, relation)


@contextmanager
def opened_parquet(path: Path) -> Iterator[pq.ParquetFile]:
    """Open a Parquet file; one that cannot be read is a `DataError`."""
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise DataError(
            f"is no readable Parquet file: {error}",
            source=str(path),
            hint="Fetch or write the file again, or name its true format: ‹format=...›.",
        ) from None


readers.register("parquet")(Format(read_parquet, (".parquet", ".pq")))
