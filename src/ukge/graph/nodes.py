"""What is known of entities beside their facts: what people call them, of which types they are, and what else is said.

A graph carries it along (`UncertainGraph.nodes`); facts and their fingerprint know nothing of it.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ukge.errors import DataError, known_names
from ukge.graph.arrow import from_names, from_numpy, to_numpy
from ukge.graph.columns import NOWHERE, Names, Where, empty_names, names_column, refuse_rows, single
from ukge.graph.node_columns import as_lists, as_others, as_texts, joined_tables, one_row_each
from ukge.graph.vocabulary import Ids, Vocabulary

ID, LABEL, TYPES, DESCRIPTION, ALIASES = COLUMNS = ("id", "label", "types", "description", "aliases")
"""The columns that all node data has; further ones stand after them, by the names that they came with."""

_TYPES_SHOWN = 12
_SPELT_UP_TO = 200_000
"""Entities among whose labels misspelt ones are looked for; among more it would take too long."""


class Node(NamedTuple):
    """One entity: its name, and what is known of it. `others` holds further columns that say something of it."""

    id: str
    label: str | None
    types: tuple[str, ...]
    description: str | None
    aliases: tuple[str, ...]
    others: Mapping[str, Any]


class Nodes:
    """Immutable node data by the name of the entity, which need not be known for all entities of a graph.

    `table` has a row per entity with the columns `id` (text, each once), `label`, `types` (lists), `description`,
    `aliases` (lists), and any others.
    """

    __slots__ = ("_spoken", "table")

    def __init__(self, table: pa.Table) -> None:
        """Wrap a table that has the columns already; use `from_columns` for what comes from outside."""
        self.table = table.combine_chunks()
        self._spoken: dict[str, str] | None = None

    @classmethod
    def from_columns(
        cls,
        id: Any,  # noqa: A002  (what everybody calls it)
        *,
        label: Any = None,
        types: Any = None,
        description: Any = None,
        aliases: Any = None,
        others: Mapping[str, Any] | None = None,
        where: Where = NOWHERE,
    ) -> Nodes:
        """Make node data of columns (Arrow arrays or sequences); errors name the places that `where` knows.

        `types` and `aliases` hold a list for each entity, one text, or nothing. Blank text says nothing. Rows of one
        entity are joined: the first label and description count, other labels become aliases.
        """
        ids = names_column(id, ID).cast(pa.large_string())
        ids = ids.combine_chunks() if isinstance(ids, pa.ChunkedArray) else ids
        empty = np.flatnonzero(empty_names(ids))
        hint = "Every row of node data needs the name of its entity, as it stands in the facts."
        what = f"{len(empty):,} of {len(ids):,} nodes have no id"
        refuse_rows(what, empty, lambda row: ("id is empty", ids[row].as_py()), ID, where, hint)
        columns = {
            ID: ids,
            LABEL: as_texts(label, LABEL, len(ids), where),
            TYPES: as_lists(types, TYPES, len(ids), where),
            DESCRIPTION: as_texts(description, DESCRIPTION, len(ids), where),
            ALIASES: as_lists(aliases, ALIASES, len(ids), where),
        }
        return cls(one_row_each(pa.table(columns | as_others(others or {}, columns, len(ids), where))))

    @classmethod
    def none(cls) -> Nodes:
        """Return node data that says nothing."""
        return _NONE

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[Node]:
        for batch in self.table.to_batches(max_chunksize=65_536):
            yield from map(_node, batch.to_pylist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Nodes) and (self is other or self.table.equals(other.table))

    def __hash__(self) -> int:
        return hash((len(self), *self.others))

    def __repr__(self) -> str:
        return f"Nodes({len(self):,} entities: {', '.join([*self.known, *self.others]) or 'nothing but ids'})"

    @property
    def ids(self) -> pa.Array:
        """The names of the entities of which something is known."""
        return single(self.table, ID)

    @property
    def known(self) -> tuple[str, ...]:
        """The columns, of those that all node data has, that say something of any entity."""
        lists = {name: pc.sum(pc.list_value_length(self.table[name])).as_py() for name in (TYPES, ALIASES)}
        texts = {name: self.table[name].null_count < len(self) for name in (LABEL, DESCRIPTION)}
        return tuple(name for name in COLUMNS[1:] if lists.get(name) or texts.get(name))

    @property
    def others(self) -> tuple[str, ...]:
        """The names of further columns."""
        return tuple(self.table.column_names[len(COLUMNS) :])

    def places(self, names: Names | Sequence[str]) -> Ids:
        """Return the rows of entities; −1 stands for one of which nothing is known."""
        texts = names if isinstance(names, (pa.Array, pa.ChunkedArray)) else from_names(list(names))
        if isinstance(texts, pa.ChunkedArray):
            texts = texts.combine_chunks()
        found: Ids = to_numpy(pc.index_in(texts.cast(pa.large_string()), value_set=self.ids), missing=-1)
        return found

    def get(self, name: str) -> Node | None:
        """Return what is known of an entity, if anything is."""
        row = int(self.places([name])[0])
        return None if row < 0 else _node(self.table.slice(row, 1).to_pylist()[0])

    def aligned(self, names: Names | Sequence[str], column: str) -> pa.Array:
        """Return a column for some entities, in their order; null where nothing is known."""
        rows = self.places(names)
        return single(self.table, column).take(from_numpy(rows, rows >= 0))

    def labels(self, names: Names | Sequence[str]) -> list[str | None]:
        """Return what people call entities; None where nobody knows, or where it is their name."""
        given = names.to_pylist() if isinstance(names, (pa.Array, pa.ChunkedArray)) else list(names)
        if not len(self):
            return [None] * len(given)
        labels = self.aligned(given, LABEL).to_pylist()
        return [None if label == name else label for name, label in zip(given, labels, strict=True)]

    def spoken(self, name: str) -> str:
        """Return what a sentence calls an entity: its label, with its name behind it if others have the same label."""
        if self._spoken is None:
            labels = self.table[LABEL].to_pylist()
            shared = Counter(labels)
            pairs = zip(self.ids.to_pylist(), labels, strict=True)
            self._spoken = {
                each: label if shared[label] == 1 else f"{label} ({each})" for each, label in pairs if label is not None
            }
        return self._spoken.get(name, name)

    def called(self, label: str) -> list[str]:
        """Return the entities with a label, exactly as it is written."""
        found: list[str] = self.ids.filter(pc.equal(self.table[LABEL], from_names([label])[0])).to_pylist()
        return found

    def with_label(self, labels: Names) -> pa.Array:
        """Return for each label the one entity that has it; null where none has it, or more than one."""
        counts = pc.value_counts(single(self.table, LABEL).drop_null())
        alone = from_numpy(np.flatnonzero(to_numpy(counts.field("counts")) == 1))
        once = counts.field("values").take(alone)
        places = to_numpy(pc.index_in(labels, value_set=once), missing=-1) >= 0
        rows = to_numpy(pc.index_in(labels, value_set=single(self.table, LABEL)), missing=-1)
        return self.ids.take(from_numpy(rows, places & (rows >= 0)))

    def near(self, text: str, n: int = 5) -> list[str]:
        """Return up to n entities that a text may mean: whose label or alias holds it, then those spelt like it."""
        if not text or not len(self):
            return []
        labels, aliases = single(self.table, LABEL), single(self.table, ALIASES)
        holds = pc.match_substring(labels, text, ignore_case=True)
        places = np.flatnonzero(to_numpy(holds.cast(pa.int8()), missing=0))
        within = pc.match_substring(aliases.flatten(), text, ignore_case=True)
        by_alias = to_numpy(pc.list_parent_indices(aliases).filter(within))
        ordered = sorted(set(places.tolist()), key=lambda row: len(labels[row].as_py()))
        found = [self.ids[row].as_py() for row in dict.fromkeys([*ordered, *by_alias.tolist()])]
        if len(found) < n and len(self) <= _SPELT_UP_TO:
            spelt = difflib.get_close_matches(text, labels.drop_null().to_pylist(), n, 0.6)
            found += [name for label in dict.fromkeys(spelt) for name in self.called(label)]
        return list(dict.fromkeys(found))[:n]

    @property
    def types(self) -> dict[str, int]:
        """How many entities are of each type, the most frequent first."""
        counts = pc.value_counts(single(self.table, TYPES).flatten()).to_pylist()
        return {each["values"]: each["counts"] for each in sorted(counts, key=lambda each: -each["counts"])}

    def of_type(self, wanted: str | Iterable[str]) -> pa.Array:
        """Return the names of the entities of a type, or of any of several; `Gene` finds `biolink:Gene` too."""
        lists = single(self.table, TYPES)
        asked = [wanted] if isinstance(wanted, str) else list(wanted)
        meant = from_names([each for name in asked for each in self._meant(name)])
        rows = pc.list_parent_indices(lists).filter(pc.is_in(lists.flatten(), value_set=meant))
        return self.ids.take(rows.unique())

    def _meant(self, wanted: str) -> list[str]:
        known = self.types
        if wanted in known:
            return [wanted]
        found = [name for name in known if name.rpartition(":")[2] == wanted]
        if found:
            return found
        if not known:
            hint = "Node data says which entity is of which type: ‹nodes=FILE›, when the graph is read."
            raise DataError(f"no entity of this graph has a type, so none is a {wanted!r}", hint=hint)
        shown = list(known)[:_TYPES_SHOWN]
        more = f" There are {len(known):,} in all." if len(known) > len(shown) else ""
        raise DataError(f"no entity is of type {wanted!r}", hint=known_names(wanted, shown) + more)

    def within(self, entities: Vocabulary) -> Nodes:
        """Return what is known of the entities of a vocabulary, in its order."""
        if not len(self):
            return self
        places = entities.encode(self.ids)
        rows = np.argsort(places, kind="stable")[int((places < 0).sum()) :]
        if len(rows) == len(self) and (np.diff(rows) > 0).all():
            return self
        return Nodes(self.table.take(from_numpy(rows)))

    def joined(self, other: Nodes) -> Nodes:
        """Return what either knows; where both say something that only one can, this one is right."""
        if not len(other) or self == other:
            return self
        return other if not len(self) else Nodes(one_row_each(joined_tables(self.table, other.table)))

    @classmethod
    def of_parquet(cls, source: Any) -> Nodes:
        """Read what `to_parquet` wrote; a file of other columns is a `DataError`."""
        from pyarrow.parquet import ParquetFile  # noqa: PLC0415 — most graphs have no node data

        table = ParquetFile(source, page_checksum_verification=True).read()
        table.validate(full=True)
        types = [table.schema.field(name).type for name in COLUMNS if name in table.column_names]
        if tuple(table.column_names[: len(COLUMNS)]) != COLUMNS or types != [_SCHEMA[name] for name in COLUMNS]:
            raise DataError("does not hold node data", hint="Its columns are not those of node data.")
        if table[ID].null_count or pc.count_distinct(table[ID]).as_py() != len(table):
            raise DataError("holds node data of which an id is missing or stands twice")
        return cls(table)

    def to_parquet(self, target: Any) -> None:
        """Write the node data to a file."""
        from pyarrow.parquet import write_table  # noqa: PLC0415

        write_table(self.table, target, compression="zstd", write_page_checksum=True)


def _node(row: dict[str, Any]) -> Node:
    standard = {name: row.pop(name) for name in COLUMNS}
    others = {name: value for name, value in row.items() if value is not None and value != []}
    types, aliases = (tuple(standard[name] or ()) for name in (TYPES, ALIASES))
    return Node(standard[ID], standard[LABEL], types, standard[DESCRIPTION], aliases, others)


_TEXT, _TEXTS = pa.large_string(), pa.list_(pa.large_string())
_SCHEMA = {ID: _TEXT, LABEL: _TEXT, TYPES: _TEXTS, DESCRIPTION: _TEXT, ALIASES: _TEXTS}
_NONE = Nodes(pa.table({name: pa.nulls(0, kind) for name, kind in _SCHEMA.items()}))
