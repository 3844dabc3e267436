"""The index of facts: by triple, by query from either side, by pair, by neighbour. Whoever looks facts up asks here.

One rule for repeats: a triple that a graph holds several times is one fact, with the mean of its confidences. Unlike
the first, the last or the highest of them, the mean does not depend on the order of the rows, and no constant answer to
the triple errs less. (Who wants another rule aggregates first, see `ukge.graph.aggregate`.) And one for undirected
relations: their facts are stored once and found from both ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ukge.graph.fact import Fact, FactArrays
from ukge.graph.keys import Keys, find, pair_keys, stable_order, starts, triple_keys
from ukge.graph.queries import Answers, AnyIds, Floats, Places, Queries, Side
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Ids

NO_ROWS: Places = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Ranges:
    """Rows grouped by key: those of `keys[i]` are `rows[start[i]:start[i + 1]]`, in the order of the graph."""

    keys: Keys
    start: Places
    rows: Places

    @classmethod
    def of(cls, keys: Keys) -> Ranges:
        """Group the rows of a column of keys."""
        rows = stable_order(keys)
        ordered = keys[rows]
        start = starts(ordered)
        return cls(ordered[start], np.append(start, len(ordered)), rows)

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def count(self) -> Places:
        """How many rows each key has."""
        return np.diff(self.start)

    def place(self, keys: Keys) -> Places:
        """Return the place of each key among the distinct ones, −1 where there is none."""
        return find(self.keys, keys)

    def find(self, keys: Keys) -> tuple[Places, Places]:
        """Return where the rows of each key begin and end."""
        at = self.place(keys)
        # Place −1 is the last of `start`, and no key: both are replaced.
        return np.where(at >= 0, self.start[at], 0), np.where(at >= 0, self.start[at + 1], 0)

    def of_key(self, key: int) -> Places:
        """Return the rows of one key."""
        begin, end = self.find(np.array([key]))
        return self.rows[begin[0] : end[0]]

    def gather(self, begin: Places, end: Places) -> Places:
        """Return the rows of several ranges, one range after another."""
        size = end - begin
        within = np.arange(size.sum()) - np.repeat(np.cumsum(size) - size, size)
        rows: Places = self.rows[np.repeat(begin, size) + within]
        return rows


@dataclass(frozen=True, eq=False)
class Triples(Ranges):
    """The distinct triples of a graph, ordered by relation, head and tail, each with its confidences."""

    confidence: Floats
    """those of the rows, in the order of `rows`"""

    @classmethod
    def of_rows(cls, keys: Keys, confidence: Floats) -> Triples:
        """Group rows by their triple keys."""
        found = Ranges.of(keys)
        return cls(found.keys, found.start, found.rows, confidence[found.rows])

    @property
    def first(self) -> Places:
        """The first row of each triple."""
        return self.rows[self.start[:-1]]

    @cached_property
    def mean(self) -> Floats:
        """The confidence of each triple: the mean of its rows."""
        return self._sums(self.confidence) / self.count

    @cached_property
    def mean_square(self) -> Floats:
        """The mean squared confidence of each triple."""
        return self._sums(self.confidence**2) / self.count

    def spread(self) -> Floats:
        """Return the highest minus the lowest confidence of each triple."""
        if len(self) == 0:
            return np.zeros(0)
        highest = np.maximum.reduceat(self.confidence, self.start[:-1])
        return np.asarray(highest - np.minimum.reduceat(self.confidence, self.start[:-1]))

    def _sums(self, values: Floats) -> Floats:
        return np.add.reduceat(values, self.start[:-1]) if len(self) else np.zeros(0)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Every fact from both its ends: the steps of entity e are `start[e]:start[e + 1]`, ordered by neighbour.

    A step is the fact's relation r, or R + r where e is the fact's tail and the relation has a direction. Facts of an
    entity with itself are left out. Neighbours of e, each once, are `near[links[e]:links[e + 1]]`; the steps to
    `near[k]` are `first[k]:first[k + 1]`.
    """

    start: Places
    entity: Ids
    step: Ids
    row: Places
    confidence: Floats
    """of the step's fact: beside the step, because walks read them one after another"""
    links: Places
    near: Ids
    first: Places
    surest: Floats
    """highest confidence of the steps to a neighbour"""
    rarity: Floats
    """what an entity is worth as a common neighbour, 1 / log(1 + degree)"""


