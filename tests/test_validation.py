"""Metrics that stop training, against brute force."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.stats import rankdata

from ukge.evaluation.confidence import confidence_errors
from ukge.evaluation.ranking import Ranks, ndcg, per_query_ndcg, ranks_of
from ukge.graph.index import FactIndex
from ukge.graph.queries import Answers, AnyIds, Numbers, Queries
from ukge.graph.split import split
from ukge.graph.synthetic import generate
from ukge.graph.uncertain import concat
from ukge.learning.validation import Validation, metrics
from ukge.models.links import links
from ukge.models.model import Model, init
from ukge.models.scorers import scorers


def test_errors_by_hand() -> None:
    errors = confidence_errors(np.array([0.5, 1.0]), np.array([0.7, 0.4]))
    assert errors.mse == pytest.approx((0.04 + 0.36) / 2)
    assert errors.mae == pytest.approx(0.4)


@dataclass
class Table:
    """Scores of every entity, by head."""

    scores: Numbers

    @property
    def n_entities(self) -> int:
        return int(self.scores.shape[1])

    def tail_scores(self, head: AnyIds, relation: AnyIds) -> Numbers:
        return self.scores[head]

    def head_scores(self, relation: AnyIds, tail: AnyIds) -> Numbers:
        raise NotImplementedError


def ranks_in(scores: Numbers, row: AnyIds, entity: AnyIds, known: Answers | None = None) -> Ranks:
    """Return where entities stand in rows of scores; the known ones of a row do not count."""
    queries = Queries.of("tail", np.arange(len(scores)), np.zeros(len(scores), dtype=np.int32))
    return ranks_of(Table(scores), queries, row, entity, known or Answers.none(len(scores))).filtered


def test_ties_get_the_mean_rank() -> None:
    scores = np.array([[3.0, 1.0, 3.0, 2.0, 3.0]], dtype=np.float32)
    ranks = ranks_in(scores, np.zeros(5, np.int64), np.arange(5))
    np.testing.assert_array_equal(ranks, [2.0, 5.0, 2.0, 4.0, 2.0])


def test_ranks_agree_with_scipy() -> None:
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 9, (20, 50)).astype(np.float32)
    row, entity = np.sort(rng.integers(20, size=100)), rng.integers(50, size=100)
    expected = [rankdata(-scores[r])[e] for r, e in zip(row, entity, strict=True)]
    np.testing.assert_array_equal(ranks_in(scores, row, entity), expected)


def test_filtered_ranks_agree_with_leaving_the_others_out() -> None:
    rng = np.random.default_rng(1)
    scores = rng.integers(0, 9, (10, 30)).astype(np.float32)
    row, entity = np.arange(10), rng.integers(30, size=10)
    skips = [np.unique(rng.integers(30, size=6)) for _ in range(10)]
    offsets = np.concatenate([[0], np.cumsum([len(s) for s in skips])])
    known = np.concatenate(skips).astype(np.int32)
    found = ranks_in(scores, row, entity, Answers(offsets, known, np.zeros(len(known))))
    for i in range(10):
        left = np.setdiff1d(np.arange(30), np.setdiff1d(skips[i], [entity[i]]))
        expected = rankdata(-scores[i][left])[np.flatnonzero(left == entity[i])[0]]
        assert found[i] == expected


def test_a_score_that_is_no_number_ranks_last() -> None:
    scores = np.array([[np.nan, 1.0, 2.0]], dtype=np.float32)
    assert ranks_in(scores, np.array([0]), np.array([0]))[0] == 3.0


def test_blocks_of_queries_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    scores = rng.random((40, 25)).astype(np.float32)
    query, entity = np.sort(rng.integers(40, size=80)), rng.integers(25, size=80)
    whole = ranks_in(scores, query, entity)
    monkeypatch.setattr("ukge.evaluation.ranking.BLOCK_BYTES", 25 * 4 * 3)
    np.testing.assert_array_equal(whole, ranks_in(scores, query, entity))


def test_ndcg_by_hand() -> None:
    # One query: gains 1.0 at rank 2 and 0.5 at rank 1. DCG = 0.5/log2(2) + 1/log2(3); ideal = 1/log2(2) + 0.5/log2(3).
    result = ndcg(np.array([2.0, 1.0]), np.array([1.0, 0.5]), np.array([0, 0]))
    third = 1 / np.log2(3)
    assert result.linear == pytest.approx((0.5 + third) / (1 + 0.5 * third))
    half = 2**0.5 - 1
    assert result.exponential == pytest.approx((half + third) / (1 + half * third))


def test_queries_without_gain_do_not_count() -> None:
    assert per_query_ndcg(np.array([1.0, 5.0]), np.array([0.7, 0.0]), np.array([3, 4])).tolist() == [1.0]


@pytest.fixture(scope="module")
def prepared() -> tuple[Validation, Model]:
    parts = split(generate(n_entities=200, n_facts=1500, seed=3).graph, undirected="none", seed=0)
    validation = Validation(parts.train, parts.val, tau=0.5, seed=0)
    weights = init(scorers.get("distmult"), len(parts.entities), len(parts.relations), 8, 0.5, 0)
    return validation, Model(weights, scorers.get("distmult"), links.get("logistic"))


def test_f1_and_accuracy_are_of_a_threshold_learnt_from_training_facts(prepared: tuple[Validation, Model]) -> None:
    validation, model = prepared
    asked = metrics.get("mse")(validation).facts  # type: ignore[attr-defined]
    strong = asked.confidence > validation.tau

    class Knows:
        """Says of training and validation facts what is true, and of strong ones of validation too little."""

        def __init__(self, less: float) -> None:
            self.known = concat([validation.train, validation.val])
            self.values = dict(zip(self.known.keys().tolist(), self.known.confidence.tolist(), strict=True))
            self.val, self.less = set(validation.val.keys().tolist()), less

        def confidence(self, head: AnyIds, relation: AnyIds, tail: AnyIds) -> Numbers:
            n = validation.train.n_entities
            keys = ((relation.astype(np.int64) * n + head) * n + tail).tolist()
            return np.array([self.values.get(key, 0.0) - self.less * (key in self.val) for key in keys])

    for name, nothing in (("f1", 0.0), ("accuracy", 1 - strong.mean())):
        metric = metrics.get(name)(validation)
        assert metric.higher_is_better
        assert metric.measure(Knows(0.0)) == pytest.approx(1.0, abs=0.02)  # type: ignore[arg-type]
        assert metric.measure(Knows(1.0)) == pytest.approx(nothing) == metric.of_a_constant()  # type: ignore[arg-type]
        assert 0.0 <= metric.measure(model) <= 1.0


def test_mrr_agrees_with_brute_force(prepared: tuple[Validation, Model]) -> None:
    validation, model = prepared
    known = {
        (h, r, t)
        for part in (validation.train, validation.val)
        for h, r, t in zip(part.head.tolist(), part.relation.tolist(), part.tail.tolist(), strict=True)
    }
    reciprocal = []
    strong = validation.val[validation.val.confidence > 0.5]
    for h, r, t in zip(strong.head.tolist(), strong.relation.tolist(), strong.tail.tolist(), strict=True):
        tails = model.tail_scores(np.array([h]), np.array([r]))[0]
        left = [e for e in range(model.n_entities) if e == t or (h, r, e) not in known]
        reciprocal.append(1 / rankdata(-tails[left])[left.index(t)])
        heads = model.head_scores(np.array([r]), np.array([t]))[0]
        left = [e for e in range(model.n_entities) if e == h or (e, r, t) not in known]
        reciprocal.append(1 / rankdata(-heads[left])[left.index(h)])
    assert metrics.get("mrr")(validation).measure(model) == pytest.approx(float(np.mean(reciprocal)))


def test_ndcg_agrees_with_brute_force(prepared: tuple[Validation, Model]) -> None:
    validation, model = prepared
    gains: dict[tuple[int, int], dict[int, float]] = {}
    asked = set(zip(validation.val.head.tolist(), validation.val.relation.tolist(), strict=True))
    for part in (validation.train, validation.val):
        rows = zip(part.head.tolist(), part.relation.tolist(), part.tail.tolist(), part.confidence, strict=True)
        for h, r, t, s in rows:
            if (h, r) in asked:
                gains.setdefault((h, r), {})[t] = float(s)
    values = []
    for (h, r), tails in gains.items():
        ranks = rankdata(-model.tail_scores(np.array([h]), np.array([r]))[0])
        reached = sum(s / np.log2(1 + ranks[t]) for t, s in tails.items())
        ideal = sum(s / np.log2(2 + i) for i, s in enumerate(sorted(tails.values(), reverse=True)))
        values.append(reached / ideal)
    assert metrics.get("ndcg")(validation).measure(model) == pytest.approx(float(np.mean(values)))


def test_the_mse_counts_as_many_negative_links_as_facts(prepared: tuple[Validation, Model]) -> None:
    validation, model = prepared
    metric = metrics.get("mse")(validation)
    facts = metric.facts  # type: ignore[attr-defined]
    assert len(facts) == 2 * len(validation.val)
    assert (facts.confidence[len(validation.val) :] == 0).all()
    predicted = model.confidence(facts.head, facts.relation, facts.tail)
    assert metric.measure(model) == pytest.approx(float(np.mean((predicted - facts.confidence) ** 2)))


def test_every_metric_knows_its_direction(prepared: tuple[Validation, Model]) -> None:
    for name in metrics:
        metric = metrics.get(name)(prepared[0])
        better, worse = (0.9, 0.1) if metric.higher_is_better else (0.1, 0.9)
        assert metric.improves(better, worse)
        assert not metric.improves(worse, better)
        assert metric.improves(worse, None)


def test_a_repeated_fact_has_one_gain_in_validation_and_in_evaluation(prepared: tuple[Validation, Model]) -> None:
    """Early stopping took the last confidence of a repeated triple, the reported nDCG its mean."""
    validation, model = prepared
    again = validation.val.with_confidence(1.0 - validation.val.confidence)
    twice = Validation(validation.train, concat([validation.val, again]), tau=0.5, seed=0)
    swapped = Validation(validation.train, concat([again, validation.val]), tau=0.5, seed=0)
    found = metrics.get("ndcg")(twice).measure(model)
    assert found == metrics.get("ndcg")(swapped).measure(model)
    queries = FactIndex(validation.val).queries()
    gains = FactIndex(concat([twice.train, twice.val])).answers(queries)
    ranks = ranks_of(model, queries, gains.query, gains.entity, Answers.none(len(queries))).raw
    assert found == pytest.approx(ndcg(ranks, gains.confidence, gains.query).linear)
