"""The observed facts, ready to be looked up from either end."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ukge.graph.audit.lookup import ByTriple
from ukge.graph.keys import Keys, triple_keys
from ukge.graph.uncertain import UncertainGraph

Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

KINDS_KEPT = 512
"""Sets of entities by relation and side that are kept."""


class Facts(NamedTuple):
    """Facts by id, as columns."""

    head: Ids
    relation: Ids
    tail: Ids
    confidence: Floats

    def take(self, rows: npt.NDArray[np.integer] | slice) -> Facts:
        """Return some of the facts."""
        return Facts(self.head[rows], self.relation[rows], self.tail[rows], self.confidence[rows])


class Answers(NamedTuple):
    """Observed answers of one query: entities, sorted, and their stored confidences."""

    entity: Ids
    confidence: Floats


class Observed:
    """Each observed triple once, with the mean of its confidences, indexed by head and by tail."""

    def __init__(self, graph: UncertainGraph) -> None:
        self.n_entities, self.n_relations = graph.n_entities, graph.n_relations
        columns = (graph.relation.astype(np.int64), graph.confidence)
        self._by_head = _Side.of(graph.head, *columns, graph.tail, self.n_entities, self.n_relations)
        self._by_tail = _Side.of(graph.tail, *columns, graph.head, self.n_entities, self.n_relations)
        self.degree = np.bincount(graph.head, minlength=self.n_entities) + np.bincount(
            graph.tail, minlength=self.n_entities
        )
        self.kind = lru_cache(maxsize=KINDS_KEPT)(self._kind)

    def __len__(self) -> int:
        return len(self._by_head.keys)

    def tails(self, head: int, relation: int) -> Answers:
        """Return the observed answers to (h, r, ?)."""
        return self._by_head.answers(head, relation)

    def heads(self, relation: int, tail: int) -> Answers:
        """Return the observed answers to (?, r, t)."""
        return self._by_tail.answers(tail, relation)

    def confidence(self, head: int, relation: int, tail: int) -> float | None:
        """Return the stored confidence of a fact, None if it is unseen."""
        answers = self.tails(head, relation)
        at = int(np.searchsorted(answers.entity, tail))
        return float(answers.confidence[at]) if at < len(answers.entity) and answers.entity[at] == tail else None

    def as_head(self, entity: int) -> Facts:
        """Return the facts whose head is the entity, by relation and tail."""
        relation, other, confidence = self._by_head.around(entity)
        return Facts(np.full(len(other), entity), relation, other, confidence)

    def as_tail(self, entity: int) -> Facts:
        """Return the facts whose tail is the entity, by relation and head."""
        relation, other, confidence = self._by_tail.around(entity)
        return Facts(other, relation, np.full(len(other), entity), confidence)

    def between(self, head: int, tail: int) -> Facts:
        """Return the facts with this head and this tail, whatever the relation."""
        facts = self.as_head(head)
        return facts.take(facts.tail == tail)

    def all(self) -> Facts:
        """Return every observed triple once, by head, relation and tail."""
        rest, other = np.divmod(self._by_head.keys, self.n_entities)
        entity, relation = np.divmod(rest, self.n_relations)
        return Facts(entity, relation, other, self._by_head.confidence)

    def _kind(self, relation: int, side: str) -> Ids:
        """Return, sorted, the entities observed as `head` or as `tail` of a relation."""
        facts = self._relations
        rows = facts.order[facts.start[relation] : facts.start[relation + 1]]
        column = self._heads if side == "head" else self._tails
        return np.unique(column[rows])

    @property
    def _relations(self) -> _ByRelation:
        found: _ByRelation | None = self.__dict__.get("_relations_found")
        if found is None:
            everything = self.all()
            self._heads, self._tails = everything.head, everything.tail
            order = np.argsort(everything.relation, kind="stable")
            count = np.bincount(everything.relation, minlength=self.n_relations)
            found = _ByRelation(order, np.concatenate([[0], np.cumsum(count)]))
            self.__dict__["_relations_found"] = found
        return found


class _ByRelation(NamedTuple):
    order: Ids
    start: Ids


class _Side(NamedTuple):
    """Triples as keys (first entity, relation, second entity), sorted, so that a query is one stretch of them."""

    keys: Keys
    confidence: Floats
    n_entities: int
    n_relations: int

    @classmethod
    def of(
        cls,
        first: npt.NDArray[np.integer],
        relation: Ids,
        confidence: Floats,
        second: npt.NDArray[np.integer],
        n_entities: int,
        n_relations: int,
    ) -> _Side:
        triple_keys(first[:0], relation[:0], second[:0], n_entities, n_relations)  # says if they do not fit 64 bits
        keys = (first.astype(np.int64) * n_relations + relation) * n_entities + second
        triples = ByTriple.of(keys, confidence)
        return cls(triples.keys, triples.mean(), n_entities, n_relations)

    def answers(self, entity: int, relation: int) -> Answers:
        key = (entity * self.n_relations + relation) * self.n_entities
        first, last = np.searchsorted(self.keys, (key, key + self.n_entities))
        return Answers(self.keys[first:last] - key, self.confidence[first:last])

    def around(self, entity: int) -> tuple[Ids, Ids, Floats]:
        width = self.n_relations * self.n_entities
        first, last = np.searchsorted(self.keys, (entity * width, (entity + 1) * width))
        relation, other = np.divmod(self.keys[first:last] - entity * width, self.n_entities)
        return relation, other, self.confidence[first:last]