class FactIndex:
    """The facts of a graph, ready to be looked up; each order is made when it is first needed.

    `head`, `relation`, `tail` and `confidence` are the rows of the graph and, after them, the facts of undirected
    relations read backwards; `row` is the row of the graph behind each.
    """

    def __init__(self, graph: UncertainGraph) -> None:
        self.graph = graph
        self.n_entities, self.n_relations = graph.n_entities, graph.n_relations
        turned = np.flatnonzero(graph.undirected_relations[graph.relation] & (graph.head != graph.tail))
        self.row: Places = np.concatenate([np.arange(len(graph)), turned])
        self.head, self.relation, self.tail = (
            np.ascontiguousarray(np.concatenate([own, other[turned]]), dtype=np.int32)
            for own, other in ((graph.head, graph.tail), (graph.relation, graph.relation), (graph.tail, graph.head))
        )
        self.confidence: Floats = np.ascontiguousarray(graph.confidence, dtype=np.float64)[self.row]

    def __len__(self) -> int:
        """Return how many different facts there are."""
        return len(self.triples)

    @cached_property
    def triples(self) -> Triples:
        """The distinct facts of the graph."""
        return Triples.of_rows(self.graph.keys(), self.graph.confidence)

    @cached_property
    def fact(self) -> Places:
        """The place of each row's fact among `triples`: repeats, and both directions of a fact, share it."""
        place = np.empty(len(self.graph), dtype=np.int64)
        place[self.triples.rows] = np.repeat(np.arange(len(self.triples)), self.triples.count)
        return place[self.row]

    @cached_property
    def by_pair(self) -> Ranges:
        """Rows by directed entity pair."""
        return Ranges.of(pair_keys(self.head, self.tail, self.n_entities, directed=True))

    @cached_property
    def by_query(self) -> Ranges:
        """Rows by (h, r): what is known of the query (h, r, ?)."""
        return Ranges.of(self.query_keys(self.head, self.relation))

    @cached_property
    def by_inverse_query(self) -> Ranges:
        """Rows by (r, t): what is known of the query (?, r, t)."""
        return Ranges.of(self.query_keys(self.tail, self.relation))

    @cached_property
    def by_head(self) -> Ranges:
        """Rows by their head."""
        return Ranges.of(self.head.astype(np.int64))

    @cached_property
    def by_tail(self) -> Ranges:
        """Rows by their tail."""
        return Ranges.of(self.tail.astype(np.int64))

    @cached_property
    def degree(self) -> Places:
        """How many different facts each entity is an end of; one of an entity with itself counts twice."""
        rows = self.triples.first
        ends = np.concatenate([self.graph.head[rows], self.graph.tail[rows]])
        return np.bincount(ends, minlength=self.n_entities)

    @cached_property
    def neighbours(self) -> Neighbours:
        """Every fact from both its ends."""
        graph, rows = self.graph, np.flatnonzero(self.graph.head != self.graph.tail)
        head, tail, relation = graph.head[rows], graph.tail[rows], graph.relation[rows]
        own, other = np.concatenate([head, tail]), np.concatenate([tail, head])
        backwards = np.where(graph.undirected_relations[relation], relation, relation + np.int32(self.n_relations))
        step = np.concatenate([relation, backwards]).astype(np.int32)
        key = own.astype(np.int64) * self.n_entities + other
        order = stable_order(key)
        first = starts(key[order])
        source, near = own[order[first]], other[order[first]]
        start, links = (_ends(entity, self.n_entities) for entity in (own, source))
        row = np.concatenate([rows, rows])[order]
        rarity = 1.0 / np.log(1.0 + np.maximum(np.diff(links), 1))
        steps = start, other[order], step[order], row, self.confidence[row]
        surest = np.maximum.reduceat(self.confidence[row], first) if len(row) else np.zeros(0)
        return Neighbours(*steps, links, near, np.append(first, len(row)), surest, rarity)

    def find(self, head: AnyIds, relation: AnyIds, tail: AnyIds) -> Places:
        """Return the place of each fact among `triples`, −1 where the graph does not hold it."""
        stored = self.graph.as_stored(head, relation, tail)
        return self.triples.place(triple_keys(*stored, self.n_entities, self.n_relations))

    def known(self, head: AnyIds, relation: AnyIds, tail: AnyIds) -> npt.NDArray[np.bool_]:
        """Return which facts the graph holds."""
        return self.find(head, relation, tail) >= 0

    def stored(self, head: AnyIds, relation: AnyIds, tail: AnyIds) -> Floats:
        """Return the confidence that the graph gives each fact, NaN where it does not hold it."""
        return np.append(self.triples.mean, np.nan)[self.find(head, relation, tail)]

    def sources(self, head: AnyIds, relation: AnyIds, tail: AnyIds) -> list[str | None]:
        """Return of each fact where its rows came from, None where the graph does not hold it or does not say."""
        names = self.graph.source
        if names is None:
            return [None] * len(head)
        told: list[str | None] = []
        for at in self.find(head, relation, tail).tolist():
            rows = self.triples.rows[self.triples.start[at] : self.triples.start[at + 1]] if at >= 0 else NO_ROWS
            found = dict.fromkeys(names[int(row)].as_py() for row in rows)
            told.append(", ".join(name for name in found if name is not None) or None)
        return told

    def linked(self, head: AnyIds, tail: AnyIds) -> npt.NDArray[np.bool_]:
        """Return which pairs of entities a fact links, whatever its relation and its direction."""
        ways = (pair_keys(*ends, self.n_entities, directed=True) for ends in ((head, tail), (tail, head)))
        there, back = (self.by_pair.place(keys) >= 0 for keys in ways)
        return there | back

    def occurs(self, entity: AnyIds, relation: AnyIds, side: Side) -> npt.NDArray[np.bool_]:
        """Return which entities a fact of their relation has as its head, or as its tail."""
        groups = self.by_query if side == "head" else self.by_inverse_query
        return groups.place(self.query_keys(entity, relation)) >= 0

    def queries(self) -> Queries:
        """Return every query (h, r, ?) that has an answer, once, by relation and head."""
        relation, head = np.divmod(self.by_query.keys, self.n_entities)
        return Queries.of("tail", head, relation)

    def named(self, row: int) -> Fact:
        """Return the fact behind a row, by name, as the graph has it."""
        return self.graph[int(self.row[row])]

    def query_keys(self, entity: AnyIds, relation: AnyIds) -> Keys:
        """Return the keys of (entity, relation), as `by_query` and `by_inverse_query` are ordered."""
        keys: Keys = relation.astype(np.int64) * self.n_entities + entity
        return keys

    def answers(self, queries: Queries) -> Answers:
        """Return the known answers of each query, with their confidences."""
        groups, answer = (self.by_query, self.tail) if queries.side == "tail" else (self.by_inverse_query, self.head)
        begin, end = groups.find(self.query_keys(queries.given, queries.relation))
        query = np.repeat(np.arange(len(queries)), end - begin)
        rows = groups.gather(begin, end)
        distinct, first = np.unique(query * self.n_entities + answer[rows], return_index=True)
        found, entity = np.divmod(distinct, self.n_entities)
        count = np.bincount(found, minlength=len(queries))
        return Answers(
            np.concatenate([[0], np.cumsum(count)]),
            entity.astype(np.int32),
            self.triples.mean[self.fact[rows[first]]],
        )

    def as_head(self, entity: int) -> FactArrays:
        """Return the facts that begin at an entity, each once, by relation and tail."""
        return self.distinct(self.by_head.of_key(entity))

    def as_tail(self, entity: int) -> FactArrays:
        """Return the facts that end at an entity, each once, by relation and head."""
        return self.distinct(self.by_tail.of_key(entity))

    def all(self) -> FactArrays:
        """Return every fact once, as it is stored, by relation, head and tail."""
        rows, graph = self.triples.first, self.graph
        return FactArrays(graph.head[rows], graph.relation[rows], graph.tail[rows], self.triples.mean)

    def of_relation(self, relation: int, side: Side) -> Ids:
        """Return, sorted, the entities that facts of a relation have as heads, or as tails."""
        begin, end = np.searchsorted(self._by_relation.keys, (relation, relation + 1))
        first, last = self._by_relation.start[begin], self._by_relation.start[end]
        rows = self._by_relation.rows[first:last]
        return np.unique((self.head if side == "head" else self.tail)[rows])

    def distinct(self, rows: Places) -> FactArrays:
        """Return the facts of rows, each once, as the rows have them."""
        fact = self.fact[rows]
        order = np.lexsort((self.tail[rows], self.head[rows], self.relation[rows]))
        rows, fact = rows[order], fact[order]
        kept = np.ones(len(rows), dtype=np.bool_)
        kept[1:] = fact[1:] != fact[:-1]
        rows, fact = rows[kept], fact[kept]
        return FactArrays(self.head[rows], self.relation[rows], self.tail[rows], self.triples.mean[fact])

    @cached_property
    def _by_relation(self) -> Ranges:
        return Ranges.of(self.relation.astype(np.int64))


def _ends(entity: Ids, n: int) -> Places:
    """Return where the rows of each of n entities begin among rows ordered by entity, and where the last one's end."""
    return np.concatenate([[0], np.cumsum(np.bincount(entity, minlength=n))])
