"""The uncertain graph: facts (head, relation, tail, confidence) as Arrow columns over two vocabularies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ukge.errors import DataError
from ukge.graph import neighbours
from ukge.graph.arrow import to_numpy
from ukge.graph.columns import (
    CHOICE_HINT,
    NOWHERE,
    Confidences,
    IdColumn,
    Where,
    check_confidence,
    chosen_rows,
    confidence_column,
    encode_column_names,
    fact_table,
    id_column,
    joined_sources,
    names_column,
    same_length,
    single,
    used_names,
)
from ukge.graph.fact import Fact, FactArrays, rows_of
from ukge.graph.keys import Keys, fingerprint, triple_keys
from ukge.graph.nodes import Nodes
from ukge.graph.selection import Names, mask_of
from ukge.graph.vocabulary import Ids, Vocabulary
from ukge.html.card import card

if TYPE_CHECKING:
    import pandas as pd


IdArray = TypeVar("IdArray", bound=npt.NDArray[np.integer[Any]])

__all__ = ["Fact", "FactArrays", "UncertainGraph", "concat"]


class UncertainGraph:
    """Immutable facts with a confidence in [0, 1].

    Columns hold dense ids into `entities` and `relations`. Slices share the vocabularies and the buffers, so cutting a
    graph costs next to nothing. Two graphs are equal when they hold the same facts, by name, in the same order.
    """

    __slots__ = ("_entities", "_fingerprint", "_nodes", "_relations", "_table", "_undirected")

    def __init__(
        self,
        table: pa.Table,
        entities: Vocabulary,
        relations: Vocabulary,
        undirected: Sequence[str] = (),
        nodes: Nodes | None = None,
    ) -> None:
        """Wrap id columns that are already checked; use `from_columns` or `from_ids` for data from outside.

        Facts of `undirected` relations must stand as `as_stored` has them; `ukge.graph.undirected` makes them so.
        """
        self._table = table.combine_chunks()
        self._entities = entities
        self._relations = relations
        self._undirected = tuple(undirected)
        self._nodes = Nodes.none() if nodes is None else nodes
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
        where: Where = NOWHERE,
    ) -> UncertainGraph:
        """Build a graph from dense ids and confidences, checking both; errors name the places that `where` knows."""
        heads = id_column(head, entities, "head", where)
        kinds = id_column(relation, relations, "relation", where)
        tails = id_column(tail, entities, "tail", where)
        values = confidence_column(confidence)
        same_length({"head": heads, "relation": kinds, "tail": tails, "confidence": values})
        check_confidence(values, where=where)
        return cls(fact_table(heads, kinds, tails, values, source), entities, relations)

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
        where: Where = NOWHERE,
    ) -> UncertainGraph:
        """Build a graph from columns of names (Arrow arrays or sequences), checking them.

        Without given vocabularies, ids follow the order in which names first occur: heads, then tails. Errors name the
        places that `where` knows.
        """
        pair = {"head": names_column(head, "head"), "tail": names_column(tail, "tail")}
        kind = {"relation": names_column(relation, "relation")}
        values = confidence_column(confidence)
        same_length({**pair, **kind, "confidence": values})
        check_confidence(values, where=where)
        (heads, tails), entities = encode_column_names(pair, entities, "entity", where)
        (kinds,), relations = encode_column_names(kind, relations, "relation", where)
        return cls(fact_table(heads, kinds, tails, values, source), entities, relations)

    @classmethod
    def from_facts(cls, facts: Iterable[Sequence[Any]]) -> UncertainGraph:
        """Build a graph from (head, relation, tail, confidence[, source]) tuples."""
        rows = rows_of(facts, fewest=4)
        source = [row[4] if len(row) == 5 else None for row in rows] if any(len(row) == 5 for row in rows) else None
        columns = [[row[i] for row in rows] for i in range(4)]
        return cls.from_columns(*columns, source=source)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    @property
    def entities(self) -> Vocabulary:
        """The names behind head and tail ids."""
        return self._entities

    @property
    def relations(self) -> Vocabulary:
        """The names behind relation ids."""
        return self._relations

    @property
    def undirected(self) -> tuple[str, ...]:
        """The relations without a direction: a fact of theirs and its mirror are one fact, which is stored once."""
        return self._undirected

    @property
    def undirected_relations(self) -> npt.NDArray[np.bool_]:
        """Which relation ids have no direction."""
        found = np.zeros(self.n_relations, dtype=np.bool_)
        found[[self.relations.index[name] for name in self._undirected]] = True
        return found

    def taken_as_undirected(self, relations: Sequence[str]) -> UncertainGraph:
        """Return the same facts with some relations undirected; they must stand as `as_stored` has them."""
        return UncertainGraph(self._table, self.entities, self.relations, relations, self.nodes)

    @property
    def nodes(self) -> Nodes:
        """What is known of the entities beside their facts: labels, types, descriptions; slices share it."""
        return self._nodes

    def with_nodes(self, nodes: Nodes) -> UncertainGraph:
        """Return the same facts with other node data; what it says of entities that are not here is left out."""
        return UncertainGraph(self._table, self.entities, self.relations, self._undirected, nodes.within(self.entities))

    def as_stored(self, head: IdArray, relation: IdArray, tail: IdArray) -> tuple[IdArray, IdArray, IdArray]:
        """Return facts by ids as this graph would hold them: of an undirected relation, the lower id is the head."""
        if not self._undirected:
            return head, relation, tail
        turned = self.undirected_relations[relation] & (head > tail)
        ends: tuple[Any, Any] = np.where(turned, tail, head), np.where(turned, head, tail)
        return ends[0], relation, ends[1]

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
        return self._column("head").view(IdColumn)

    @property
    def relation(self) -> Ids:
        """Relation ids, read-only, without a copy."""
        return self._column("relation").view(IdColumn)

    @property
    def tail(self) -> Ids:
        """Tail ids, read-only, without a copy."""
        return self._column("tail").view(IdColumn)

    @property
    def confidence(self) -> Confidences:
        """Confidences, read-only, without a copy."""
        return self._column("confidence")

    @property
    def source(self) -> pa.Array | None:
        """Where each fact came from (dictionary-encoded names, null where unknown), or None if no fact says."""
        if "source" not in self._table.column_names:
            return None
        column = single(self._table, "source")
        return None if column.null_count == len(column) else column

    @property
    def nbytes(self) -> int:
        """Bytes of the fact columns (vocabularies not counted)."""
        return int(self._table.nbytes)

    def keys(self) -> Keys:
        """Return one integer per fact, equal exactly where (h, r, t) are equal (see `ukge.graph.keys`)."""
        return triple_keys(self.head, self.relation, self.tail, self.n_entities, self.n_relations)

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

    def to_networkx(self) -> Any:
        """Return a NetworkX `MultiDiGraph`: edges have relation, confidence and source."""
        return neighbours.to_networkx(self)

    def to_pykeen(self) -> neighbours.PykeenFacts:
        """Return a PyKEEN `TriplesFactory` over the same ids, and the confidences beside it."""
        return neighbours.to_pykeen(self)

    def to_pyg(self) -> Any:
        """Return a `HeteroData` of PyTorch Geometric: a kind of edge per relation, confidences as `edge_weight`."""
        return neighbours.to_pyg(self)

    def to_polars(self) -> Any:
        """Return a Polars frame with a row per fact, by name."""
        return neighbours.to_polars(self)

    @overload
    def __getitem__(self, rows: int | np.integer) -> Fact: ...
    @overload
    def __getitem__(self, rows: slice | npt.NDArray[Any] | Sequence[int]) -> UncertainGraph: ...

    def __getitem__(self, rows: Any) -> Fact | UncertainGraph:
        if isinstance(rows, (bool, np.bool_)):
            raise DataError(f"{rows} chooses no facts: a mask says of each fact whether it is meant", hint=CHOICE_HINT)
        if isinstance(rows, (int, np.integer)):
            return self._fact(int(rows))
        if isinstance(rows, slice):
            start, stop, step = rows.indices(len(self))
            if step == 1:
                return self._like(self._table.slice(start, max(stop - start, 0)))
            rows = np.arange(start, stop, step)
        return self._like(self._table.take(pa.array(chosen_rows(rows, len(self)))))

    def where(
        self,
        *,
        head: Names | None = None,
        relation: Names | None = None,
        tail: Names | None = None,
        entity: Names | None = None,
        min_confidence: float | None = None,
        max_confidence: float | None = None,
        source: Names | None = None,
    ) -> UncertainGraph:
        """Return the facts that meet every condition: `graph.where(relation="worksFor", min_confidence=0.8)`.

        Names may be one or several, of which a fact has any; `entity` is its head or its tail. Bounds of confidence
        are included. A name that the graph does not know is an error that suggests near ones.
        """
        return self[mask_of(self, head, relation, tail, entity, min_confidence, max_confidence, source)]

    def __iter__(self) -> Iterator[Fact]:
        for batch in self._named().to_batches(max_chunksize=65_536):
            columns = [batch.column(i).to_pylist() for i in range(batch.num_columns)]
            for row in zip(*columns, strict=True):
                yield Fact(*row)

    def with_confidence(self, confidence: npt.ArrayLike) -> UncertainGraph:
        """Return the same facts with other confidences."""
        values = confidence_column(confidence)
        if len(values) != len(self):
            raise DataError(f"{len(values):,} confidences do not fit {len(self):,} facts")
        check_confidence(values)
        at = self._table.column_names.index("confidence")
        return self._like(self._table.set_column(at, "confidence", pa.array(values)))

    def compact(self) -> UncertainGraph:
        """Return the same facts over vocabularies without unused names; the order of names stays."""
        entities, (head, tail) = used_names(self.entities, [self.head, self.tail])
        relations, (relation,) = used_names(self.relations, [self.relation])
        undirected = [name for name in self._undirected if name in relations]
        table = fact_table(head, relation, tail, self.confidence, self.source)
        return UncertainGraph(table, entities, relations, undirected, self.nodes.within(entities))

    def with_facts(
        self, head: npt.ArrayLike, relation: npt.ArrayLike, tail: npt.ArrayLike, confidence: npt.ArrayLike
    ) -> UncertainGraph:
        """Return other facts, by ids, over the same names, as this graph would hold them."""
        ids = self.as_stored(*(np.asarray(column) for column in (head, relation, tail)))
        made = UncertainGraph.from_ids(*ids, confidence, self.entities, self.relations)
        return self._like(made._table)

    @property
    def fingerprint(self) -> str:
        """A SHA-256 of the facts by name, in order; the same whatever the ids, the chunks or the file format."""
        if self._fingerprint is None:
            self._fingerprint = fingerprint(self)
        return self._fingerprint

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UncertainGraph):
            return NotImplemented
        return self is other or (len(self) == len(other) and self.fingerprint == other.fingerprint)

    def __hash__(self) -> int:
        return int(self.fingerprint[:15], 16)

    def __repr__(self) -> str:
        return f"UncertainGraph({len(self):,} facts, {self.n_entities:,} entities, {self.n_relations:,} relations)"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: how the confidences are distributed, and the first facts."""
        from ukge.graph.notebook import confidence_figure, fact_table  # noqa: PLC0415 — for notebooks

        return card(repr(self), [confidence_figure(self, "confidences")], fact_table(self))

    def _like(self, table: pa.Table) -> UncertainGraph:
        return UncertainGraph(table, self.entities, self.relations, self._undirected, self.nodes)

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
            "confidence": single(self._table, "confidence"),
        }
        if self.source is not None:
            columns["source"] = self.source.cast(pa.large_string())
        return pa.table(columns)

    def _column(self, name: str) -> npt.NDArray[Any]:
        return to_numpy(single(self._table, name))


