"""The facts in the orders in which evidence is looked up: by pair, by neighbour, by query."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ukge.evidence.lookup import find
from ukge.graph.keys import Keys, pair_keys, triple_keys
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Ids

Places = npt.NDArray[np.int64]
AnyIds = npt.NDArray[np.integer[Any]]


class Asked(NamedTuple):
    """Facts asked about, by ids. Row `own[i]` of the known facts does not count for fact i; −1 lets all count."""

    head: Ids
    relation: Ids
    tail: Ids
    own: Places

    @classmethod
    def of(cls, head: AnyIds, relation: AnyIds, tail: AnyIds, own: Places | None = None) -> Asked:
        """Ask about facts, with all known facts counting unless `own` says otherwise."""
        nothing = np.full(len(head), -1, dtype=np.int64) if own is None else own
        return cls(head.astype(np.int32), relation.astype(np.int32), tail.astype(np.int32), nothing)

    def block(self, rows: slice) -> Asked:
        """Return some of the facts."""
        return Asked(self.head[rows], self.relation[rows], self.tail[rows], self.own[rows])


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
        start = _starts(ordered)
        return cls(ordered[start], np.append(start, len(ordered)), rows)

    def find(self, keys: Keys) -> tuple[Places, Places]:
        """Return where the rows of each key begin and end."""
        at = find(self.keys, keys)
        # Place −1 is the last of `start`, and no key: both are replaced.
        return np.where(at >= 0, self.start[at], 0), np.where(at >= 0, self.start[at + 1], 0)


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Every fact from both its ends: the steps of entity e are `start[e]:start[e + 1]`, ordered by neighbour.

    A step is the fact's relation r, or R + r where e is the fact's tail. Facts of an entity with itself are left out.
    Neighbours of e, each once, are `near[links[e]:links[e + 1]]`; the steps to `near[k]` are `first[k]:first[k + 1]`.
    """

    start: Places
    entity: Ids
    step: Ids
    row: Places
    confidence: npt.NDArray[np.float64]
    """of the step's fact: beside the step, because walks read them one after another"""
    links: Places
    near: Ids
    first: Places
    surest: npt.NDArray[np.float64]
    """highest confidence of the steps to a neighbour"""
    rarity: npt.NDArray[np.float64]
    """what an entity is worth as a common neighbour, 1 / log(1 + degree)"""


class FactIndex:
    """The facts of a graph, ready to be looked up; each order is made when it is first needed."""

    def __init__(self, graph: UncertainGraph) -> None:
        self.graph = graph
        self.n_entities, self.n_relations = graph.n_entities, graph.n_relations
        self.relation = np.ascontiguousarray(graph.relation, dtype=np.int32)
        self.confidence = np.ascontiguousarray(graph.confidence, dtype=np.float64)

    @cached_property
    def by_pair(self) -> Ranges:
        """Rows by directed entity pair."""
        return Ranges.of(pair_keys(self.graph.head, self.graph.tail, self.n_entities, directed=True))

    @cached_property
    def by_query(self) -> Ranges:
        """Rows by (h, r): what is known of the query (h, r, ?)."""
        return Ranges.of(self._group_keys(self.graph.head, self.graph.relation))

    @cached_property
    def by_inverse_query(self) -> Ranges:
        """Rows by (r, t): what is known of the query (?, r, t)."""
        return Ranges.of(self._group_keys(self.graph.tail, self.graph.relation))

    @cached_property
    def by_triple(self) -> Ranges:
        """Rows by (h, r, t)."""
        return Ranges.of(self.graph.keys())

    @cached_property
    def neighbours(self) -> Neighbours:
        """Every fact from both its ends."""
        graph, rows = self.graph, np.flatnonzero(self.graph.head != self.graph.tail)
        head, tail, relation = graph.head[rows], graph.tail[rows], graph.relation[rows]
        own, other = np.concatenate([head, tail]), np.concatenate([tail, head])
        step = np.concatenate([relation, relation + np.int32(self.n_relations)])
        key = own.astype(np.int64) * self.n_entities + other
        order = stable_order(key)
        first = _starts(key[order])
        source, near = own[order[first]], other[order[first]]
        start, links = (_ends(entity, self.n_entities) for entity in (own, source))
        row = np.concatenate([rows, rows])[order]
        rarity = 1.0 / np.log(1.0 + np.maximum(np.diff(links), 1))
        steps = start, other[order], step[order], row, self.confidence[row]
        surest = np.maximum.reduceat(self.confidence[row], first) if len(row) else np.zeros(0)
        return Neighbours(*steps, links, near, np.append(first, len(row)), surest, rarity)

    def pair_ranges(self, head: Ids, tail: Ids) -> tuple[Places, Places, Places, Places]:
        """Return begin and end of the rows of (h, t), and of those of (t, h); the latter are empty for loops."""
        forward = self.by_pair.find(pair_keys(head, tail, self.n_entities, directed=True))
        begin, end = self.by_pair.find(pair_keys(tail, head, self.n_entities, directed=True))
        return *forward, begin, np.where(head == tail, begin, end)

    def rows_of(self, head: Ids, relation: Ids, tail: Ids) -> Places:
        """Return for each triple the first row that holds it, −1 where the graph does not."""
        keys = triple_keys(head, relation, tail, self.n_entities, self.n_relations)
        begin, end = self.by_triple.find(keys)
        return np.where(end > begin, self.by_triple.rows[np.minimum(begin, len(self.graph) - 1)], -1)

    def query_keys(self, entity: Ids, relation: Ids) -> Keys:
        """Return the keys of (entity, relation), as `by_query` and `by_inverse_query` are ordered."""
        return self._group_keys(entity, relation)

    def _group_keys(self, entity: Ids, relation: Ids) -> Keys:
        keys: Keys = relation.astype(np.int64) * self.n_entities + entity
        return keys


def stable_order(keys: Keys) -> Places:
    """Return the order of keys, that of their places where they are equal.

    Numbers that hold key and place at once are sorted far faster than places by their keys, if they are not too large.
    """
    n = len(keys)
    if n == 0 or keys.min() < 0 or int(keys.max()) >= np.iinfo(np.int64).max // n:
        return np.argsort(keys, kind="stable")
    return np.sort(keys * n + np.arange(n)) % n


def _starts(ordered: Keys) -> Places:
    """Return where each distinct one of ordered keys begins."""
    first = np.ones(len(ordered), dtype=np.bool_)
    first[1:] = ordered[1:] != ordered[:-1]
    return np.flatnonzero(first)


def _ends(entity: Ids, n: int) -> Places:
    """Return where the rows of each of n entities begin among rows ordered by entity, and where the last one's end."""
    return np.concatenate([[0], np.cumsum(np.bincount(entity, minlength=n))])
