"""Facts → lines of text, vectorised: every distinct name is escaped once, then lines are joined by Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ukge.errors import SHOWN, DataError, Problem
from ukge.graph.arrow import from_names
from ukge.graph.uncertain import UncertainGraph

_BATCH = 65_536
_TEXT = pa.large_string()
Escape = Callable[[pa.Array], pa.Array]


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
