"""Answers to a query with a missing entity: the best first, each with its confidence, its bounds, and what is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ukge.evidence.candidates import Asking, known_answers
from ukge.evidence.ranking import ranked
from ukge.graph.given import query_of

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
    asked, given = np.array([r], dtype=np.int32), np.array([t if h is None else h], dtype=np.int32)
    asking = Asking("head" if h is None else "tail", given, asked)
    _, known, stored = known_answers(evidence.evidence, asking)
    scores = evidence.head_scores(asked, given) if h is None else evidence.tail_scores(given, asked)
    best = ranked(scores[0], k, known if unseen else None)
    query = np.zeros(len(best), dtype=np.int64)
    columns = evidence.evidence.columns(*asking.facts(query, best))
    low, high = evidence.interval_of(columns, asked[query], coverage)
    names, held = evidence.entities.decode(best).to_pylist(), dict(zip(known.tolist(), stored.tolist(), strict=True))
    rows = zip(names, evidence.head.predict(columns).tolist(), low.tolist(), high.tolist(), strict=True)
    return [RankedAnswer(*row, held.get(entity)) for entity, row in zip(best.tolist(), rows, strict=True)]
