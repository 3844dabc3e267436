"""Claims as a table: a row for each, with its source and whatever it tells of time, document and span."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ukge.graph.claims import UNNAMED, Claims
from ukge.graph.writers.tables import write_table


def write_claims(claims: Claims, path: str | os.PathLike[str], *, spreadsheet_safe: bool = False) -> None:
    """Write claims as TSV, CSV, JSON Lines or Parquet, as the ending says; `read_claims` gives every one back."""
    write_table(Path(path), claims_table(claims), spreadsheet_safe=spreadsheet_safe)


def claims_table(claims: Claims) -> pa.Table:
    """Return claims as a table in which those that name no source have none."""
    table = claims.table()
    source = table["source"].cast(pa.large_string())
    named = pc.if_else(pc.equal(source, UNNAMED), pa.scalar(None, pa.large_string()), source)
    return table.set_column(table.column_names.index("source"), "source", named)