def concat(graphs: Sequence[UncertainGraph]) -> UncertainGraph:
    """Return the facts of several graphs, one after another. Graphs over other vocabularies are joined by name.

    What is undirected in one of them must be so in all, and then they must share their names.
    """
    if not graphs:
        raise DataError("nothing to concatenate")
    first = graphs[0]
    if any(graph.undirected != first.undirected for graph in graphs):
        raise DataError("graphs of which some take a relation to be undirected and others do not cannot be joined")
    sources = joined_sources([graph.source for graph in graphs], [len(graph) for graph in graphs])
    values = np.concatenate([graph.confidence for graph in graphs])
    nodes = reduce(Nodes.joined, (graph.nodes for graph in graphs))
    if all(g.entities == first.entities and g.relations == first.relations for g in graphs):
        head, relation, tail = (np.concatenate([g._column(c) for g in graphs]) for c in ("head", "relation", "tail"))
        table = fact_table(head, relation, tail, values, sources)
        return UncertainGraph(table, first.entities, first.relations, first.undirected, nodes.within(first.entities))
    if first.undirected:
        raise DataError("graphs with undirected relations that do not share their names cannot be joined")
    named = pa.concat_tables([graph.facts().select(["head", "relation", "tail"]) for graph in graphs])
    joined = UncertainGraph.from_columns(named["head"], named["relation"], named["tail"], values, source=sources)
    return joined.with_nodes(nodes)
