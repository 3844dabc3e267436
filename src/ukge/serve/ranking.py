"""Rank queries: from the names of a request to answers with confidences."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import pyarrow.compute as pc

from ukge.serve.observed import Answers, Ids
from ukge.serve.opinion import Triple
from ukge.serve.problems import invalid
from ukge.serve.snapshot import Snapshot
from ukge.serve.topk import NOBODY, Found, Wanted

RERANKED = 50
"""Candidates of the model, at least, and of the graph's links, at most, that evidence puts into its own order."""

TYPES = re.compile(r"any|fitting|(?:heads|tails):.+", re.DOTALL)

Seen = Literal["include", "exclude", "only"]


@dataclass(frozen=True)
class RankQuery:
    """(head, relation, ?) or (?, relation, tail), and which answers are wanted."""

    relation: str
    head: str | None = None
    tail: str | None = None
    k: int = 10
    type: str = "any"
    prefix: str = ""
    min_confidence: float = 0.0
    observed: Seen = "include"
    exact: bool = False
    coverage: float = 0.9


@dataclass(frozen=True, eq=False)
class Ranked:
    """Candidates by id with their confidences, and the stored ones (NaN where the fact is unseen)."""

    facts: list[Triple]
    entity: list[int]
    confidence: list[float]
    stored: list[float | None]


class Ranking:
    """One query on one snapshot: prepared before the search, and finished after it."""

    def __init__(self, snapshot: Snapshot, query: RankQuery) -> None:
        if (query.head is None) == (query.tail is None):
            raise invalid([("query", "give either a head or a tail")])
        if not TYPES.fullmatch(query.type):
            raise invalid([("query.type", "expected any, fitting, heads:RELATION or tails:RELATION")])
        self.snapshot, self.query = snapshot, query
        self.relation = snapshot.relation(query.relation)
        self.at_tail = query.head is not None
        self.given = snapshot.entity(query.head if query.head is not None else str(query.tail))
        observed = snapshot.observed
        self.known: Answers = (
            observed.tails(self.given, self.relation) if self.at_tail else observed.heads(self.relation, self.given)
        )

    @property
    def judged_by_evidence(self) -> bool:
        """Whether another opinion than the searching model's has the last word."""
        return self.snapshot.opinion is not self.snapshot.model

    def wanted(self) -> Wanted:
        """Return what to search for."""
        weights = self.snapshot.weights
        vector = (
            weights.tail_query(self.given, self.relation)
            if self.at_tail
            else weights.head_query(self.relation, self.given)
        )
        k = max(self.query.k, RERANKED) if self.judged_by_evidence else self.query.k
        return Wanted(vector, k, self._among, self._without)

    def finish(self, found: Found) -> Ranked:
        """Return the answers: judged, above the least confidence, at most k."""
        entity = (self._and_proposed(found.entity) if self.judged_by_evidence else found.entity).tolist()
        facts = [self._fact(each) for each in entity]
        if self.judged_by_evidence and facts:
            confidence = self.snapshot.opinion.confidence(facts)
            order = np.argsort(-confidence, kind="stable")
        else:
            confidence = self.snapshot.weights.confidence_of(found.score)
            order = np.arange(len(facts))
        kept = [int(row) for row in order if confidence[row] >= self.query.min_confidence][: self.query.k]
        stored = dict(zip(self.known.entity.tolist(), self.known.confidence.tolist(), strict=True))
        return Ranked(
            [facts[row] for row in kept],
            [entity[row] for row in kept],
            [float(confidence[row]) for row in kept],
            [stored.get(entity[row]) for row in kept],
        )

    def _fact(self, entity: int) -> Triple:
        return (self.given, self.relation, entity) if self.at_tail else (entity, self.relation, self.given)

    def _and_proposed(self, found: Ids) -> Ids:
        """Return what was found and what else the links of the graph propose, where it may be an answer."""
        others = self.snapshot.opinion.proposed(self.given, self.relation, self.at_tail, RERANKED)
        if self._among is not None:
            others = others[np.isin(others, self._among)]
        return np.concatenate([found, others[~np.isin(others, [*found, *self._without])]])

    @property
    def _without(self) -> Ids:
        """Return the entities that may not be answers."""
        return self.known.entity if self.query.observed == "exclude" else NOBODY

    @cached_property
    def _among(self) -> Ids | None:
        """Return the entities that may be answers, None for all."""
        kinds: list[Ids] = []
        kind = self.snapshot.observed.kind
        if self.query.type == "fitting":
            kinds.append(kind(self.relation, "tail" if self.at_tail else "head"))
        elif self.query.type != "any":
            side, _, relation = self.query.type.partition(":")
            kinds.append(kind(self.snapshot.relation(relation), side.removesuffix("s")))
        if self.query.prefix:
            kinds.append(_beginning_with(self.snapshot, self.query.prefix))
        if self.query.observed == "only":
            kinds.append(self.known.entity)
        return _common(kinds)


def _beginning_with(snapshot: Snapshot, prefix: str) -> Ids:
    return np.flatnonzero(pc.starts_with(snapshot.entities.names, prefix).to_numpy(zero_copy_only=False))


def _common(kinds: list[Ids]) -> Ids | None:
    if not kinds:
        return None
    common = kinds[0]
    for each in kinds[1:]:
        common = np.intersect1d(common, each, assume_unique=True)
    return common
