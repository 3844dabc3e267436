"""What every reader gives back, and how it becomes a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ukge.errors import DataError, as_written
from ukge.graph.bad_rows import Aside, BadRows
from ukge.graph.columns import Where, check_confidence, encode_column_names, fact_table, names_column, refuse_rows
from ukge.graph.findings import Findings
from ukge.graph.nodes import Nodes
from ukge.graph.readers.faults import without_faults
from ukge.graph.readers.layout import FACTS, Roles
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Vocabulary

Weights = npt.NDArray[np.float64]
Scaling = Callable[[Weights], Weights]


@dataclass(frozen=True)
class ReadReport:
    """What a reader did with its source: `rows` were read, `skipped` says which of them are no facts, and why.

    `rows` is `facts`, all skipped and all bad rows together, unless a row stands for several facts; of the bad ones
    `aside` tells. Of `nodes` entities something is known beside their facts; `nodes_apart` more have node data, but no
    facts.
    """

    source: str
    format: str
    rows: int
    facts: int
    skipped: Mapping[str, int] = field(default_factory=dict)
    ignored_columns: tuple[str, ...] = ()
    nodes: int = 0
    nodes_apart: int = 0
    aside: Aside = field(default_factory=Aside, compare=False)
    notes: tuple[str, ...] = ()
    """what was taken for what, where the source does not say"""


@dataclass(frozen=True)
class Request:
    """What every reader is told: columns hold ids of the given vocabularies, and weights that a scale will change.

    Rows that are no facts are put into `bad_rows`; without, they are an error. `wanted` are the columns to look for:
    tables may have more of them than facts need.
    """

    entities: Vocabulary | None = None
    relations: Vocabulary | None = None
    scale: Scaling | None = None
    bad_rows: BadRows | None = None
    least: float | None = None
    """the least confidence of the facts that are wanted; a reader may leave out others early"""
    wanted: Roles = FACTS

    def of(self, role: str) -> Vocabulary | None:
        """Return the vocabulary whose ids the column of this role holds, or None if it holds names."""
        return {"head": self.entities, "tail": self.entities, "relation": self.relations}.get(role)

    def findings(self, source: str | None, place: str = "line") -> Findings:
        """Return what a reader tells of faults in its source; it leaves out every row that it tells of."""
        return Findings(source, place, self.bad_rows)


def below_least(least: float | None) -> str:
    """Say why a fact is skipped that is not confident enough."""
    return f"confidence below {least or 0:g}"


def as_scaling(scale: Scaling | str | None) -> Scaling | None:
    """Return a scale that may be given by its text."""
    if isinstance(scale, str):
        from ukge.graph.normalise import as_scale  # noqa: PLC0415  (most reads need none)

        return as_scale(scale)
    return scale


def one_relation(relation: str, rows: int, request: Request) -> Any:
    """Return the column of a relation that all facts have."""
    if request.relations is not None:
        return np.full(rows, request.relations.id(relation), np.int64)
    places = pa.array(np.zeros(rows, np.int32))
    return pa.DictionaryArray.from_arrays(places, pa.array([relation], pa.large_string()))


@dataclass(frozen=True, eq=False)
class Parsed:
    """Raw facts: columns of names (or ids), weights as they stand in the source, and where each row came from.

    Columns of large files arrive as ids already, with the `vocabularies` of entities and relations. `diagnose` goes
    through the source once more, carefully, and raises what it finds; it is called when a check fails. `found` is what
    the reader found wrong with rows that it left out; `rows` are the others and those that it skipped.

    Readers need not look at what every graph needs: confidences in [0, 1], names that are not empty, ids that exist.
    """

    head: Any
    relation: Any
    tail: Any
    weight: Weights
    where: Where
    rows: int
    source: Any = None
    skipped: Mapping[str, int] = field(default_factory=dict)
    ignored_columns: tuple[str, ...] = ()
    vocabularies: tuple[Vocabulary, Vocabulary] | None = None
    diagnose: Callable[[], None] | None = None
    found: Findings | None = None
    besides: Mapping[str, Any] = field(default_factory=dict)
    """columns of what was wanted beside facts, by role"""
    nodes: Nodes | None = None
    """what the source says of entities beside their facts, by name"""
    notes: tuple[str, ...] = ()
    """what was taken for what, where the source does not say"""
    scale: Scaling | None = None
    """what makes confidences of the weights, unless the request says it"""

    def graph(self, request: Request) -> UncertainGraph:
        """Return the checked graph; what is wrong is a `DataError` saying exactly where, or put aside."""
        return self.checked(request)[0]

    def checked(self, request: Request) -> tuple[UncertainGraph, Mapping[str, Any]]:
        """Return the checked graph, and what stands beside its facts, row by row."""
        request = replace(request, scale=request.scale or self.scale)
        found = self.found or request.findings(self.where.source, self.where.place)
        sound = without_faults(self, request, found) if found.lenient or found.count else self
        found.stop(found.checked or self.rows)
        if found.rows and len(sound.weight) == 0:
            raise found.error(found.checked or self.rows)
        try:
            graph = sound._graph(request)
        except DataError:
            if found.lenient:
                raise
            if self.diagnose is not None:
                self.diagnose()
            without_faults(self, request, found)
            if len(found.kinds) > 1:  # the error tells of the first kind alone
                found.stop(found.checked or self.rows)
            raise
        if sound is not self and sound.vocabularies is not None:
            graph = graph.compact()
        return graph if self.nodes is None else graph.with_nodes(self.nodes), sound.besides

    def _graph(self, request: Request) -> UncertainGraph:
        if len(self.weight) == 0:
            reasons = "".join(f"; {count:,} skipped: {reason}" for reason, count in self.skipped.items())
            raise DataError(f"no facts{reasons}", source=self.where.source, hint="Check that this is the right file.")
        weight = self.weight if request.scale is None else scaled(self.weight, request.scale, self.where)
        if self.vocabularies is not None:
            check_confidence(weight, where=self.where)
            return UncertainGraph(
                fact_table(self.head, self.relation, self.tail, weight, self.source), *self.vocabularies
            )
        if request.entities is None and request.relations is None:
            return UncertainGraph.from_columns(
                self.head, self.relation, self.tail, pa.array(weight), source=self.source, where=self.where
            )
        head, tail, relation = self.head, self.tail, self.relation
        entities, relations = request.entities, request.relations
        if entities is None:
            pair = {"head": names_column(head, "head"), "tail": names_column(tail, "tail")}
            (head, tail), entities = encode_column_names(pair, None, "entity", self.where)
        if relations is None:
            kind = {"relation": names_column(relation, "relation")}
            (relation,), relations = encode_column_names(kind, None, "relation", self.where)
        return UncertainGraph.from_ids(
            head, relation, tail, weight, entities, relations, source=self.source, where=self.where
        )


def scaled(weight: Weights, scale: Scaling, where: Where) -> Weights:
    """Return scaled weights; whatever the scale complains about is told with the lines of the source."""
    infinite = np.flatnonzero(~np.isfinite(weight))
    told = f"{len(infinite):,} of {len(weight):,} weights cannot be scaled"
    wrong, mend = "weight is not a finite number", "Mend or remove these rows."
    refuse_rows(told, infinite, lambda at: (wrong, f"{weight[at]:g}"), "confidence", where, mend)
    try:
        found = np.asarray(scale(weight), dtype=np.float64)
    except DataError as error:
        lines = [p.line for p in error.problems if p.line is not None and p.place == "row"]
        if len(lines) != len(error.problems):
            raise
        places = where.locate(np.array(lines, np.int64))
        problems = [
            replace(problem, line=place, place=where.place)
            for problem, place in zip(error.problems, places, strict=True)
        ]
        what, hint = error.worded(as_written)
        raise DataError(
            what.splitlines()[0], source=where.source, problems=problems, count=error.count, hint=hint
        ) from None
    if found.shape != weight.shape:
        raise DataError(f"the scale returned {found.size:,} values for {weight.size:,} weights", source=where.source)
    return found
