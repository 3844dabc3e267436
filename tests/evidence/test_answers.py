"""Answers to a query: their order, their bounds, what is known of them."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from ukge.errors import ConfigError
from ukge.evidence import Evidence
from ukge.graph.dataset import Dataset


@pytest.fixture(scope="module")
def query(dataset: Dataset) -> tuple[str, str]:
    """A head and a relation with several known tails of different confidences."""
    found: dict[tuple[str, str], set[float]] = defaultdict(set)
    for fact in dataset.train:
        found[fact.head, fact.relation].add(fact.confidence)
    return max(found, key=lambda each: len(found[each]))


def _stored(dataset: Dataset, head: str, relation: str) -> dict[str, float]:
    values: dict[str, list[float]] = defaultdict(list)
    for fact in dataset.train:
        if (fact.head, fact.relation) == (head, relation):
            values[fact.tail].append(fact.confidence)
    return {tail: sum(each) / len(each) for tail, each in values.items()}


def test_answers_are_in_the_order_of_the_scores(evidence: Evidence, query: tuple[str, str]) -> None:
    head, relation = query
    found = evidence.rank(head, relation, k=evidence.n_entities)
    scores = evidence.tail_scores(np.array([evidence.entities.id(head)]), np.array([evidence.relations.id(relation)]))[
        0
    ]
    own = scores[[evidence.entities.id(each.entity) for each in found]]
    assert len({each.entity for each in found}) == evidence.n_entities
    assert np.all(np.diff(own) <= 0)
    assert found[:3] == evidence.rank(head, relation, k=3)


def test_what_the_graph_stores_is_told_and_orders_the_known(
    evidence: Evidence, dataset: Dataset, query: tuple[str, str]
) -> None:
    known = _stored(dataset, *query)
    found = evidence.rank(*query, k=evidence.n_entities)
    told = {each.entity: each.stored for each in found if each.stored is not None}
    assert told == pytest.approx(known)
    assert len(known) > 2
    order = [known[each.entity] for each in found if each.stored is not None]
    assert order == sorted(order, reverse=True)


def test_only_unseen_answers_keep_their_order(evidence: Evidence, query: tuple[str, str]) -> None:
    every = evidence.rank(*query, k=evidence.n_entities)
    assert evidence.rank(*query, k=7, unseen=True) == [each for each in every if each.stored is None][:7]


def test_bounds_are_those_of_the_facts(evidence: Evidence, query: tuple[str, str]) -> None:
    head, relation = query
    wide, narrow = (evidence.rank(head, relation, k=6, coverage=share) for share in (0.95, 0.5))
    low, high = evidence.interval([(head, relation, each.entity) for each in wide], 0.95)
    np.testing.assert_allclose([each.low for each in wide], low)
    np.testing.assert_allclose([each.high for each in wide], high)
    assert sum(each.high - each.low for each in wide) > sum(each.high - each.low for each in narrow)


def test_heads_are_told_with_their_own_facts(evidence: Evidence, dataset: Dataset) -> None:
    fact = dataset.train[3]
    found = evidence.rank(relation=fact.relation, tail=fact.tail, k=evidence.n_entities)
    assert next(each.stored for each in found if each.entity == fact.head) is not None
    expected = evidence.predict([(each.entity, fact.relation, fact.tail) for each in found[:5]])
    np.testing.assert_allclose([each.confidence for each in found[:5]], expected)


def test_no_answers_cannot_be_asked_for(evidence: Evidence, query: tuple[str, str]) -> None:
    with pytest.raises(ConfigError, match="k is 0"):
        evidence.rank(*query, k=0)
