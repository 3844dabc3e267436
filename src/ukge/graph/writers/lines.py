"""Formats with a fact per line: TSV, CSV and JSON Lines, and how such lines are made.

TSV has no quoting, so it cannot hold tabs and line ends; CSV is quoted as RFC 4180 says. Every distinct name is escaped
once, then lines are joined by Arrow.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ukge.errors import SHOWN, ConfigError, DataError, Problem
from ukge.graph.arrow import from_names
from ukge.graph.fact import REQUIRED, ROLES
from ukge.graph.formats import Format, writers
from ukge.graph.uncertain import UncertainGraph

_BATCH = 65_536
_TEXT = pa.large_string()
FORMULA = "^'*[=+\\-@\t\r\n＝＋－＠]"
"""How a cell starts that a spreadsheet computes, and how one that was made safe does."""
_ELSEWHERE = "Write CSV, JSON Lines or Parquet instead."
Escape = Callable[[pa.Array], pa.Array]


def write_tsv(
    graph: UncertainGraph, sink: pa.NativeFile, path: Path, *, header: bool = False, spreadsheet_safe: bool = False
) -> None:
    """Write one fact per line: head, relation, tail, confidence and, if the graph has any, source."""
    refuse(graph, path, r"[\t\r\n]", "name holds a tab or a line end", _ELSEWHERE)
    first = graph.entities[int(graph.head[0])]
    if first.startswith("\ufeff") and not header:
        problem = Problem("the first name starts with a byte order mark", 1, "head", first)
        raise DataError("would be misread", source=str(path), problems=[problem], hint=_ELSEWHERE)
    _write(graph, sink, "\t", no_formula if spreadsheet_safe else lambda names: names, header=header)


def write_csv(
    graph: UncertainGraph,
    sink: pa.NativeFile,
    path: Path,
    *,
    header: bool = True,
    delimiter: str = ",",
    spreadsheet_safe: bool = False,
) -> None:
    """Write one fact per record, quoting what needs it; `spreadsheet_safe` names start no formula in a spreadsheet."""
    if len(delimiter.encode()) != 1 or delimiter in '"\r\n':
        raise ConfigError(f"delimiter {delimiter!r} cannot separate columns of {path.name}", hint="Use , or ; or |.")
    safe: Escape = no_formula if spreadsheet_safe else lambda names: names
    _write(graph, sink, delimiter, lambda names: quoted(safe(names), delimiter), header=header)


def write_jsonl(graph: UncertainGraph, sink: pa.NativeFile, path: Path) -> None:  # noqa: ARG001  (one signature for all)
    """Write an object with the keys head, relation, tail, confidence and, if the graph has any, source."""
    quoted = one_by_one(lambda name: json.dumps(name, ensure_ascii=False))
    for batch in batches(graph, entity=quoted, relation=quoted, source=quoted, null="null"):
        parts = ['{"head": ', batch.head, ', "relation": ', batch.relation, ', "tail": ', batch.tail]
        parts += [', "confidence": ', batch.confidence]
        write_joined(sink, [*parts, *([] if batch.source is None else [', "source": ', batch.source]), "}\n"])


def _write(graph: UncertainGraph, sink: pa.NativeFile, delimiter: str, escape: Escape, *, header: bool) -> None:
    if header:
        names = REQUIRED if graph.source is None else ROLES
        sink.write((delimiter.join(names) + "\n").encode())
    for batch in batches(graph, entity=escape, relation=escape, source=escape, null=""):
        parts = [batch.head, delimiter, batch.relation, delimiter, batch.tail, delimiter, batch.confidence]
        write_joined(sink, [*parts, *([] if batch.source is None else [delimiter, batch.source]), "\n"])


def no_formula(names: pa.Array) -> pa.Array:
    """Return names with an apostrophe before what a spreadsheet would take for a formula, or before such apostrophes.

    So `ukge.graph.readers.delimited` can take one off again, and all names come back as they were.
    """
    return pc.if_else(pc.match_substring_regex(names, FORMULA), joined(["'", names]), names)


def quoted(names: pa.Array, delimiter: str) -> pa.Array:
    """Return names as CSV holds them."""
    needs = pc.or_(
        pc.match_substring_regex(names, '["\r\n]|^\ufeff'),
        pc.match_substring(names, delimiter),
    )
    doubled = pc.replace_substring(names, '"', '""')
    return pc.if_else(needs, joined(['"', doubled, '"']), names)


@dataclass(frozen=True)
class Batch:
    """Escaped columns of some facts; `number` counts facts from 0, `source` is None if the graph has no sources."""

    number: pa.Array
    head: pa.Array
    relation: pa.Array
    tail: pa.Array
    confidence: pa.Array
    source: pa.Array | None


def batches(graph: UncertainGraph, *, entity: Escape, relation: Escape, source: Escape, null: str) -> Iterator[Batch]:
    """Yield the facts in order with names escaped; a fact without source gets the text `null`."""
    entities = entity(graph.entities.names)
    relations = relation(graph.relations.names)
    origins = None
    if graph.source is not None:
        encoded = graph.source.cast(_TEXT).dictionary_encode()
        origins = source(encoded.dictionary)
        places = encoded.indices
    for start in range(0, len(graph), _BATCH):
        rows = slice(start, min(start + _BATCH, len(graph)))
        yield Batch(
            number=pa.array(np.arange(rows.start, rows.stop)).cast(_TEXT),
            head=entities.take(pa.array(graph.head[rows])),
            relation=relations.take(pa.array(graph.relation[rows])),
            tail=entities.take(pa.array(graph.tail[rows])),
            confidence=pa.array(graph.confidence[rows]).cast(_TEXT),
            source=None if origins is None else origins.take(places[rows]).fill_null(null),
        )


def joined(parts: Sequence[pa.Array | str]) -> pa.Array:
    """Return the parts of each fact one after another; plain text stands for itself in every fact."""
    pieces = [from_names([part])[0] if isinstance(part, str) else part for part in parts]
    return pc.binary_join_element_wise(*pieces, from_names([""])[0])


def write_joined(sink: pa.NativeFile, parts: Sequence[pa.Array | str]) -> None:
    """Write the parts of each fact one after another."""
    lines = joined(parts)
    _, offsets, data = lines.buffers()
    ends = np.frombuffer(offsets, np.int64)[lines.offset : lines.offset + len(lines) + 1]
    sink.write(data.slice(int(ends[0]), int(ends[-1] - ends[0])))


def one_by_one(escape: Callable[[str], str]) -> Escape:
    """Return an `Escape` that calls a Python function for every distinct name."""
    return lambda names: pa.array([escape(name) for name in names.to_pylist()], type=_TEXT)


def refuse(graph: UncertainGraph, path: Path, pattern: str, what: str, hint: str) -> None:
    """Raise `DataError` naming the names and sources that the format cannot hold: those that match `pattern`."""
    columns = {"entity": graph.entities.names, "relation": graph.relations.names}
    if graph.source is not None:
        columns["source"] = graph.source.cast(_TEXT).drop_null().unique()
    problems = []
    count = 0
    for column, names in columns.items():
        wrong = names.filter(pc.match_substring_regex(names, pattern))
        count += len(wrong)
        problems += [Problem(what, None, column, name) for name in wrong[:SHOWN].to_pylist()]
    if count:
        raise DataError(
            f"{count:,} names cannot be written in this format",
            source=str(path),
            problems=problems,
            count=count,
            hint=hint,
        )


writers.register("tsv")(Format(write_tsv, (".tsv", ".tab")))
writers.register("csv")(Format(write_csv, (".csv",)))
writers.register("jsonl")(Format(write_jsonl, (".jsonl", ".ndjson")))
