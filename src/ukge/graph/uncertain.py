"""The uncertain graph: facts (head, relation, tail, confidence) as Arrow columns over two vocabularies."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, overload

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from ukge.errors import DataError, Problem
from ukge.graph.checks import check_confidence, check_names
from ukge.graph.keys import Keys, triple_keys
from ukge.graph.vocabulary import Ids, Vocabulary

Confidences = npt.NDArray[np.float64]
SOURCE_TYPE = pa.dictionary(pa.int32(), pa.large_string())


class Fact(NamedTuple):
    """One fact by name."""

    head: str
    relation: str
    tail: str
    confidence: float
    source: str | None = None


class FactArrays(NamedTuple):
    """Many facts as NumPy columns; names (object arrays) or ids (int32), as asked for."""

    head: npt.NDArray[Any]
    relation: npt.NDArray[Any]
    tail: npt.NDArray[Any]
    confidence: Confidences


class UncertainGraph:
    """Immutable facts with a confidence in [0, 1].

    Columns hold dense ids into `entities` and `relations`. Slices share the vocabularies and the buffers, so cutting a
    graph costs next to nothing. Two graphs are equal when they hold the same facts, by name, in the same order.
    """

    __slots__ = ("_fingerprint", "_table", "entities", "relations")

    def __init__(self, table: pa.Table, entities: Vocabulary, relations: Vocabulary) -> None:
        """Wrap id columns that are already checked; use `from_columns` or `from_ids` for data from outside."""
        self._table = table.combine_chunks()
        self.entities = entities
        self.relations = relations
        self._fingerprint: str | None = None

    @classmethod
    def from_ids(
        cls,
        head: npt.ArrayLike,
        relation: npt.ArrayLike,
        tail: npt.ArrayLike,
        confidence: npt.ArrayLike,
        entities: Vocabulary,
        relations: Vocabulary,
        *,
        source: Any = None,
    ) -> UncertainGraph:
        """Build a graph from dense ids and confidences, checking both."""
        columns = {
            "head": _checked_ids(head, entities, "head"),
            "relation": _checked_ids(relation, relations, "relation"),
            "tail": _checked_ids(tail, entities, "tail"),
        }
        values = np.ascontiguousarray(confidence, dtype=np.float64)
        _same_length({**columns, "confidence": values})
        check_confidence(values)
        return cls(_table(columns["head"], columns["relation"], columns["tail"], values, source), entities, relations)

    @classmethod
    def from_columns(
        cls,
        head: Any,
        relation: Any,
        tail: Any,
        confidence: Any,
        *,
        source: Any = None,
        entities: Vocabulary | None = None,
        relations: Vocabulary | None = None,
    ) -> UncertainGraph:
        """Build a graph from columns of names (Arrow arrays or sequences), checking them.

        Without given vocabularies, ids follow the order in which names first occur: heads, then tails.
        """
        names = {"head": _strings(head), "relation": _strings(relation), "tail": _strings(tail)}
        values = _floats(confidence)
        _same_length({**names, "confidence": values})
        for column, array in names.items():
            check_names(array, column)
        check_confidence(values)
        heads, tails, entity_names = _encode_entities(names["head"], names["tail"], entities)
        if relations is None:
            encoded = names["relation"].dictionary_encode()
            kinds = encoded.indices.to_numpy(zero_copy_only=False)
            relations = Vocabulary.trusted(encoded.dictionary, "relation")
        else:
            kinds = _known(names["relation"], relations, "relation")
        return cls(_table(heads, kinds, tails, values, source), entity_names, relations)

    @classmethod
    def from_facts(cls, facts: Iterable[Sequence[Any]]) -> UncertainGraph:
        """Build a graph from (head, relation, tail, confidence[, source]) tuples."""
        rows = [tuple(fact) for fact in facts]
        wrong = [i for i, row in enumerate(rows) if len(row) not in (4, 5)]
        if wrong:
            problems = [Problem("a fact has 4 or 5 parts", line=i, value=str(rows[i]), place="fact") for i in wrong]
            raise DataError(f"{len(wrong):,} facts have the wrong number of parts", problems=problems)
        source = [row[4] if len(row) == 5 else None for row in rows] if any(len(row) == 5 for row in rows) else None
        columns = [[row[i] for row in rows] for i in range(4)]
        return cls.from_columns(*columns, source=source)

    def __len__(self) -> int:
        return self._table.num_rows

    @property
    def n_entities(self) -> int:
        """How many entity names the vocabulary holds (a slice may use fewer)."""
        return len(self.entities)

    @property
    def n_relations(self) -> int:
        """How many relation names the vocabulary holds (a slice may use fewer)."""
        return len(self.relations)

    @property
    def head(self) -> Ids:
        """Head ids, read-only, without a copy."""
        return _numpy(self._table, "head")

    @property
    def relation(self) -> Ids:
        """Relation ids, read-only, without a copy."""
        return _numpy(self._table, "relation")

    @property
    def tail(self) -> Ids:
        """Tail ids, read-only, without a copy."""
        return _numpy(self._table, "tail")

    @property
    def confidence(self) -> Confidences:
        """Confidences, read-only, without a copy."""
        return _numpy(self._table, "confidence")

    @property
    def source(self) -> pa.Array | None:
        """Where each fact came from (dictionary-encoded names, null where unknown), or None if no fact says."""
        if "source" not in self._table.column_names:
            return None
        return _single(self._table, "source")

    @property
    def nbytes(self) -> int:
        """Bytes of the fact columns (vocabularies not counted)."""
        return int(self._table.nbytes)

    def keys(self) -> Keys:
        """Return one integer per fact, equal exactly where (h, r, t) are equal (see `ukge.graph.keys`)."""
        return triple_keys(self.head, self.relation, self.tail, self.n_entities, self.n_relations)

    def inverse_keys(self) -> Keys:
        """Return the keys of the inverse triples (t, r, h)."""
        return triple_keys(self.tail, self.relation, self.head, self.n_entities, self.n_relations)

    @overload
    def facts(self, kind: Literal["arrow"] = "arrow", *, names: bool = True) -> pa.Table: ...
    @overload
    def facts(self, kind: Literal["pandas"], *, names: bool = True) -> pd.DataFrame: ...
    @overload
    def facts(self, kind: Literal["numpy"], *, names: bool = True) -> FactArrays: ...

    def facts(self, kind: str = "arrow", *, names: bool = True) -> Any:
        """Return the facts as an Arrow table, a pandas frame or NumPy columns, by name or (`names=False`) by id."""
        if kind not in ("arrow", "pandas", "numpy"):
            raise DataError(f"unknown kind of facts {kind!r}", hint="Known: arrow, pandas, numpy.")
        table = self._named() if names else self._table
        if kind == "arrow":
            return table
        if kind == "pandas":
            return table.to_pandas()
        columns = [table[name].to_numpy() for name in ("head", "relation", "tail", "confidence")]
        return FactArrays(*columns)

    @overload
    def __getitem__(self, rows: int | np.integer) -> Fact: ...
    @overload
    def __getitem__(self, rows: slice | npt.NDArray[Any] | Sequence[int]) -> UncertainGraph: ...

    def __getitem__(self, rows: Any) -> Fact | UncertainGraph:
        if isinstance(rows, (int, np.integer)):
            return self._fact(int(rows))
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            if step == 1:
                return self._like(self._table.slice(start, max(stop - start, 0)))
            rows = np.arange(start, stop, step)
        picks = np.asarray(rows)
        if picks.dtype == np.bool_:
            if len(picks) != len(self):
                raise DataError(f"a mask of {len(picks):,} cannot choose among {len(self):,} facts")
            picks = np.flatnonzero(picks)
        return self._like(self._table.take(pa.array(picks.astype(np.int64, copy=False))))

    def __iter__(self) -> Iterator[Fact]:
        for batch in self._named().to_batches(max_chunksize=65_536):
            columns = [batch.column(i).to_pylist() for i in range(batch.num_columns)]
            for row in zip(*columns, strict=True):
                yield Fact(*row)

    def with_confidence(self, confidence: npt.ArrayLike) -> UncertainGraph:
        """Return the same facts with other confidences."""
        values = np.ascontiguousarray(confidence, dtype=np.float64)
        if len(values) != len(self):
            raise DataError(f"{len(values):,} confidences do not fit {len(self):,} facts")
        check_confidence(values)
        at = self._table.column_names.index("confidence")
        return self._like(self._table.set_column(at, "confidence", pa.array(values)))

    def compact(self) -> UncertainGraph:
        """Return the same facts over vocabularies without unused names; the order of names stays."""
        entities, head, tail = _used(self.entities, self.head, self.tail)
        relations, relation, _ = _used(self.relations, self.relation)
        return UncertainGraph(_table(head, relation, tail, self.confidence, self.source), entities, relations)

    @property
    def fingerprint(self) -> str:
        """A SHA-256 of the facts by name, in order; the same whatever the ids, the chunks or the file format."""
        if self._fingerprint is None:
            self._fingerprint = self._digest()
        return self._fingerprint

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UncertainGraph):
            return NotImplemented
        return self is other or (len(self) == len(other) and self.fingerprint == other.fingerprint)

    def __hash__(self) -> int:
        return int(self.fingerprint[:15], 16)

    def __repr__(self) -> str:
        return f"UncertainGraph({len(self):,} facts, {self.n_entities:,} entities, {self.n_relations:,} relations)"

    def _like(self, table: pa.Table) -> UncertainGraph:
        return UncertainGraph(table, self.entities, self.relations)

    def _fact(self, row: int) -> Fact:
        if not -len(self) <= row < len(self):
            raise IndexError(f"fact {row} of {len(self)}")
        named = self._like(self._table.slice(row % len(self), 1))._named().to_pylist()[0]
        return Fact(**named)

    def _named(self) -> pa.Table:
        columns: dict[str, Any] = {
            "head": self.entities.decode(self.head),
            "relation": self.relations.decode(self.relation),
            "tail": self.entities.decode(self.tail),
            "confidence": _single(self._table, "confidence"),
        }
        if self.source is not None:
            columns["source"] = self.source.cast(pa.large_string())
        return pa.table(columns)

    def _digest(self) -> str:
        hasher = hashlib.sha256(f"ukge facts 1 {len(self)}".encode())
        for vocabulary, columns in ((self.entities, (self.head, self.tail)), (self.relations, (self.relation,))):
            order, ranks = _by_first_use(len(vocabulary), columns)
            _hash_names(hasher, vocabulary.decode(order))
            for column in ranks:
                hasher.update(column.astype("<i4", copy=False).tobytes())
        hasher.update((self.confidence + 0.0).astype("<f8", copy=False).tobytes())
        if self.source is not None:
            _hash_names(hasher, self.source.cast(pa.large_string()).fill_null("\0"))
        return hasher.hexdigest()


def concat(graphs: Sequence[UncertainGraph]) -> UncertainGraph:
    """Return the facts of several graphs, one after another. Graphs over other vocabularies are joined by name."""
    if not graphs:
        raise DataError("nothing to concatenate")
    first = graphs[0]
    sources = None
    if any(graph.source is not None for graph in graphs):
        parts = [g.source if g.source is not None else pa.nulls(len(g), SOURCE_TYPE) for g in graphs]
        sources = pa.concat_arrays([part.cast(pa.large_string()) for part in parts])
    values = np.concatenate([graph.confidence for graph in graphs])
    if all(g.entities == first.entities and g.relations == first.relations for g in graphs):
        columns = [np.concatenate([getattr(g, c) for g in graphs]) for c in ("head", "relation", "tail")]
        return UncertainGraph(_table(*columns, values, sources), first.entities, first.relations)
    named = pa.concat_tables([graph.facts().select(["head", "relation", "tail"]) for graph in graphs])
    return UncertainGraph.from_columns(named["head"], named["relation"], named["tail"], values, source=sources)


def _table(head: Ids, relation: Ids, tail: Ids, confidence: Confidences, source: Any = None) -> pa.Table:
    columns = {
        "head": pa.array(head, type=pa.int32()),
        "relation": pa.array(relation, type=pa.int32()),
        "tail": pa.array(tail, type=pa.int32()),
        "confidence": pa.array(confidence, type=pa.float64()),
    }
    if source is not None:
        columns["source"] = _sources(source, len(confidence))
    return pa.table(columns)


def _sources(source: Any, length: int) -> pa.Array:
    if isinstance(source, str):
        return pa.array([source], type=pa.large_string()).take(pa.array(np.zeros(length, np.int64))).cast(SOURCE_TYPE)
    array = source.combine_chunks() if isinstance(source, pa.ChunkedArray) else source
    if not isinstance(array, pa.Array):
        array = pa.array(array, type=pa.large_string())
    if len(array) != length:
        raise DataError(f"{len(array):,} sources do not fit {length:,} facts")
    return array.cast(pa.large_string()).dictionary_encode().cast(SOURCE_TYPE)


def _single(table: pa.Table, column: str) -> pa.Array:
    chunked = table[column]
    return chunked.chunk(0) if chunked.num_chunks == 1 else chunked.combine_chunks()


def _numpy(table: pa.Table, column: str) -> npt.NDArray[Any]:
    values: npt.NDArray[Any] = _single(table, column).to_numpy(zero_copy_only=False)
    return values


def _strings(values: Any) -> pa.Array:
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, pa.Array):
        return values.cast(pa.large_string())
    try:
        return pa.array(values, type=pa.large_string(), from_pandas=True)
    except (pa.ArrowTypeError, pa.ArrowInvalid) as error:
        raise DataError(f"names must be text: {error}", hint="Convert the column to strings first.") from None


def _floats(values: Any) -> Confidences:
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        values = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
    try:
        return np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"confidences must be numbers: {error}") from None


def _encode_entities(head: pa.Array, tail: pa.Array, entities: Vocabulary | None) -> tuple[Ids, Ids, Vocabulary]:
    if entities is not None:
        return _known(head, entities, "head"), _known(tail, entities, "tail"), entities
    both = pa.chunked_array([head, tail]).dictionary_encode()
    names = both.chunk(0).dictionary if both.num_chunks else pa.array([], type=pa.large_string())
    ids = [chunk.indices.to_numpy(zero_copy_only=False) for chunk in both.chunks]
    if len(head) == 0:
        ids = [np.zeros(0, np.int32), np.zeros(0, np.int32)]
    return ids[0], ids[1], Vocabulary.trusted(names, "entity")


def _known(names: pa.Array, vocabulary: Vocabulary, column: str) -> Ids:
    ids = vocabulary.encode(names)
    unknown = np.flatnonzero(ids < 0)
    if len(unknown):
        problems = [
            Problem(f"{vocabulary.kind} is not in the vocabulary", int(row), column, names[int(row)].as_py(), "row")
            for row in unknown[:10]
        ]
        raise DataError(f"{len(unknown):,} unknown names in column {column}", problems=problems, count=len(unknown))
    return ids


def _checked_ids(ids: npt.ArrayLike, vocabulary: Vocabulary, column: str) -> Ids:
    array = np.asarray(ids)
    if array.size and not np.issubdtype(array.dtype, np.integer):
        raise DataError(f"column {column} must hold integer ids, not {array.dtype}")
    wrong = np.flatnonzero((array < 0) | (array >= len(vocabulary)))
    if len(wrong):
        problems = [Problem("no such id", int(row), column, str(array[row]), "row") for row in wrong[:10]]
        raise DataError(
            f"{len(wrong):,} ids in column {column} are outside 0…{len(vocabulary) - 1}",
            problems=problems,
            count=len(wrong),
            hint=f"The vocabulary holds {len(vocabulary):,} {vocabulary.kind} names; ids count from 0.",
        )
    return np.ascontiguousarray(array, dtype=np.int32)


def _same_length(columns: dict[str, Any]) -> None:
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"columns differ in length: {lengths}")


def _used(vocabulary: Vocabulary, *columns: Ids) -> tuple[Vocabulary, Ids, Ids]:
    used = np.zeros(len(vocabulary), dtype=np.bool_)
    for column in columns:
        used[column] = True
    new = (np.cumsum(used) - 1).astype(np.int32)
    kept = Vocabulary.trusted(vocabulary.names.filter(pa.array(used)), vocabulary.kind)
    return kept, new[columns[0]], new[columns[-1]]


def _by_first_use(size: int, columns: Sequence[Ids]) -> tuple[npt.NDArray[np.int64], list[Ids]]:
    ids = np.concatenate(columns)
    first = np.full(size, len(ids), dtype=np.int64)
    first[ids[::-1]] = np.arange(len(ids) - 1, -1, -1)
    order = np.argsort(first, kind="stable")[: int((first < len(ids)).sum())]
    rank = np.zeros(size, dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return order, [rank[column] for column in columns]


def _hash_names(hasher: Any, names: pa.Array) -> None:
    plain = pa.concat_arrays([names.cast(pa.large_string())])
    lengths = np.diff(np.frombuffer(plain.buffers()[1], dtype=np.int64, count=len(plain) + 1)) if len(plain) else []
    hasher.update(np.asarray(lengths, dtype="<i8").tobytes())
    if len(plain):
        hasher.update(plain.buffers()[2] or b"")
