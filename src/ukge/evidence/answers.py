"""Answers to a query with a missing entity: the best first, each with its confidence, its bounds, and what is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ukge.evidence.ranking import ranked
from ukge.graph.given import query_of
from ukge.graph.queries import Queries

if TYPE_CHECKING:
    from ukge.evidence.evidence import Evidence


class RankedAnswer(NamedTuple):
    """A candidate for the missing entity: how confident the fact is, within which bounds, and what the graph stores."""

    entity: str
    confidence: float
    low: float
    high: float
    stored: float | None


def best_answers(
    evidence: Evidence, head: str | None, relation: str | None, tail: str | None, k: int, coverage: float, unseen: bool
) -> list[RankedAnswer]:
    """Return the k best answers in the order of the head for ranking."""
    h, r, t = query_of(head, relation, tail, k, evidence.entities, evidence.relations)
    queries = Queries.of("head" if h is None else "tail", np.array([t if h is None else h]), r)
    known = evidence.evidence.index.answers(queries)
    best = ranked(queries.scores(evidence)[0], k, known.entity if unseen else None)
    query = np.zeros(len(best), dtype=np.int64)
    columns = evidence.evidence.columns(*queries.facts(query, best))
    low, high = evidence.interval_of(columns, queries.relation[query], coverage)
    names = evidence.entities.decode(best).to_pylist()
    held = dict(zip(known.entity.tolist(), known.confidence.tolist(), strict=True))
    rows = zip(names, evidence.head.predict(columns).tolist(), low.tolist(), high.tolist(), strict=True)
    return [RankedAnswer(*row, held.get(entity)) for entity, row in zip(best.tolist(), rows, strict=True)]
