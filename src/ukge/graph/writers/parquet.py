"""Parquet files: columns head, relation, tail, confidence and, if the graph has any, source."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from ukge.errors import DataError
from ukge.graph.files import compression_of
from ukge.graph.formats import Format
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.writers.formats import writers

_ROWS = 1 << 20


def write_parquet(graph: UncertainGraph, sink: pa.NativeFile, path: Path, *, compression: str = "zstd") -> None:
    """Write the facts by name."""
    if compression_of(path) is not None:
        raise DataError("Parquet compresses by itself", source=str(path), hint=f"Write to {path.stem} instead.")
    fields = [("head", pa.large_string()), ("relation", pa.large_string()), ("tail", pa.large_string())]
    fields.append(("confidence", pa.float64()))
    if graph.source is not None:
        fields.append(("source", pa.large_string()))
    schema = pa.schema(fields)
    with pq.ParquetWriter(sink, schema, compression=compression) as writer:
        for start in range(0, len(graph), _ROWS):
            named = graph[start : start + _ROWS].facts()
            if graph.source is not None and "source" not in named.column_names:
                named = named.append_column("source", pa.nulls(len(named), pa.large_string()))
            writer.write_table(named.cast(schema))


writers.register("parquet")(Format(write_parquet, (".parquet", ".pq")))
