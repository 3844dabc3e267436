"""Claims: who said which fact, how sure, and perhaps when and where. Facts are what several claims speak of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ukge.errors import DataError
from ukge.graph.arrow import from_numpy, to_numpy
from ukge.graph.columns import NOWHERE, Confidences, Where, chosen_rows
from ukge.graph.index import Triples
from ukge.graph.uncertain import UncertainGraph, concat
from ukge.graph.vocabulary import Ids, Vocabulary

UNNAMED = "(no source)"
"""Who is taken to have made the claims that name no source: one source, about which nothing else is known."""

BESIDES = ("time", "document", "span")
"""What a claim may tell besides its fact, source and confidence."""

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Claims:
    """Immutable claims about distinct facts. A source may claim a fact several times.

    `facts` are the triples that are claimed, each once, in the order of their first claims; the confidence of one is
    the mean of its claims. Everything else has a row per claim: `fact` is the row of `facts` that it speaks of,
    `source` the id of who made it, in `sources`. `time`, `document` and `span` are Arrow columns, or None where
    nothing is known of them.
    """

    facts: UncertainGraph
    fact: Rows
    source: Ids
    sources: Vocabulary
    confidence: Confidences
    time: pa.Array | None = None
    document: pa.Array | None = None
    span: pa.Array | None = None

    @classmethod
    def from_columns(
        cls,
        head: Any,
        relation: Any,
        tail: Any,
        confidence: Any,
        source: Any = None,
        *,
        where: Where = NOWHERE,
        **besides: Any,
    ) -> Claims:
        """Build claims from columns with a row per claim, checking them; errors name the places that `where` knows.

        `besides` may be `time`, `document` and `span`.
        """
        graph = UncertainGraph.from_columns(head, relation, tail, confidence, source=source, where=where)
        return cls.of_graph(graph, **besides)

    @classmethod
    def of_graph(cls, graph: UncertainGraph, **besides: Any) -> Claims:
        """Take every row of a graph for a claim of its source; rows that name none share one."""
        source, sources = _sources(graph)
        columns = {name: _column(name, values, len(graph)) for name, values in besides.items()}
        return cls._of_rows(graph, source, sources, columns)

    @classmethod
    def _of_rows(
        cls, graph: UncertainGraph, source: Ids, sources: Vocabulary, besides: dict[str, pa.Array | None]
    ) -> Claims:
        found = Triples.of_rows(graph.keys(), graph.confidence)
        order = np.argsort(found.first)
        fact = np.empty(len(graph), np.int64)
        fact[found.rows] = np.repeat(np.argsort(order), found.count)
        facts = _without_source(graph[found.first[order]]).with_confidence(np.clip(found.mean[order], 0.0, 1.0))
        return cls(facts, fact, source, sources, graph.confidence, **besides)

    def __len__(self) -> int:
        return len(self.fact)

    def __repr__(self) -> str:
        return f"Claims({len(self):,} claims of {len(self.sources):,} sources about {len(self.facts):,} facts)"

    @property
    def counts(self) -> Rows:
        """How many claims each fact has."""
        return np.bincount(self.fact, minlength=len(self.facts))

    def __getitem__(self, rows: slice | npt.NDArray[Any] | Sequence[int]) -> Claims:
        """Return some of the claims, by a slice, a mask or places; facts that none of them speaks of are left out."""
        chosen = np.arange(len(self))[rows] if isinstance(rows, slice) else chosen_rows(rows, len(self))
        besides = {
            name: None if (of := getattr(self, name)) is None else of.take(from_numpy(chosen)) for name in BESIDES
        }
        return Claims._of_rows(self.graph[chosen], self.source[chosen], self.sources, besides)

    @property
    def graph(self) -> UncertainGraph:
        """The claims as a graph with repeated triples: a row per claim, with its source."""
        rows = self.facts[self.fact].with_confidence(self.confidence)
        ids = rows.head, rows.relation, rows.tail
        made = UncertainGraph.from_ids(
            *ids, self.confidence, rows.entities, rows.relations, source=self.sources.decode(self.source)
        )
        return made.taken_as_undirected(self.facts.undirected)

    def table(self) -> pa.Table:
        """Return the claims as an Arrow table by name: head, relation, tail, confidence, source, and what is beside."""
        named = self.facts.facts().take(from_numpy(self.fact))
        columns = {name: named[name] for name in ("head", "relation", "tail")}
        columns |= {"confidence": from_numpy(self.confidence), "source": self.sources.decode(self.source)}
        return pa.table(columns | {name: of for name in BESIDES if (of := getattr(self, name)) is not None})


def join(parts: Sequence[Claims]) -> Claims:
    """Return the claims of several, one after another: what several of them say of a fact is about one fact."""
    if not parts:
        raise DataError("there are no claims to join")
    besides: dict[str, pa.Array | None] = {}
    for name in BESIDES:
        columns = [getattr(part, name) for part in parts]
        known = [column.type for column in columns if column is not None]
        if not known:
            continue
        text = known[0] if len(set(known)) == 1 else pa.large_string()
        filled = [
            pa.nulls(len(part), text) if of is None else of.cast(text) for part, of in zip(parts, columns, strict=True)
        ]
        besides[name] = pa.concat_arrays(filled)
    return Claims.of_graph(concat([part.graph for part in parts]), **besides)


def _sources(graph: UncertainGraph) -> tuple[Ids, Vocabulary]:
    """Return the source of each row, by id, and their names; rows without one share a source of their own."""
    encoded = graph.source
    if encoded is None:
        return np.zeros(len(graph), np.int32), Vocabulary([UNNAMED] if len(graph) else [], kind="source")
    named = encoded.cast(pa.large_string()).fill_null(UNNAMED).dictionary_encode()
    return to_numpy(named.indices).astype(np.int32), Vocabulary.trusted(named.dictionary, "source")


def _column(name: str, values: Any, length: int) -> pa.Array | None:
    if name not in BESIDES:
        raise DataError(f"a claim has no column {name!r}", hint=f"Besides its fact, a claim has: {', '.join(BESIDES)}.")
    if values is None:
        return None
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    array = array if isinstance(array, pa.Array) else pa.array(array)
    if len(array) != length:
        raise DataError(f"{len(array):,} values of {name} do not fit {length:,} claims")
    return array


def _without_source(graph: UncertainGraph) -> UncertainGraph:
    return graph.with_facts(graph.head, graph.relation, graph.tail, graph.confidence)
