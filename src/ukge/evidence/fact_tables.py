"""Files with facts to be judged, and judgements beside them: row by row, with whatever columns their users put there.

Judgements come first, then the other columns of the file. One whose name a judgement has is called `given_NAME`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ukge.errors import DataError, Problem
from ukge.graph.arrow import from_names, from_numpy
from ukge.graph.fact import ROLES, TRIPLE
from ukge.graph.nodes import Nodes
from ukge.graph.readers.layout import Roles
from ukge.graph.readers.rows import Rows, read_rows
from ukge.graph.vocabulary import Ids, Vocabulary

NOTE = "note"
"""The column that says why a row has no judgement."""

SUGGESTED = 50
"""Unknown names that near ones are looked up for; that takes time, and many unknown names are of another graph."""

NEAR, TINY = 2, 2
"""Near names that a note tells, and letters of a name that is near to anything."""


def read_facts(
    path: Path, *, confidence: bool = False, label: bool = False, source: bool = False, **reading: Any
) -> Rows:
    """Read rows of head, relation, tail and, if asked for, confidence, label (`label` or `truth`) and source.

    A source, which a row need not have, is among the other columns.

    Columns are found as `read` finds them, whose arguments say how; all others are kept.
    """
    asked = (*TRIPLE, *(("confidence",) if confidence else ()), *(("label",) if label else ()))
    optional = ("source",) if source else ()
    named = reading.pop("columns", None) or {}
    columns = {role: at for role, at in named.items() if role in (*asked, *optional) or role not in (*ROLES, "label")}
    if columns:
        reading["columns"] = columns
    return read_rows(path, Roles(asked, optional, more=True), **reading)


@dataclass(frozen=True, eq=False)
class KnownFacts:
    """Which rows have names that a graph knows: their ids, and for each of the others a note that says which lack."""

    head: Ids
    relation: Ids
    tail: Ids
    known: npt.NDArray[np.bool_]
    notes: tuple[str | None, ...]

    @classmethod
    def of(
        cls, rows: Rows, entities: Vocabulary, relations: Vocabulary, *, hint: str, nodes: Nodes | None = None
    ) -> KnownFacts:
        """Look the names up; if no row is known, the error says which names are not and `hint` what to do.

        A label in `nodes` that only one entity has stands for it.
        """
        vocabularies = {"head": entities, "relation": relations, "tail": entities}
        ids = {role: vocabularies[role].encode(rows.names[role]) for role in TRIPLE}
        if nodes is not None and len(nodes):
            ids |= {role: _by_label(ids[role], rows.names[role], entities, nodes) for role in ("head", "tail")}
        known = np.all([ids[role] >= 0 for role in TRIPLE], axis=0)
        if not known.any():
            raise _unknown(rows, ids, hint)
        notes: list[str | None] = [None] * len(rows)
        suggest: dict[tuple[str, str], str] = {}
        for row, role, name in _missing(rows, ids):
            vocabulary = vocabularies[role]
            told = suggest.get((vocabulary.kind, name))
            if told is None:
                near = vocabulary.near(name, NEAR) if len(suggest) < SUGGESTED and len(name) > TINY else []
                told = f"unknown {vocabulary.kind} {name!r}" + (f"; near: {', '.join(map(repr, near))}" if near else "")
                suggest[vocabulary.kind, name] = told
            before = notes[row]
            notes[row] = told if before is None else before if told in before else f"{before}; {told}"
        head, relation, tail = (ids[role][known] for role in TRIPLE)
        return cls(head, relation, tail, known, tuple(notes))

    @property
    def ids(self) -> tuple[Ids, Ids, Ids]:
        """The ids of the known rows."""
        return self.head, self.relation, self.tail

    @property
    def unknown(self) -> int:
        """How many rows hold an unknown name."""
        return int((~self.known).sum())

    def spread(self, values: Any) -> pa.Array:
        """Return a column of all rows from values of the known ones; the others are empty."""
        places = np.where(self.known, np.cumsum(self.known) - 1, 0)
        column = from_numpy(values) if isinstance(values, np.ndarray) else from_names(values)
        return column.take(from_numpy(places, self.known))


def judged(rows: Rows, judgements: Mapping[str, Any], notes: tuple[str | None, ...] | None = None) -> pa.Table:
    """Return the facts with judgements, notes and then the other columns of their file."""
    columns: dict[str, Any] = {**rows.names, **judgements}
    if notes is not None:
        columns[NOTE] = from_names(notes)
    for name, column in rows.others.items():
        free = name
        while free in columns:
            free = f"given_{free}"
        columns[free] = column
    return pa.table(columns)


def _missing(rows: Rows, ids: Mapping[str, Ids]) -> Iterator[tuple[int, str, str]]:
    for role in TRIPLE:
        for row in np.flatnonzero(ids[role] < 0):
            yield int(row), role, rows.names[role][int(row)].as_py()


def _by_label(ids: Ids, names: pa.Array, entities: Vocabulary, nodes: Nodes) -> Ids:
    """Return ids in which names that are none are looked up as labels."""
    rows = np.flatnonzero(ids < 0)
    own = entities.encode(nodes.with_label(names.take(from_numpy(rows))))
    found = ids.copy()
    found[rows] = own
    return found


def _unknown(rows: Rows, ids: Mapping[str, Ids], hint: str) -> DataError:
    found = sorted(_missing(rows, ids))
    lines = rows.where.locate(np.array([row for row, _, _ in found[:10]], np.int64))
    problems = [
        Problem(f"unknown {'relation' if role == 'relation' else 'entity'}", line, role, name, rows.where.place)
        for line, (_, role, name) in zip(lines, found, strict=False)
    ]
    return DataError(
        "not one row has names that the run knows",
        source=rows.where.source,
        problems=problems,
        count=len(found),
        hint=hint,
    )
