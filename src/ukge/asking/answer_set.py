"""The answer set of a query: all entities that may be a missing answer, with a promised coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ukge.asking.judges import FEWEST
from ukge.asking.rank import Answer, Query, judged_answers
from ukge.errors import RunError
from ukge.evaluation.answer_sets import AnswerSets, Within
from ukge.graph.index import FactIndex
from ukge.graph.queries import Queries

if TYPE_CHECKING:
    from ukge.asking.predictor import Predictor

FACTS = 500
"""Validation facts of each side that the sets of a model are calibrated on at most."""


class AnswerSet(NamedTuple):
    """How many entities the set has, and the first of them, best first: no answer that the data holds is in it.

    A missing answer is in the set with a chance of `coverage`, as far as it is like those of the validation facts.
    """

    coverage: float
    size: int
    answers: list[Answer]


def answer_set(predictor: Predictor, query: Query, within: Within = "all") -> AnswerSet:
    """Return the answer set of a query with its coverage, and its first k entities."""
    sets = predictor.answer_sets
    if sets is None:
        raise RunError(
            "there are no answer sets: too few validation facts, or evidence of an older version",
            hint="Fit it again (ukge evidence fit RUN), or split the graph with a larger validation part.",
        )
    asked = Queries.of(query.side, query.given, query.relation)
    ranker = predictor.model if predictor.evidence is None else predictor.evidence
    score = np.array(asked.scores(ranker), dtype=np.float64)[0]
    score[predictor.known.answers(asked).entity] = np.nan
    inside = np.flatnonzero(score >= sets.least_score(query.side, asked.relation, query.coverage, within)[0])
    if query.among is not None:
        inside = inside[np.isin(inside, query.among)]
    first = inside[np.argsort(-score[inside], kind="stable")][: query.k]
    return AnswerSet(query.coverage, len(inside), judged_answers(predictor, query, first))


def fitted_sets(predictor: Predictor) -> AnswerSets | None:
    """Return the sets of the evidence, or, of a model, those that its validation facts calibrate."""
    if predictor.evidence is not None:
        return predictor.evidence.answer_sets
    dataset = predictor.dataset
    if len(dataset.val) < FEWEST:
        return None
    return AnswerSets.fit(predictor.model, dataset.val, FactIndex(dataset.train), FACTS)
