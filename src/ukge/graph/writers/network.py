"""Facts with whatever is said of each, and what is known of their entities: what programs for networks are given.

A plain graph has confidences and sources; predictions have bounds, reasons, and whether the graph holds them, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ukge.errors import SHOWN, DataError, Problem
from ukge.graph.arrow import from_names, to_numpy
from ukge.graph.columns import single
from ukge.graph.fact import TRIPLE
from ukge.graph.node_columns import json_text
from ukge.graph.nodes import ID, Nodes
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Ids, Vocabulary, encode_names

TEXT = pa.large_string()
STATUS, OBSERVED, PREDICTED = "status", "observed", "predicted"
"""The column that says whether the graph holds a fact, and what it says."""

LABELS = ("head_label", "tail_label")
_BATCH = 65_536

NetworkWriter = Callable[["Network", Any, Path], None]


@dataclass(frozen=True, eq=False)
class Network:
    """Entities with what is known of them, in order of their ids, and facts with their columns, batch by batch."""

    entities: Vocabulary
    nodes: pa.Table
    """a row per entity: `id`, then the columns of node data that say anything"""
    columns: dict[str, pa.DataType]
    """what is said of a fact beside its names"""
    size: int
    _batches: Callable[[], Iterator[pa.Table]]

    @classmethod
    def of(cls, graph: UncertainGraph) -> Network:
        """Return the facts of a graph that uses all of its names."""
        columns = {"confidence": pa.float64()} | ({} if graph.source is None else {"source": TEXT})

        def batches() -> Iterator[pa.Table]:
            for start in range(0, len(graph), _BATCH):
                named = graph[start : start + _BATCH].facts()
                if "source" in columns and "source" not in named.column_names:
                    named = named.append_column("source", pa.nulls(len(named), TEXT))
                yield named

        return cls(graph.entities, _known(graph.entities, graph.nodes), columns, len(graph), batches)

    @classmethod
    def of_table(cls, table: pa.Table, nodes: Nodes) -> Network:
        """Return the rows of a table with the columns head, relation, tail, and others."""
        _, names = encode_names([table["head"], table["tail"]])
        entities = Vocabulary.trusted(names, "entity")
        kept = [name for name in table.column_names if name not in LABELS]
        plain = pa.table({name: _plain(table[name]) for name in kept})
        columns = {name: plain[name].type for name in kept if name not in TRIPLE}

        def batches() -> Iterator[pa.Table]:
            for start in range(0, len(plain), _BATCH):
                yield plain.slice(start, _BATCH).combine_chunks()

        return cls(entities, _known(entities, nodes), columns, len(plain), batches)

    def __len__(self) -> int:
        return self.size

    def facts(self) -> Iterator[pa.Table]:
        """Yield the facts in order: head, relation and tail by name, and the columns."""
        return self._batches()

    def ends(self, facts: pa.Table) -> tuple[Ids, Ids]:
        """Return the ids of heads and tails."""
        return self.entities.encode(facts["head"]), self.entities.encode(facts["tail"])

    def refuse(self, path: Path, pattern: str, what: str, hint: str, *, columns: Sequence[str] | None = None) -> None:
        """Raise `DataError` naming the names and texts that the format cannot hold: those that match `pattern`.

        Looked at are all texts, or those of some columns of facts, and of the entities' names.
        """
        problems: list[Problem] = []
        count = 0
        for column, texts in self._texts(columns):
            wrong = texts.filter(pc.match_substring_regex(texts, pattern))
            count += len(wrong)
            problems += [Problem(what, None, column, text) for text in wrong[:SHOWN].to_pylist()]
        if count:
            told = f"{count:,} names cannot be written in this format"
            raise DataError(told, source=str(path), problems=problems, count=count, hint=hint)

    def _texts(self, columns: Sequence[str] | None) -> Iterator[tuple[str, pa.Array]]:
        for name in self.nodes.column_names if columns is None else (ID,):
            column = single(self.nodes, name)
            yield name, (column.flatten() if pa.types.is_list(column.type) else column).cast(TEXT).drop_null().unique()
        wanted = ("relation", *self.columns) if columns is None else columns
        for facts in self.facts():
            for name in wanted:
                if pa.types.is_large_string(facts[name].type):
                    yield name, single(facts, name).drop_null().unique()


def refuse_others(path: Path, beside: Sequence[Path]) -> None:
    """Refuse to replace a file that nobody named and that was not written beside an older one of the same name."""
    for other in beside:
        if other.exists() and not path.exists():
            raise DataError(
                f"{other.name} would be written beside it, and is there already",
                source=str(path),
                hint="Choose another name, or move that file away.",
            )


def each_once(column: pa.Array, escape: Callable[[str], str]) -> pa.Array:
    """Return texts escaped by a Python function, which sees every distinct one once; nothing stays nothing."""
    encoded = column.cast(TEXT).dictionary_encode()
    escaped = from_names([escape(text) for text in encoded.dictionary.to_pylist()])
    return escaped.take(encoded.indices)


def cell(value: Any) -> str:
    """Return a value as a text of one line may hold it: lists with | between."""
    if isinstance(value, list):
        return "|".join(value)
    return "true" if value is True else "false" if value is False else "" if value is None else str(value)


def _known(entities: Vocabulary, nodes: Nodes) -> pa.Table:
    """Return node data by the ids of entities, without columns that say nothing."""
    names = entities.names
    columns = {ID: names}
    for name in (*nodes.known, *nodes.others) if len(nodes) else ():
        column = nodes.aligned(names, name)
        if column.null_count < len(column):
            columns[name] = column
    return pa.table(columns)


def _plain(column: pa.ChunkedArray) -> pa.Array:
    """Return a column as text, numbers or truth values, NaN as nothing; whatever else it holds is JSON."""
    array = column.combine_chunks()
    kind = array.type
    if pa.types.is_dictionary(kind):
        array = array.cast(kind.value_type)
        kind = kind.value_type
    if pa.types.is_floating(kind):
        values = array.cast(pa.float64())
        return pc.if_else(pc.is_finite(values), values, None)
    if pa.types.is_integer(kind):
        return (
            array.cast(pa.int64()) if pc.all(pc.less_equal(array, 2**62)).as_py() in (True, None) else array.cast(TEXT)
        )
    if pa.types.is_boolean(kind):
        return array
    if pa.types.is_nested(kind):
        return pa.array([None if each is None else json_text(each) for each in array.to_pylist()], TEXT)
    return array.cast(TEXT)


def with_status(table: pa.Table, known: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> pa.Table:
    """Return predictions with a column that says which of them the graph holds."""
    names = from_names([PREDICTED, OBSERVED])
    return table.append_column(STATUS, names.take(pa.array(known.astype(np.int8))))


def is_predicted(facts: pa.Table) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return which facts are predicted, and not held by the graph; of a plain graph, none."""
    if STATUS not in facts.column_names:
        return np.zeros(len(facts), dtype=np.bool_)
    found = to_numpy(pc.equal(single(facts, STATUS), from_names([PREDICTED])[0]).cast(pa.int8()), missing=0)
    return np.asarray(found == 1, dtype=np.bool_)
