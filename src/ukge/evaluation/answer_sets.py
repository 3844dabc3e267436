"""Answer sets: all entities that may be the missing one of a query, with a promised coverage.

An entity belongs to the set if its score is as high as the share of scores asks for that the true entities of other
facts had, facts that the ranker did not learn from. One more such fact is as likely to be anywhere among them, so its
entity is in the set with at least the promised chance, whatever the scores mean (split conformal prediction). Known
answers are in no set: they are known.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from ukge.errors import ConfigError
from ukge.evaluation.metric import metric
from ukge.graph.index import FactIndex
from ukge.graph.queries import SIDES, AnyIds, Floats, Queries, Ranker, Side
from ukge.graph.uncertain import UncertainGraph

FEWEST = 30
"""Facts that a relation needs for sets of its own; the others share theirs."""

MOST = 2_000
"""Facts of each side that sets are calibrated on, or judged by, at most."""

QUERIES = 128
"""Queries whose all-entity scores are held at once."""

Within = Literal["all", "relation"]
WITHIN: tuple[Within, Within] = ("all", "relation")


@dataclass(frozen=True, eq=False)
class AnswerSets:
    """The scores that true entities of held-out facts had, with their relations and sides (0 the tail, 1 the head)."""

    score: Floats
    relation: npt.NDArray[np.int32]
    side: npt.NDArray[np.uint8]

    @classmethod
    def fit(cls, ranker: Ranker, facts: UncertainGraph, known: FactIndex, most: int = MOST) -> AnswerSets:
        """Score the entities of facts that the ranker did not learn from, on each side, of some if there are many."""
        found = [scores_of_answers(ranker, facts, known, side, most=most) for side in SIDES]
        score = np.concatenate([each.score for each in found])
        relation = np.concatenate([each.relation for each in found])
        side = np.repeat(np.arange(len(SIDES), dtype=np.uint8), [len(each.score) for each in found])
        return cls(score, relation.astype(np.int32), side)

    def least_score(self, side: Side, relation: AnyIds, coverage: float, within: Within = "all") -> Floats:
        """Return for each query the least score of an entity in its set; −∞ where too few facts are known.

        With `within="relation"` the coverage is kept within each relation that has enough facts, and within all the
        others together.
        """
        if not 0.0 < coverage < 1.0 or within not in WITHIN:
            raise ConfigError(f"no answer set has the coverage {coverage:g} within {within!r}", hint="Try 0.9, all.")
        rows = self.side == SIDES.index(side)
        group, asked = self._group(self.relation[rows], rows, within), self._group(relation, rows, within)
        least = {each: _least(self.score[rows][group == each], coverage) for each in np.unique(asked).tolist()}
        return np.array([least[each] for each in asked.tolist()])

    def _group(self, relation: AnyIds, rows: npt.NDArray[np.bool_], within: Within) -> npt.NDArray[np.int64]:
        if within == "all":
            return np.zeros(len(relation), dtype=np.int64)
        count = np.bincount(self.relation[rows], minlength=int(relation.max(initial=0)) + 1)
        return np.where(count[relation] >= FEWEST, relation.astype(np.int64), -1)


@runtime_checkable
class HasAnswerSets(Protocol):
    """A ranker that brings sets which were calibrated on facts that it did not learn from."""

    @property
    def answer_sets(self) -> AnswerSets | None:
        """The calibrated sets; None if there were too few facts."""


def _least(score: Floats, coverage: float) -> float:
    """Return the ⌊(1 − coverage)(n + 1)⌋-th smallest score: with one more fact, the share still holds."""
    rank = int((1.0 - coverage) * (len(score) + 1) + 1e-9)
    return float(np.partition(score, rank - 1)[rank - 1]) if rank > 0 else -np.inf


@dataclass(frozen=True, eq=False)
class AnswerScores:
    """The score of the true entity of each fact, its relation, and, of the sets asked for, how many entities each has.

    `size[:, s]` is how many entities that are no known answers have at least the s-th least score.
    """

    score: Floats
    relation: AnyIds
    size: Floats


def scores_of_answers(
    ranker: Ranker,
    facts: UncertainGraph,
    known: FactIndex,
    side: Side,
    least: Floats | None = None,
    *,
    most: int = MOST,
) -> AnswerScores:
    """Score the entity of each fact on one side among all; facts that are known, and more than `most`, are left out.

    `least` are least scores of the sets that are counted: a row per relation, a column per set.
    """
    new = np.flatnonzero(~known.known(facts.head, facts.relation, facts.tail))
    rows = np.sort(np.random.default_rng(0).permutation(new)[:most])
    given, answer = (facts.head, facts.tail) if side == "tail" else (facts.tail, facts.head)
    queries = Queries.of(side, given[rows], facts.relation[rows])
    limits = np.zeros((known.n_relations, 0)) if least is None else least
    score, size = np.empty(len(rows)), np.empty((len(rows), limits.shape[1]))
    for block, scores in _scored(ranker, queries, known):
        place = np.arange(len(scores))
        score[block] = scores[place, answer[rows[block]]]
        for number in range(limits.shape[1]):
            limit = limits[queries.relation[block], number]
            size[block, number] = (scores >= limit[:, None]).sum(axis=1)
    return AnswerScores(score, queries.relation, size)


def _scored(ranker: Ranker, queries: Queries, known: FactIndex) -> Iterator[tuple[slice, Floats]]:
    """Yield the scores of every entity, block by block; a known answer is below every set."""
    for begin in range(0, len(queries), QUERIES):
        block = slice(begin, begin + QUERIES)
        scores = np.array(queries[block].scores(ranker), dtype=np.float64)
        answers = known.answers(queries[block])
        scores[answers.query, answers.entity] = np.nan  # no comparison holds
        yield block, scores


@dataclass(frozen=True, slots=True)
class SetScores:
    """Share of held-out answers that are in their sets, and how many entities these have."""

    coverage: float = metric("coverage", "higher")
    size: float = metric("mean size", "lower", digits=1)
    median: float = metric("median size", "lower", digits=0)
    worst: float = metric("worst relation", "higher")
