"""nDCG against scikit-learn, and ranking tasks against brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import rankdata
from sklearn.metrics import ndcg_score
from tests.evaluation.table_predictor import TablePredictor

from ukge.evaluation.evaluate import prepare
from ukge.evaluation.ranking import ndcg, per_query_ndcg
from ukge.evaluation.tasks import RankingTask
from ukge.graph.dataset import Dataset
from ukge.graph.index import FactIndex
from ukge.graph.queries import Queries
from ukge.graph.uncertain import UncertainGraph


def test_ndcg_is_scikit_learns_where_nothing_ties() -> None:
    rng = np.random.default_rng(0)
    queries, entities = 30, 40
    scores = np.stack([rng.permutation(entities) for _ in range(queries)]).astype(np.float64)
    gains = np.where(rng.random((queries, entities)) < 0.2, rng.random((queries, entities)), 0.0)
    gains[:, 0] = 0.5  # every query has a gain
    ranks = np.stack([rankdata(-row) for row in scores])
    query, tail = np.nonzero(gains)
    found = ndcg(ranks[query, tail], gains[query, tail], query)
    assert found.linear == pytest.approx(ndcg_score(gains, scores))
    assert found.exponential == pytest.approx(ndcg_score(np.exp2(gains) - 1, scores))
    assert found.queries == queries
    for q, value in enumerate(per_query_ndcg(ranks[query, tail], gains[query, tail], query)):
        assert value == pytest.approx(ndcg_score(gains[[q]], scores[[q]]))


def test_tied_tails_share_the_mean_of_their_ranks() -> None:
    # Both tails tie at ranks 1 and 2, so both stand at 1.5, whatever their gains.
    found = ndcg(np.array([1.5, 1.5]), np.array([1.0, 0.2]), np.array([0, 0]))
    assert found.linear == pytest.approx((1.2 / np.log2(2.5)) / (1.0 + 0.2 / np.log2(3)))


def brute_force(dataset: Dataset, predictor: TablePredictor, *, excluding_train: bool) -> float:
    gains: dict[tuple[int, int], dict[int, list[float]]] = {}
    trained = {(h, r, t) for h, r, t in zip(*_ids(dataset.train), strict=True)}
    for part in dataset.parts.values():
        for (h, r, t), s in zip(zip(*_ids(part), strict=True), part.confidence.tolist(), strict=True):
            if not (excluding_train and (h, r, t) in trained):
                gains.setdefault((h, r), {}).setdefault(t, []).append(s)
    values = []
    for h, r in sorted(set(zip(dataset.test.head.tolist(), dataset.test.relation.tolist(), strict=True))):
        candidates = [e for e in range(predictor.n_entities) if not (excluding_train and (h, r, e) in trained)]
        ranks = dict(zip(candidates, rankdata(-predictor.table[r, h][candidates]), strict=True))
        own = {t: float(np.mean(each)) for t, each in gains.get((h, r), {}).items()}
        ideal = sum(s / np.log2(2 + i) for i, s in enumerate(sorted(own.values(), reverse=True)))
        if ideal > 0:
            values.append(sum(s / np.log2(1 + ranks[t]) for t, s in own.items()) / ideal)
    return float(np.mean(values))


def _ids(graph: UncertainGraph) -> tuple[list[int], list[int], list[int]]:
    return graph.head.tolist(), graph.relation.tolist(), graph.tail.tolist()


@pytest.mark.parametrize(("protocol", "excluding"), [("paper", False), ("split", True)])
def test_ranking_agrees_with_brute_force(
    protocol: str, excluding: bool, dataset: Dataset, predictor: TablePredictor
) -> None:
    task = next(task for task in prepare(dataset, protocol).tasks if isinstance(task, RankingTask))
    sizes, values = task.by_query(predictor)
    assert float(values.mean()) == pytest.approx(brute_force(dataset, predictor, excluding_train=excluding))
    assert len(sizes) == len(values)
    assert sizes.sum() <= len(task.gains.entity)


def test_a_repeated_fact_gains_the_mean_of_its_confidences() -> None:
    facts = UncertainGraph.from_facts([("a", "r", "b", 0.2), ("a", "r", "c", 0.5), ("a", "r", "b", 0.8)])
    answers = FactIndex(facts).answers(Queries("tail", np.array([0]), np.array([0])))
    by_name = {facts.entities[e]: s for e, s in zip(answers.entity.tolist(), answers.confidence.tolist(), strict=True)}
    assert by_name == {"b": pytest.approx(0.5), "c": pytest.approx(0.5)}
    heads = FactIndex(facts).answers(Queries("head", facts.tail[:1], facts.relation[:1]))
    assert (heads.entity.tolist(), heads.confidence.tolist()) == ([facts.head[0]], [pytest.approx(0.5)])


def test_a_query_without_answers_has_none() -> None:
    facts = UncertainGraph.from_facts([("a", "r", "b", 0.2), ("b", "q", "a", 0.5)])
    answers = FactIndex(facts).answers(Queries("tail", facts.tail[:1], facts.relation[:1]))
    assert answers.offsets.tolist() == [0, 0]
