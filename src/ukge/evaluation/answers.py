"""Queries and their known answers: which entities a graph names for (h, r, ?) or (?, r, t), and how surely."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from ukge.evaluation.predictions import Floats, Ids, Numbers, Ranker
from ukge.evaluation.ranks import Offsets, RawAndFiltered, filtered_ranks
from ukge.graph.audit.lookup import ByTriple
from ukge.graph.keys import Keys, contains, triple_keys
from ukge.graph.uncertain import UncertainGraph

Side = Literal["tail", "head"]
SIDES: tuple[Side, Side] = ("tail", "head")


@dataclass(frozen=True, eq=False)
class Queries:
    """Queries with one entity missing: `given` is the head where the tail is asked for, and the tail otherwise."""

    side: Side
    given: Ids
    relation: Ids

    def __len__(self) -> int:
        return len(self.given)

    def scores(self, ranker: Ranker, block: slice) -> Numbers:
        """Return the score of every entity for a block of the queries."""
        given, relation = self.given[block], self.relation[block]
        return ranker.tail_scores(given, relation) if self.side == "tail" else ranker.head_scores(relation, given)


@dataclass(frozen=True, eq=False)
class Answers:
    """The known answers of queries: those of query q are `entity[offsets[q]:offsets[q + 1]]`, each once."""

    offsets: Offsets
    entity: npt.NDArray[np.int32]
    confidence: Floats

    @property
    def query(self) -> npt.NDArray[np.int64]:
        """The query of each answer."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))

    def without(self, others: Answers, n_entities: int) -> Answers:
        """Return the answers that are not among `others`, answers of the same queries."""
        keys, theirs = (each.query * n_entities + each.entity for each in (self, others))
        keep = ~contains(theirs, keys)
        count = np.bincount(self.query[keep], minlength=len(self.offsets) - 1)
        return Answers(np.concatenate([[0], np.cumsum(count)]), self.entity[keep], self.confidence[keep])

    @classmethod
    def none(cls, n_queries: int) -> Answers:
        """Return that no query has an answer."""
        return cls(np.zeros(n_queries + 1, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0))


class Known:
    """The distinct triples of a graph, to be asked from one side.

    A triple that the graph holds several times counts once, with the mean of its confidences: unlike the first or the
    last of them, the mean does not depend on the order of the rows, and no constant answer to the triple errs less.
    """

    def __init__(self, graph: UncertainGraph, side: Side) -> None:
        self.side: Side = side
        self.n_entities, self.n_relations = graph.n_entities, graph.n_relations
        # Keys are ordered by relation, then by the first entity: the answers of a query stand side by side.
        self._triples = ByTriple.of(graph.keys() if side == "tail" else graph.inverse_keys(), graph.confidence)
        self._confidence = self._triples.mean()

    def answers(self, queries: Queries) -> Answers:
        """Return the known answers of each query."""
        zeros = np.zeros(len(queries), dtype=np.int64)
        first_key = triple_keys(queries.given, queries.relation, zeros, self.n_entities, self.n_relations)
        first = np.searchsorted(self._triples.keys, first_key)
        last = np.searchsorted(self._triples.keys, first_key + self.n_entities)
        offsets = np.concatenate([[0], np.cumsum(last - first)])
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], last - first)
        place = np.repeat(first, last - first) + within
        entity = (self._triples.keys[place] % self.n_entities).astype(np.int32)
        return Answers(offsets, entity, self._confidence[place])


@dataclass(frozen=True, eq=False)
class Asked:
    """Facts, ordered by the query that asks for their tail (or head): each query is scored once for all its facts."""

    queries: Queries
    order: npt.NDArray[np.int64]
    query: npt.NDArray[np.int64]
    answer: npt.NDArray[np.int32]

    @classmethod
    def of(cls, facts: UncertainGraph, side: Side) -> Asked:
        """Group facts by query."""
        given, answer = (facts.head, facts.tail) if side == "tail" else (facts.tail, facts.head)
        distinct, query = np.unique(_query_keys(given, facts), return_inverse=True)
        order = np.argsort(query, kind="stable")
        relation, entity = np.divmod(distinct, facts.n_entities)
        queries = Queries(side, entity.astype(np.int32), relation.astype(np.int32))
        return cls(queries, order, query[order], answer[order])

    def ranks(self, ranker: Ranker, known: Answers) -> RawAndFiltered:
        """Return the ranks of the facts, in their own order; `known` are answers of the queries to be left out."""
        found = filtered_ranks(
            lambda block: self.queries.scores(ranker, block),
            ranker.n_entities,
            self.query,
            self.answer,
            known.offsets,
            known.entity,
        )
        ranks = RawAndFiltered(np.empty_like(found.raw), np.empty_like(found.filtered))
        ranks.raw[self.order], ranks.filtered[self.order] = found
        return ranks


def _query_keys(given: Ids, facts: UncertainGraph) -> Keys:
    keys: Keys = facts.relation.astype(np.int64) * facts.n_entities + given
    return keys
