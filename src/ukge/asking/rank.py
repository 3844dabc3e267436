"""Answers to a query with a missing entity: the most confident first, each with its bounds and what the graph stores.

A list is ordered by the number that it shows. With evidence, models and the links of the graph propose candidates, and
the evidence judges them and the known answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from ukge.asking.judges import COVERAGE
from ukge.asking.search import NOBODY, ExactSearch, Found, Ids, Wanted
from ukge.graph.queries import Queries, Side

if TYPE_CHECKING:
    from ukge.asking.predictor import Predictor

PROPOSED = 50
"""Candidates that evidence judges at least, of each model, and of the graph's links at most."""

FEW = 1_000
"""Entities of a graph up to which evidence judges them all."""

Seen = Literal["include", "exclude", "only"]


@dataclass(frozen=True)
class Query:
    """(given, relation, ?) or (?, relation, given) by ids, and which answers are wanted."""

    side: Side
    given: int
    relation: int
    k: int = 10
    seen: Seen = "include"
    among: Ids | None = None
    min_confidence: float = 0.0
    coverage: float = COVERAGE


class Answer(NamedTuple):
    """A candidate for the missing entity: how confident the fact is, within which bounds, and what the graph stores."""

    entity: str
    confidence: float
    low: float | None
    high: float | None
    stored: float | None


class Ranking:
    """One query: prepared before the model's search, which many may share, and finished after it."""

    def __init__(self, predictor: Predictor, query: Query) -> None:
        self.predictor, self.query = predictor, query
        self._asked = Queries.of(query.side, query.given, query.relation)
        self._known = predictor.known.answers(self._asked)

    def wanted(self) -> Wanted:
        """Return what to search for."""
        query = self.query
        k, n = query.k, len(self.predictor.entities)
        if self.predictor.evidence is not None:
            k = n if n <= FEW else max(k, PROPOSED)
        return Wanted(query.side, query.given, query.relation, k, self._among, self._without)

    def finish(self, found: Found) -> list[Answer]:
        """Return the answers: judged, above the least confidence, at most k."""
        query, predictor = self.query, self.predictor
        entity = found.entity if predictor.evidence is None else self._and_proposed(found.entity)
        zero = np.zeros(len(entity), dtype=np.int64)
        judged = predictor.judge.judge(*self._asked.facts(zero, entity.astype(np.int32)), query.coverage)
        order = np.lexsort((entity, -judged.strength, -judged.confidence))
        order = order[judged.confidence[order] >= query.min_confidence][: query.k]
        stored = dict(zip(self._known.entity.tolist(), self._known.confidence.tolist(), strict=True))
        names = predictor.entities.decode(entity[order]).to_pylist()
        rows = zip(*(column[order].tolist() for column in judged[:3]), strict=True)
        return [
            Answer(name, confidence, _number(low), _number(high), stored.get(one))
            for name, one, (confidence, low, high) in zip(names, entity[order].tolist(), rows, strict=True)
        ]

    def _and_proposed(self, found: Ids) -> Ids:
        """Return what was found, what other models and links propose, and the known answers, where they may be one."""
        from ukge.evidence.ranking import linked_candidates  # noqa: PLC0415 — only evidence needs them

        features = self.predictor.features()
        parts = [found, self._known.entity.astype(np.int64), linked_candidates(features, self._asked, PROPOSED)[0]]
        for backbone in features.backbones[1:]:
            parts += [each.entity for each in ExactSearch(backbone.model).search([self.wanted()])]
        every = np.unique(np.concatenate(parts)).astype(np.int64)
        every = every[(every >= 0) & ~np.isin(every, self._without)]
        return every if self._among is None else every[np.isin(every, self._among)]

    @property
    def _without(self) -> Ids:
        """Return the entities that may not be answers."""
        return self._known.entity.astype(np.int64) if self.query.seen == "exclude" else NOBODY

    @cached_property
    def _among(self) -> Ids | None:
        """Return the entities that may be answers, None for all."""
        if self.query.seen != "only":
            return self.query.among
        known = self._known.entity.astype(np.int64)
        return known if self.query.among is None else np.intersect1d(known, self.query.among)


def _number(value: float) -> float | None:
    return None if np.isnan(value) else value
