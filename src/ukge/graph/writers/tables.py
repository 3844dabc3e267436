"""Facts as Parquet, and tables of any columns as TSV, CSV, JSON Lines and Parquet.

Text has a line of column names.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ukge.errors import DataError
from ukge.graph.arrow import from_names
from ukge.graph.fact import REQUIRED, ROLES
from ukge.graph.files import CHECKSUMS, atomic_sink, check_target, checksum, compression_of, extension_of
from ukge.graph.formats import Format, writers
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.writers.lines import joined, no_formula, quoted

DELIMITER = {".tsv": "\t", ".tab": "\t", ".txt": "\t", ".csv": ","}
JSON_LINES = (".jsonl", ".ndjson")
PARQUET = (".parquet", ".pq")
FORMATS = ".tsv, .csv, .jsonl (.gz or .zst may follow) or .parquet"
BATCH = 8192
_ROWS = 1 << 20
EMPTY = from_names([""])[0]


def write_parquet(graph: UncertainGraph, sink: pa.NativeFile, path: Path, *, compression: str = "zstd") -> None:
    """Write the facts by name: columns head, relation, tail, confidence and, if the graph has any, source."""
    _refuse_packed(path)
    names = REQUIRED if graph.source is None else ROLES
    schema = pa.schema([(name, pa.float64() if name == "confidence" else pa.large_string()) for name in names])
    checksums: dict[str, list[int]] = {name: [0, 0] for name in names}
    with pq.ParquetWriter(sink, schema, compression=compression, write_page_checksum=True) as writer:
        for start in range(0, len(graph), _ROWS):
            named = graph[start : start + _ROWS].facts()
            if graph.source is not None and "source" not in named.column_names:
                named = named.append_column("source", pa.nulls(len(named), pa.large_string()))
            named = named.cast(schema)
            checksums = {name: checksum(named[name], checksums[name]) for name in names}
            writer.write_table(named)
        writer.add_key_value_metadata({CHECKSUMS: json.dumps(checksums)})


def is_table(path: Path) -> bool:
    """Return whether the file's extension says one of these formats."""
    return extension_of(path) in (*DELIMITER, *JSON_LINES, *PARQUET)


def check_table_path(path: Path) -> None:
    """Raise `DataError` for a file that no table can be written to: before the work, not after it."""
    extension = extension_of(path)
    if not is_table(path):
        raise DataError(
            f"its format {extension or path.name!r} is not written", source=str(path), hint=f"Use {FORMATS}."
        )
    if extension in PARQUET:
        _refuse_packed(path)
    check_target(path)


def write_table(path: Path, table: pa.Table, *, spreadsheet_safe: bool = False) -> None:
    """Write a table in the format that the extension says; the file appears, or changes, only when it is whole."""
    write_pieces(path, table.schema, table.to_batches(), spreadsheet_safe=spreadsheet_safe)


def write_pieces(
    path: Path, schema: pa.Schema, pieces: Iterable[pa.RecordBatch], *, spreadsheet_safe: bool = False
) -> None:
    """Write a table that need not be in memory as a whole, as `write_table` does."""
    check_table_path(path)
    extension = extension_of(path)
    with atomic_sink(path) as sink:
        if extension in PARQUET:
            with pq.ParquetWriter(sink, schema, compression="zstd", write_page_checksum=True) as writer:
                for piece in pieces:
                    writer.write_batch(piece)
        elif extension in JSON_LINES:
            for row in (row for piece in pieces for row in plain_rows(pa.Table.from_batches([piece]))):
                sink.write((json.dumps(row, ensure_ascii=False) + "\n").encode())
        else:
            delimiter = DELIMITER[extension]
            named = table_text(
                pa.Table.from_batches([], schema), delimiter, str(path), spreadsheet_safe=spreadsheet_safe
            )
            sink.write(named.encode())
            for piece in pieces:
                text = table_text(
                    pa.Table.from_batches([piece]), delimiter, str(path), spreadsheet_safe=spreadsheet_safe, named=False
                )
                sink.write(text.encode())


def table_text(
    table: pa.Table,
    delimiter: str = "\t",
    source: str | None = None,
    *,
    spreadsheet_safe: bool = False,
    named: bool = True,
) -> str:
    """Return a table as text, if `named` with a line of column names.

    TSV has no quoting, so it cannot hold tabs and line ends.
    """
    if len(table) == 0 and not named:
        return ""
    lines = []
    for at, name in enumerate(table.column_names):
        cells = _text(table[name])
        cells = pa.concat_arrays([from_names([name]), cells]) if named else cells
        if spreadsheet_safe and not (pa.types.is_floating(table[name].type) or pa.types.is_integer(table[name].type)):
            cells = no_formula(cells)
        if delimiter != "\t":
            cells = quoted(cells, delimiter)
        elif pc.any(pc.match_substring_regex(cells, r"[\t\r\n]")).as_py():
            raise DataError(
                f"column {name} holds a tab or a line end, which TSV cannot",
                source=source,
                hint="Write CSV, JSON Lines or Parquet instead: ‹out=FILE.jsonl›.",
            )
        lines += [delimiter, cells] if at else [cells]
    return "\n".join(joined(lines).to_pylist()) + "\n"


def plain_rows(table: pa.Table) -> Iterator[dict[str, Any]]:
    """Yield the rows as values that JSON holds: NaN is nothing, and what JSON does not know is text."""
    for batch in table.to_batches(max_chunksize=BATCH):
        for row in batch.to_pylist():
            yield {name: _plain(value) for name, value in row.items()}


def json_text(value: Any) -> str:
    """Return a value as text: itself if it is text, else JSON."""
    plain = _plain(value)
    return plain if isinstance(plain, str) else json.dumps(plain, ensure_ascii=False)


def _refuse_packed(path: Path) -> None:
    if compression_of(path) is not None:
        raise DataError("Parquet compresses by itself", source=str(path), hint=f"Write to {path.stem} instead.")


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value if value is None or isinstance(value, (str, int, bool)) else str(value)


def _text(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as text files hold it: what is neither text nor a number is JSON, and nothing is empty."""
    if not len(column):
        return from_names([])
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    text = pa.types.is_string(kind) or pa.types.is_string_view(kind) or pa.types.is_large_string(kind)
    if text or pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_null(kind):
        return column.combine_chunks().cast(pa.large_string()).fill_null(EMPTY)
    values = ["" if value is None else json_text(value) for value in column.to_pylist()]
    return pa.array(values, pa.large_string())


writers.register("parquet")(Format(write_parquet, PARQUET))
