"""Facts as people give them (a frame, a table, tuples, a graph): as a graph, as ids, and answered in the same shape."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ukge.errors import ConfigError, DataError, KindError, UkgeWarning
from ukge.graph.columns import NOWHERE, Confidences, Names, Where, confidence_column, names_column
from ukge.graph.fact import TRIPLE, Fact, rows_of
from ukge.graph.formats import is_from
from ukge.graph.neighbours import needed
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Ids, Vocabulary

if TYPE_CHECKING:
    import pandas as pd

OneFact = tuple[str, str, str] | tuple[str, str, str, float] | Fact
"""One fact by name; a confidence that it has is not looked at."""

Rows = UncertainGraph | Sequence[tuple[Any, ...]] | Sequence[list[Any]] | npt.NDArray[Any]
"""Many facts by name, as a graph, as tuples or as a two-dimensional array."""

Facts: TypeAlias = "OneFact | Rows | pd.DataFrame | pa.Table"
"""Facts in any of the ways that `triples` takes."""

Judge = Callable[[Ids, Ids, Ids], npt.NDArray[np.floating[Any]]]
"""What says a number of each fact, by ids."""

TAKEN = "a pandas frame, an Arrow table, an UncertainGraph, a tuple (head, relation, tail) or a list of such tuples"
UNKNOWN, GIVEN, CONFIDENCE = "unknown", "given", "confidence"


@dataclass(frozen=True, eq=False)
class Triples:
    """Facts as columns of names, with confidences if they have them."""

    head: Names
    relation: Names
    tail: Names
    confidence: Confidences | None = None
    where: Where = NOWHERE

    def __len__(self) -> int:
        return len(self.head)

    def encode(self, entities: Vocabulary, relations: Vocabulary) -> tuple[Ids, Ids, Ids]:
        """Return the ids of the facts; −1 stands for a name that is unknown or missing."""
        return entities.encode(self.head), relations.encode(self.relation), entities.encode(self.tail)

    def unknown(self, ids: Sequence[Ids]) -> list[str | None]:
        """Return of each fact which of its names are unknown, in words; None where all are known."""
        told: list[list[str]] = [[] for _ in range(len(self))]
        for role, column in zip(TRIPLE, ids, strict=True):
            for row in np.flatnonzero(column < 0):
                name = getattr(self, role)[int(row)].as_py()
                told[row].append(f"{role} is missing" if name is None else f"{role} {name!r}")
        return [", ".join(words) or None for words in told]


def as_table(facts: Any) -> Any:
    """Return a pandas frame as it is, whatever hands out an Arrow stream as an Arrow table, and None for the rest."""
    if isinstance(facts, (tuple, list)):
        return None
    from ukge.graph.readers.frames import arrow_table, is_pandas_frame  # noqa: PLC0415 — it takes time to load

    if is_pandas_frame(facts):
        return facts
    if is_from(facts, "pandas") or not hasattr(facts, "__arrow_c_stream__"):
        return None
    return arrow_table(facts)


def is_one(facts: object) -> bool:
    """Return whether it is a single fact: a tuple of names, not of facts."""
    return isinstance(facts, tuple) and len(facts) >= len(TRIPLE) and isinstance(facts[0], (str, int, np.integer))


def triples(facts: Any, caller: str, takes: str = TAKEN) -> Triples:
    """Return facts of any kind as columns of names."""
    if isinstance(facts, UncertainGraph):
        named = facts.facts()
        return Triples(named["head"], named["relation"], named["tail"], facts.confidence)
    table = as_table(facts)
    if table is not None:
        from ukge.graph.readers.frames import columns_of  # noqa: PLC0415
        from ukge.graph.readers.layout import Roles  # noqa: PLC0415

        found = columns_of(table, wanted=Roles(TRIPLE, (CONFIDENCE,)))
        head, relation, tail = (found.texts(role) for role in TRIPLE)
        confidence = found.numbers(CONFIDENCE) if CONFIDENCE in found.roles else None
        found.refuse()
        return Triples(head, relation, tail, confidence, found.where)
    if _is_readable(facts) or not _has_rows(facts):
        raise KindError(caller, takes, facts)
    rows = rows_of([facts] if is_one(facts) else facts, fewest=len(TRIPLE))
    head, relation, tail = (names_column([row[at] for row in rows], role) for at, role in enumerate(TRIPLE))
    stored = [row[3] for row in rows if len(row) > len(TRIPLE)]
    values = confidence_column(stored) if len(stored) == len(rows) else None
    return Triples(head, relation, tail, values, Where(place="fact"))


def _is_readable(facts: Any) -> bool:
    if isinstance(facts, (tuple, list)):
        return False
    from ukge.graph.readers import is_readable  # noqa: PLC0415

    return is_readable(facts)


def query_of(
    head: Any, relation: Any, tail: Any, k: Any, entities: Vocabulary, relations: Vocabulary
) -> tuple[int | None, int, int | None]:
    """Return the ids of a query with one missing entity and k answers, if it is one."""
    if relation is None or (head is None) == (tail is None):
        raise DataError("a query needs a ‹relation› and either a ‹head› or a ‹tail›")
    if isinstance(k, bool) or not isinstance(k, (int, np.integer)):
        raise KindError("rank", "a whole number of answers as ‹k›", k)
    if k < 1:
        raise ConfigError(f"‹k› is {k}: there is no such number of answers", hint="Give 1 or more.")
    for role, name in (("head", head), ("relation", relation), ("tail", tail)):
        if name is not None and (isinstance(name, bool) or not isinstance(name, (str, int, np.integer))):
            raise KindError("rank", f"one name as ‹{role}›", name)
    ends = [None if name is None else entities.id(str(name)) for name in (head, tail)]
    return ends[0], relations.id(str(relation)), ends[1]


def as_graph(data: Any, y: Any, caller: str, takes: str, reading: Mapping[str, Any] | None = None) -> UncertainGraph:
    """Return facts of any kind, with their own confidences or with those of `y`, as a checked graph.

    A frame, a table or a NetworkX graph is read as `reading` tells `read`; nothing else can be told anything.
    """
    if reading and (y is not None or not _is_readable(data)):
        raise ConfigError("‹reading› tells how files, frames and tables are read", hint="Leave it out.")
    if y is not None:
        found = triples(data, caller, takes)
        values = confidences(y, len(found))
        return UncertainGraph.from_columns(found.head, found.relation, found.tail, values, where=found.where)
    if isinstance(data, UncertainGraph):
        return data
    if _is_readable(data):
        from ukge.graph.readers import read  # noqa: PLC0415

        return read(data, **(reading or {}))
    if not _has_rows(data):
        raise KindError(caller, takes, data)
    return UncertainGraph.from_facts(data)


def _has_rows(facts: Any) -> bool:
    return isinstance(facts, Iterable) and not isinstance(facts, (str, bytes, Mapping, Set))


def confidences(y: Any, length: int) -> Confidences:
    """Return the confidences of so many facts that were given beside them."""
    values = confidence_column(y)
    values = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
    if values.shape != (length,):
        shape = " × ".join(f"{size:,}" for size in values.shape) or "one number"
        raise DataError(f"{length:,} facts need {length:,} confidences, but ‹y› holds {shape}")
    return values


def known_ids(facts: Any, entities: Vocabulary, relations: Vocabulary, caller: str) -> tuple[Ids, Ids, Ids]:
    """Return head, relation and tail ids of facts; an unknown name is an error that suggests near ones."""
    if isinstance(facts, UncertainGraph) and facts.entities == entities and facts.relations == relations:
        return facts.head, facts.relation, facts.tail
    found = triples(facts, caller)
    ids = found.encode(entities, relations)
    for role, column in zip(TRIPLE, ids, strict=True):
        if (column < 0).any():
            name = getattr(found, role)[int(np.argmax(column < 0))].as_py()
            (relations if role == "relation" else entities).id(str(name))
    return ids


def judged(facts: Any, entities: Vocabulary, relations: Vocabulary, judge: Judge, caller: str) -> Any:
    """Return what `judge` says of facts: of one a number, of a table the table with a column, of others an array.

    Names that are unknown are an error, but in a table: its row is judged NaN, and the column `unknown` says why.
    """
    table = as_table(facts)
    if table is None:
        said = judge(*known_ids(facts, entities, relations, caller)).astype(np.float64)
        return float(said[0]) if is_one(facts) else said
    found = triples(table, caller)
    ids = found.encode(entities, relations)
    known = all_known(ids)
    said = np.full(len(found), np.nan)
    said[known] = judge(*(column[known] for column in ids))
    columns: dict[str, Any] = {CONFIDENCE: said}
    names = table.column_names if isinstance(table, pa.Table) else list(table.columns)
    if not known.all() or UNKNOWN in names:
        columns[UNKNOWN] = found.unknown(ids)
    if not known.all():
        tell_unknown(known, f"their confidence is NaN, and the column '{UNKNOWN}' says which names", stacklevel=4)
    whole = _with_columns(table, names, columns)
    return needed("polars", "polars", "a Polars frame").from_arrow(whole) if is_from(facts, "polars") else whole


def all_known(ids: Sequence[Ids]) -> npt.NDArray[np.bool_]:
    """Return which facts have three known names."""
    return np.asarray(np.logical_and.reduce([column >= 0 for column in ids]))


def tell_unknown(known: npt.NDArray[np.bool_], what: str, *, stacklevel: int) -> None:
    """Warn of the facts that are not known, and say what was done about them."""
    told = f"{np.sum(~known):,} of {len(known):,} facts have names that were never seen: {what}"
    warnings.warn(told, UkgeWarning, stacklevel=stacklevel)


def _with_columns(table: Any, names: Sequence[Any], columns: Mapping[str, Any]) -> Any:
    """Return a frame or a table with more columns; a confidence that was given is kept as `given`."""
    keeps = CONFIDENCE in names and GIVEN not in names
    if not isinstance(table, pa.Table):
        return (table.rename(columns={CONFIDENCE: GIVEN}) if keeps else table).assign(**columns)
    if keeps:
        table = table.rename_columns([GIVEN if name == CONFIDENCE else name for name in names])
    for name, values in columns.items():
        if name in table.column_names:
            table = table.set_column(table.column_names.index(name), name, pa.array(values))
        else:
            table = table.append_column(name, pa.array(values))
    return table
