"""Answers to a query with a missing entity: the best first, each with its confidence, its bounds, and what is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ukge.evidence.candidates import Asking, known_answers
from ukge.evidence.ranking import ranked
from ukge.queries import asked_relation

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
    asked = np.array([evidence.relations.id(asked_relation(head, relation, tail, k))], dtype=np.int32)
    given = np.array([evidence.entities.id(head if head is not None else str(tail))], dtype=np.int32)
    asking = Asking("tail" if head is not None else "head", given, asked)
    _, known, stored = known_answers(evidence.evidence, asking)
    scores = evidence.tail_scores(given, asked) if head is not None else evidence.head_scores(asked, given)
    best = ranked(scores[0], k, known if unseen else None)
    query = np.zeros(len(best), dtype=np.int64)
    columns = evidence.evidence.columns(*asking.facts(query, best))
    low, high = evidence.interval_of(columns, asked[query], coverage)
    names, held = evidence.entities.decode(best).to_pylist(), dict(zip(known.tolist(), stored.tolist(), strict=True))
    rows = zip(names, evidence.head.predict(columns).tolist(), low.tolist(), high.tolist(), strict=True)
    return [RankedAnswer(*row, held.get(entity)) for entity, row in zip(best.tolist(), rows, strict=True)]
