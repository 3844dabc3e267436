"""NELL's belief dumps: tab-separated, with a header; the confidence is the column `Probability`."""

from __future__ import annotations

from pathlib import Path

from ukge.errors import DataError
from ukge.graph.formats import Format
from ukge.graph.readers.delimited import read_tsv
from ukge.graph.readers.formats import readers
from ukge.graph.readers.layout import ColumnMap
from ukge.graph.readers.parsed import Parsed, Request
from ukge.graph.readers.records import first_record

_COLUMNS: ColumnMap = {"head": "Entity", "relation": "Relation", "tail": "Value", "confidence": "Probability"}


def read_nell(path: Path, request: Request, *, sources: bool = False) -> Parsed:
    """Read beliefs as facts; with `sources` the column `Source`, which is long, says where each came from."""
    _, header = first_record(path, "\t", quoted=False)
    names = [name.strip() for name in header]
    columns: ColumnMap = {**_COLUMNS, "source": "Source" if sources else None}
    missing = [name for name in columns.values() if name is not None and name not in names]
    if missing:
        raise DataError(
            f"the header has no column {', '.join(map(repr, missing))}",
            source=str(path),
            hint="A NELL dump starts with a line 'Entity', 'Relation', 'Value', …, 'Probability', … between tabs; "
            "read other tables with ‹format='tsv'›.",
        )
    return read_tsv(path, request, columns=columns, header=True)


readers.register("nell")(Format(read_nell))
