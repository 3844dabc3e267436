"""Answers to a query with a missing entity: the most confident first, each with its bounds and what the graph stores.

A list is ordered by the number that it shows. The model finds its k best entities: every entity is scored, block by
block. With evidence, other models and the links of the graph propose candidates too, and the evidence judges them and
the known answers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ukge.asking.judges import COVERAGE
from ukge.graph.queries import SIDES, Queries, Side
from ukge.models.model import Model
from ukge.models.tables import best

if TYPE_CHECKING:
    from ukge.asking.predictor import Predictor

PROPOSED = 50
"""Candidates that evidence judges at least, of each model, and of the graph's links at most."""

FEW = 1_000
"""Entities of a graph up to which evidence judges them all."""

Seen = Literal["include", "exclude", "only"]
Ids = npt.NDArray[np.int64]
Check = Callable[[], None]
"""Called now and then; raises when time is up."""

BLOCK_ELEMENTS = 1 << 22
"""Scores that are held at once."""

SMALL_SHARE = 8
"""Candidates fewer than one in so many are scored by themselves; of more, all are scored and the others struck out."""

NOBODY: Ids = np.zeros(0, dtype=np.int64)


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
    label: str | None = None
    """what people call the entity, where that is not its name"""


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
        return [each for each in judged_answers(predictor, query, entity) if each.confidence >= query.min_confidence][
            : query.k
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


def judged_answers(predictor: Predictor, query: Query, entity: Ids) -> list[Answer]:
    """Return some entities as answers to a query, the most confident first, with what the graph stores of them."""
    asked = Queries.of(query.side, query.given, query.relation)
    known, zero = predictor.known.answers(asked), np.zeros(len(entity), dtype=np.int64)
    judged = predictor.judge(*asked.facts(zero, entity.astype(np.int32)), query.coverage)
    order = np.lexsort((entity, -judged.strength, -judged.confidence))
    stored = dict(zip(known.entity.tolist(), known.confidence.tolist(), strict=True))
    names = predictor.entities.decode(entity[order]).to_pylist()
    rows = zip(*(column[order].tolist() for column in judged[:3]), strict=True)
    labels = predictor.nodes.labels(names)
    return [
        Answer(name, confidence, _number(low), _number(high), stored.get(one), label)
        for name, one, (confidence, low, high), label in zip(names, entity[order].tolist(), rows, labels, strict=True)
    ]


class Found(NamedTuple):
    """The best entities of one query, best first, and their scores."""

    entity: Ids
    score: npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Wanted:
    """One query, how many answers, which entities may be answers (None for all) and which may not."""

    side: Side
    given: int
    relation: int
    k: int
    among: Ids | None = None
    without: Ids = field(default_factory=lambda: NOBODY)


class Searcher(Protocol):
    """Finds the best entities of several queries at once."""

    def search(self, wanted: Sequence[Wanted], check: Check = lambda: None) -> list[Found]:
        """Return the answers of each query; fewer than k where there are no more candidates."""

    def describe(self) -> dict[str, object]:
        """Return what kind of search this is, for people who ask the service about itself."""


class ExactSearch:
    """Scores every candidate; queries of one side that wait together share a pass over the entities."""

    def __init__(self, model: Model, block_elements: int = BLOCK_ELEMENTS) -> None:
        self.model = model
        self._block = block_elements

    def describe(self) -> dict[str, object]:
        """Return that the search is exact."""
        return {"kind": "exact", "recall": 1.0}

    def search(self, wanted: Sequence[Wanted], check: Check = lambda: None) -> list[Found]:
        """Return the answers of each query."""
        found: dict[int, Found] = {}
        together: dict[Side, list[int]] = {side: [] for side in SIDES}
        for place, one in enumerate(wanted):
            if one.among is not None and len(one.among) * SMALL_SHARE < self.model.n_entities:
                check()
                found[place] = self.among(one, np.setdiff1d(one.among, one.without))
            else:
                together[one.side].append(place)
        for side, places in together.items():
            step = max(1, self._block // max(self.model.n_entities, 1))
            for start in range(0, len(places), step):
                check()
                block = places[start : start + step]
                found |= zip(block, self._everywhere(side, [wanted[place] for place in block]), strict=True)
        return [found[place] for place in range(len(wanted))]

    def among(self, one: Wanted, candidates: Ids) -> Found:
        """Return the best of some candidates."""
        ends = np.full(len(candidates), one.given), candidates
        head, tail = ends if one.side == "tail" else ends[::-1]
        score = self.model.strength(head, np.full(len(candidates), one.relation), tail)
        at = best(score[None], one.k)[0]
        return Found(candidates[at], score[at])

    def _everywhere(self, side: Side, wanted: Sequence[Wanted]) -> list[Found]:
        given, relation = np.array([(one.given, one.relation) for one in wanted]).T
        scores = np.array(Queries.of(side, given, relation).scores(self.model))
        answers = []
        for one, row in zip(wanted, scores, strict=True):
            if one.among is not None:
                outside = np.ones(len(row), dtype=np.bool_)
                outside[one.among] = False
                row[outside] = -np.inf
            row[one.without] = -np.inf
            at = best(row[None], one.k)[0]
            at = at[np.isfinite(row[at])]
            answers.append(Found(at, row[at]))
        return answers


class Everyone:
    """Finds every entity that may be an answer, in no order, for judges that have no model to ask."""

    def __init__(self, n_entities: int) -> None:
        self._n = n_entities

    def describe(self) -> dict[str, object]:
        """Return that nobody is left out."""
        return {"kind": "exact", "recall": 1.0}

    def search(self, wanted: Sequence[Wanted], check: Check = lambda: None) -> list[Found]:
        """Return all candidates of each query."""
        check()
        found = [np.setdiff1d(np.arange(self._n) if one.among is None else one.among, one.without) for one in wanted]
        return [Found(each, np.zeros(len(each), dtype=np.float32)) for each in found]


def _number(value: float) -> float | None:
    return None if np.isnan(value) else value
