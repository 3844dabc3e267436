"""Facts to be ranked: each stands as the answer of a query, among all entities."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ukge.evaluation.ranks import RawAndFiltered, filtered_ranks
from ukge.graph.index import Ranges
from ukge.graph.queries import Answers, Places, Queries, Ranker, Side
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Ids


@dataclass(frozen=True, eq=False)
class RankedFacts:
    """Facts, ordered by the query that asks for their tail (or head): each query is scored once for all its facts."""

    queries: Queries
    order: Places
    query: Places
    answer: Ids

    @classmethod
    def of(cls, facts: UncertainGraph, side: Side) -> RankedFacts:
        """Group facts by query."""
        given, answer = (facts.head, facts.tail) if side == "tail" else (facts.tail, facts.head)
        groups = Ranges.of(facts.relation.astype(np.int64) * facts.n_entities + given)
        relation, entity = np.divmod(groups.keys, facts.n_entities)
        query = np.repeat(np.arange(len(groups)), groups.count)
        return cls(Queries.of(side, entity, relation), groups.rows, query, answer[groups.rows])

    def ranks(self, ranker: Ranker, known: Answers) -> RawAndFiltered:
        """Return the ranks of the facts, in their own order; `known` are answers of the queries to be left out."""
        found = filtered_ranks(
            lambda block: self.queries[block].scores(ranker),
            ranker.n_entities,
            self.query,
            self.answer,
            known.offsets,
            known.entity,
        )
        ranks = RawAndFiltered(np.empty_like(found.raw), np.empty_like(found.filtered))
        ranks.raw[self.order], ranks.filtered[self.order] = found
        return ranks
