"""TSV and CSV. TSV has no quoting, so it cannot hold tabs and line ends; CSV is quoted as RFC 4180 says."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ukge.errors import ConfigError, DataError, Problem
from ukge.graph.fact import REQUIRED, ROLES
from ukge.graph.formats import Format
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.writers.formats import writers
from ukge.graph.writers.lines import Escape, batches, joined, refuse, write_joined

_ELSEWHERE = "Write CSV, JSON Lines or Parquet instead."


def write_tsv(graph: UncertainGraph, sink: pa.NativeFile, path: Path, *, header: bool = False) -> None:
    """Write one fact per line: head, relation, tail, confidence and, if the graph has any, source."""
    refuse(graph, path, r"[\t\r\n]", "name holds a tab or a line end", _ELSEWHERE)
    first = graph.entities[int(graph.head[0])]
    if first.startswith("\ufeff") and not header:
        problem = Problem("the first name starts with a byte order mark", 1, "head", first)
        raise DataError("would be misread", source=str(path), problems=[problem], hint=_ELSEWHERE)
    _write(graph, sink, "\t", lambda names: names, header=header)


def write_csv(
    graph: UncertainGraph, sink: pa.NativeFile, path: Path, *, header: bool = True, delimiter: str = ","
) -> None:
    """Write one fact per record, quoting what needs it."""
    if len(delimiter.encode()) != 1 or delimiter in '"\r\n':
        raise ConfigError(f"delimiter {delimiter!r} cannot separate columns of {path.name}", hint="Use , or ; or |.")
    _write(graph, sink, delimiter, lambda names: quoted(names, delimiter), header=header)


def _write(graph: UncertainGraph, sink: pa.NativeFile, delimiter: str, escape: Escape, *, header: bool) -> None:
    if header:
        names = REQUIRED if graph.source is None else ROLES
        sink.write((delimiter.join(names) + "\n").encode())
    for batch in batches(graph, entity=escape, relation=escape, source=escape, null=""):
        parts = [batch.head, delimiter, batch.relation, delimiter, batch.tail, delimiter, batch.confidence]
        write_joined(sink, [*parts, *([] if batch.source is None else [delimiter, batch.source]), "\n"])


def quoted(names: pa.Array, delimiter: str) -> pa.Array:
    """Return names as CSV holds them."""
    needs = pc.or_(
        pc.match_substring_regex(names, '["\r\n]|^\ufeff'),
        pc.match_substring(names, delimiter),
    )
    doubled = pc.replace_substring(names, '"', '""')
    return pc.if_else(needs, joined(['"', doubled, '"']), names)


writers.register("tsv")(Format(write_tsv, (".tsv", ".tab")))
writers.register("csv")(Format(write_csv, (".csv",)))
