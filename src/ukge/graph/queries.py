"""Queries with one entity missing, and the answers that a graph gives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from ukge.graph.keys import contains
from ukge.graph.vocabulary import Ids

AnyIds = npt.NDArray[np.integer[Any]]
Places = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.floating[Any]]

Side = Literal["tail", "head"]
SIDES: tuple[Side, Side] = ("tail", "head")


class Ranker(Protocol):
    """Scores every entity as the answer to a query, by id; a higher score ranks higher."""

    @property
    def n_entities(self) -> int:
        """How many entities can be an answer."""

    def tail_scores(self, head: AnyIds, relation: AnyIds) -> Numbers:
        """Return for each query (h, r, ?) a score of every entity, (n, n_entities)."""

    def head_scores(self, relation: AnyIds, tail: AnyIds) -> Numbers:
        """Return for each query (?, r, t) a score of every entity, (n, n_entities)."""


@dataclass(frozen=True, eq=False)
class Queries:
    """Queries of one side: `given` is the head where tails are asked for, and the tail otherwise."""

    side: Side
    given: Ids
    relation: Ids

    @classmethod
    def of(cls, side: Side, given: AnyIds | int, relation: AnyIds | int) -> Queries:
        """Ask for one query or many."""
        return cls(side, *(np.atleast_1d(np.asarray(each, dtype=np.int32)) for each in (given, relation)))

    def __len__(self) -> int:
        return len(self.given)

    def __getitem__(self, rows: slice) -> Queries:
        return Queries(self.side, self.given[rows], self.relation[rows])

    def facts(self, query: Places, entity: Ids) -> tuple[Ids, Ids, Ids]:
        """Return queries filled with an entity, as facts by ids."""
        given, relation = self.given[query], self.relation[query]
        return (given, relation, entity) if self.side == "tail" else (entity, relation, given)

    def scores(self, ranker: Ranker) -> Numbers:
        """Return the score of every entity for each query."""
        if self.side == "tail":
            return ranker.tail_scores(self.given, self.relation)
        return ranker.head_scores(self.relation, self.given)


@dataclass(frozen=True, eq=False)
class Answers:
    """The known answers of queries: those of query q are `entity[offsets[q]:offsets[q + 1]]`, sorted, each once."""

    offsets: Places
    entity: Ids
    confidence: Floats

    @property
    def query(self) -> Places:
        """The query of each answer."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def without(self, others: Answers, n_entities: int) -> Answers:
        """Return the answers that are not among `others`, answers of the same queries."""
        keys, theirs = (each.query * n_entities + each.entity for each in (self, others))
        return self._only(~contains(theirs, keys))

    def _only(self, keep: npt.NDArray[np.bool_]) -> Answers:
        count = np.bincount(self.query[keep], minlength=len(self.offsets) - 1)
        return Answers(np.concatenate([[0], np.cumsum(count)]), self.entity[keep], self.confidence[keep])

    @classmethod
    def none(cls, n_queries: int) -> Answers:
        """Return that no query has an answer."""
        return cls(np.zeros(n_queries + 1, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0))
