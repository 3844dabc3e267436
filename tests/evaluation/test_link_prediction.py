"""Link prediction against brute force, against PyKEEN, and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata
from tests.evaluation.table_predictor import TablePredictor

from ukge.evaluation.metric import metrics_of
from ukge.evaluation.ranking import HITS, RankedFacts, link_metrics
from ukge.graph.dataset import Dataset
from ukge.graph.index import FactIndex
from ukge.graph.queries import SIDES, Queries, Side
from ukge.graph.uncertain import UncertainGraph, concat
from ukge.graph.undirected import take_undirected


def ranked(predictor: TablePredictor, facts: UncertainGraph, known: UncertainGraph, side: Side) -> list[np.ndarray]:
    asked = RankedFacts.of(facts, side)
    return list(asked.ranks(predictor, FactIndex(known).answers(asked.queries)))


def brute_force(
    predictor: TablePredictor, facts: UncertainGraph, known: UncertainGraph, side: Side
) -> list[np.ndarray]:
    triples = set(zip(known.head.tolist(), known.relation.tolist(), known.tail.tolist(), strict=True))
    raw, filtered = [], []
    for h, r, t in zip(facts.head.tolist(), facts.relation.tolist(), facts.tail.tolist(), strict=True):
        scores = predictor.table[r, h] if side == "tail" else predictor.table[r, :, t]
        own = t if side == "tail" else h
        raw.append(rankdata(-scores)[own])
        others = [(h, r, e) if side == "tail" else (e, r, t) for e in range(len(scores))]
        left = [e for e in range(len(scores)) if e == own or others[e] not in triples]
        filtered.append(rankdata(-scores[left])[left.index(own)])
    return [np.array(raw), np.array(filtered)]


@pytest.mark.parametrize("side", SIDES)
def test_ranks_agree_with_brute_force(side: Side, dataset: Dataset, predictor: TablePredictor) -> None:
    facts = concat([dataset.test, dataset.test[:5]])  # a repeated fact is ranked twice
    for known in (dataset.whole(), dataset.train, dataset.train[:0]):
        found, expected = ranked(predictor, facts, known, side), brute_force(predictor, facts, known, side)
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_array_equal(found[1], expected[1])


@pytest.mark.parametrize("side", SIDES)
def test_each_query_is_scored_once(side: Side, dataset: Dataset, predictor: TablePredictor) -> None:
    ranked(predictor, dataset.test, dataset.whole(), side)
    given_ids = dataset.test.head if side == "tail" else dataset.test.tail
    assert predictor.asked == len(set(zip(given_ids.tolist(), dataset.test.relation.tolist(), strict=True)))
    assert predictor.asked < len(dataset.test)


def test_memory_is_bounded_and_changes_nothing(
    dataset: Dataset, predictor: TablePredictor, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = ranked(predictor, dataset.test, dataset.whole(), "tail")
    largest = 0
    plain = predictor.tail_scores

    def watched(head: np.ndarray, relation: np.ndarray) -> np.ndarray:
        nonlocal largest
        scores = np.asarray(plain(head, relation))
        largest = max(largest, scores.nbytes)
        return scores

    monkeypatch.setattr("ukge.evaluation.ranking.BLOCK_BYTES", 3 * 4 * predictor.n_entities)
    monkeypatch.setattr(predictor, "tail_scores", watched)
    for found, expected in zip(ranked(predictor, dataset.test, dataset.whole(), "tail"), whole, strict=True):
        np.testing.assert_array_equal(found, expected)
    assert 0 < largest <= 3 * 4 * predictor.n_entities


def test_what_is_not_a_number_ranks_last(dataset: Dataset, predictor: TablePredictor) -> None:
    predictor.table = np.full_like(predictor.table, np.nan)
    raw, filtered = ranked(predictor, dataset.test, dataset.whole(), "tail")
    assert (raw == predictor.n_entities).all()
    known = np.diff(FactIndex(dataset.whole()).answers(_queries(dataset.test)).offsets)
    np.testing.assert_array_equal(filtered, predictor.n_entities - known + 1)


def _queries(facts: UncertainGraph) -> Queries:
    return Queries("tail", facts.head, facts.relation)


def test_metrics_by_hand() -> None:
    # Tail ranks 1 and 4, head ranks 3 and 2; confidences .9 and .1.
    tail, head, confidence = np.array([1.0, 4.0]), np.array([3.0, 2.0]), np.array([0.9, 0.1])
    one = link_metrics(tail, confidence=confidence)
    assert (one.mr, one.mrr, one.hits_1, one.hits_3) == (2.5, 0.625, 0.5, 0.5)
    assert one.wmr == pytest.approx(0.9 * 1 + 0.1 * 4)
    assert one.wmrr == pytest.approx(0.9 + 0.1 / 4)
    assert one.whits_3 == pytest.approx(0.9)
    both = link_metrics(tail, head, confidence=confidence)
    assert both.mr == pytest.approx((1 + 4 + 3 + 2) / 4)
    assert both.mrr == pytest.approx((1 + 1 / 4 + 1 / 3 + 1 / 2) / 4)
    assert both.wmrr == pytest.approx((0.9 * (1 + 1 / 3) / 2) + 0.1 * (1 / 4 + 1 / 2) / 2)
    assert both.hits_3 == pytest.approx(3 / 4)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=30), st.floats(0.05, 1.0))
def test_equal_weights_weigh_nothing(ranks: list[int], weight: float) -> None:
    places = np.array(ranks, dtype=np.float64)
    found = link_metrics(places, confidence=np.full(len(ranks), weight))
    for name in ("mr", "mrr", *(f"hits_{k}" for k in HITS)):
        assert getattr(found, f"w{name}") == pytest.approx(getattr(found, name))


def test_facts_without_confidence_have_no_weighted_metrics() -> None:
    found = link_metrics(np.array([1.0, 2.0]), confidence=np.zeros(2))
    assert found.mr == 1.5
    assert np.isnan(found.wmr)


def test_every_metric_says_which_way_is_better() -> None:
    lower = {
        each.name
        for each in metrics_of(type(link_metrics(np.ones(1), confidence=np.ones(1))))
        if not each.higher_is_better
    }
    assert lower == {"mr", "wmr"}


@pytest.mark.parametrize("filtered", [True, False])
def test_metrics_are_pykeens(filtered: bool, dataset: Dataset, predictor: TablePredictor) -> None:
    pytest.importorskip("pykeen", reason="PyKEEN is not installed: benchmarks/rank_speed.py compares with it too")
    import torch
    from pykeen.evaluation import RankBasedEvaluator  # type: ignore[import-not-found, unused-ignore]
    from pykeen.evaluation.evaluator import (  # type: ignore[import-not-found, unused-ignore]
        create_sparse_positive_filter_,
        filter_scores_,
    )

    evaluator = RankBasedEvaluator(filtered=filtered)
    triples, known = (
        torch.from_numpy(np.stack([g.head, g.relation, g.tail], axis=1).astype(np.int64))
        for g in (dataset.test, dataset.whole())
    )
    rows = torch.arange(len(triples))
    ours = []
    for side, column in (("tail", 2), ("head", 0)):
        facts = dataset.test
        scores = torch.from_numpy(
            predictor.tail_scores(facts.head, facts.relation)
            if side == "tail"
            else predictor.head_scores(facts.relation, facts.tail)
        ).clone()
        true = scores[rows, triples[:, column]][:, None].clone()
        if filtered:
            others, _ = create_sparse_positive_filter_(triples, known, None, filter_col=column)
            scores = filter_scores_(scores, others)
            scores[rows, triples[:, column]] = true[:, 0]
        evaluator.process_scores_(triples, side, scores, true)
        ranks = ranked(predictor, facts, dataset.whole(), side)  # type: ignore[arg-type]
        ours.append(ranks[1] if filtered else ranks[0])
    results = evaluator.finalize()
    for sides, name in ((ours[:1], "tail"), (ours[1:], "head"), (ours, "both")):
        found = link_metrics(*sides, confidence=dataset.test.confidence)
        for field, theirs in (
            ("mr", "mr"),
            ("mrr", "mrr"),
            ("hits_1", "hits@1"),
            ("hits_3", "hits@3"),
            ("hits_10", "hits@10"),
        ):
            assert getattr(found, field) == pytest.approx(results.get_metric(f"{name}.realistic.{theirs}"), rel=1e-6)


def test_known_answers_of_a_relation_without_a_direction_stand_at_either_end() -> None:
    """Near are a–b, b–c and b–d: asked who is near b, a and c are left out for d, although b is a tail of a."""
    facts = [("a", "near", "b", 0.9), ("b", "near", "c", 0.8), ("b", "near", "d", 0.7)]
    whole = take_undirected(UncertainGraph.from_facts(facts), "near")
    test = whole[[2]]
    table = np.zeros((1, 4, 4), dtype=np.float32)
    table[0, 1] = table[0, :, 1] = [0.6, 0.1, 0.5, 0.4]
    for side, expected in (("tail", (3.0, 1.0)), ("head", (1.0, 1.0))):
        found = ranked(TablePredictor(table), test, whole, "tail" if side == "tail" else "head")
        assert tuple(float(each[0]) for each in found) == expected
    gains = FactIndex(whole).answers(Queries.of("tail", 1, 0))
    assert gains.entity.tolist() == [0, 2, 3]
    assert gains.confidence.tolist() == [0.9, 0.8, 0.7]
