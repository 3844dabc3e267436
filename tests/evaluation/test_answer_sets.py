"""Answer sets: least scores and sizes by hand, and the promised coverage wherever facts are exchangeable."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ukge.errors import ConfigError
from ukge.evaluation.answer_sets import FEWEST, AnswerSets, scores_of_answers
from ukge.graph.index import FactIndex
from ukge.graph.queries import AnyIds, Numbers
from ukge.graph.uncertain import UncertainGraph


def of_tails(score: list[float] | np.ndarray, relation: list[int] | np.ndarray | None = None) -> AnswerSets:
    own = np.zeros(len(score), dtype=np.int32) if relation is None else np.asarray(relation, dtype=np.int32)
    return AnswerSets(np.asarray(score, dtype=np.float64), own, np.zeros(len(score), dtype=np.uint8))


def test_the_least_score_of_nineteen() -> None:
    sets, one = of_tails(np.arange(1.0, 20.0)), np.zeros(1, dtype=np.int64)
    # With one more answer, twenty: for 90 % the two lowest may be missed, and the set begins at the 2nd lowest.
    assert sets.least_score("tail", one, 0.9).tolist() == [2.0]
    assert sets.least_score("tail", one, 0.75).tolist() == [5.0]
    assert sets.least_score("tail", one, 0.96).tolist() == [-np.inf]
    assert sets.least_score("head", one, 0.9).tolist() == [-np.inf]
    with pytest.raises(ConfigError):
        sets.least_score("tail", one, 1.0)


def test_a_relation_with_enough_facts_has_its_own() -> None:
    few = FEWEST // 2
    relation = np.repeat([0, 1, 2], [FEWEST, few, few])
    score = np.concatenate([np.arange(FEWEST), 1_000.0 + np.arange(2 * few)])
    least = of_tails(score, relation).least_score("tail", np.arange(4), 0.8, "relation")
    rank = int(0.2 * (FEWEST + 1))
    assert least.tolist() == [rank - 1.0, *[1_000.0 + rank - 1] * 3]


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**31), st.integers(5, 60), st.sampled_from([0.5, 0.8, 0.9]), st.booleans())
def test_sets_reach_the_promised_coverage_on_exchangeable_answers(
    seed: int, n: int, coverage: float, ties: bool
) -> None:
    """Over many draws of n answers and one more, the one more is in its set as often as promised."""
    rng = np.random.default_rng(seed)
    draws, zero = 1_500, np.zeros(1, dtype=np.int64)
    scores = rng.gumbel(size=(draws, n + 1)) + rng.normal(size=(draws, 1))
    if ties:
        scores = np.round(scores)
    held = [row[-1] >= of_tails(row[:-1]).least_score("tail", zero, coverage)[0] for row in scores]
    assert np.mean(held) >= coverage - 4 * np.sqrt(coverage * (1 - coverage) / draws)
    if not ties:
        assert np.mean(held) <= coverage + 1 / (n + 1) + 4 * np.sqrt(coverage * (1 - coverage) / draws)


class ByPlace:
    """Scores entity e by e, whatever is asked."""

    n_entities = 6

    def tail_scores(self, head: AnyIds, relation: AnyIds) -> Numbers:
        return np.tile(np.arange(6.0), (len(head), 1))

    def head_scores(self, relation: AnyIds, tail: AnyIds) -> Numbers:
        return np.tile(np.arange(6.0), (len(tail), 1))


def test_known_answers_are_in_no_set() -> None:
    names = [f"e{at}" for at in range(6)]
    train = UncertainGraph.from_facts(
        [("e0", "r", "e5", 1.0), *((each, "s", other, 0.5) for each, other in pairwise(names))]
    )
    ids = [train.entities.id(name) for name in names]
    r = train.relations.id("r")
    asked = train.with_facts(np.array([ids[0], ids[0]]), np.array([r, r]), np.array([ids[4], ids[5]]), np.ones(2))
    least = np.tile([[2.0, 5.0]], (train.n_relations, 1))
    found = scores_of_answers(ByPlace(), asked, FactIndex(train), "tail", least)
    # (e0, r, e5) is known: it is not asked about, and e5 is in no set of (e0, r, ?).
    assert found.score.tolist() == [float(ids[4])]
    without = [place for place in range(6) if place != ids[5]]
    assert found.size.tolist() == [[sum(each >= limit for each in without) for limit in (2.0, 5.0)]]
