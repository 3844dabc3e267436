"""Answers to a query: their order, their bounds, what is known of them, against judging every entity."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from ukge.asking import Predictor
from ukge.asking.judges import Judged
from ukge.errors import ConfigError
from ukge.graph.dataset import Dataset


@pytest.fixture(scope="module")
def query(dataset: Dataset) -> tuple[str, str]:
    """A head and a relation with several known tails of different confidences."""
    found: dict[tuple[str, str], set[float]] = defaultdict(set)
    for fact in dataset.train:
        found[fact.head, fact.relation].add(fact.confidence)
    return max(found, key=lambda each: len(found[each]))


def stored(dataset: Dataset, head: str, relation: str) -> dict[str, float]:
    values: dict[str, list[float]] = defaultdict(list)
    for fact in dataset.whole():
        if (fact.head, fact.relation) == (head, relation):
            values[fact.tail].append(fact.confidence)
    return {tail: sum(each) / len(each) for tail, each in values.items()}


def everyone(predictor: Predictor, query: tuple[str, str]) -> Judged:
    n = len(predictor.entities)
    head, relation = predictor.entities.id(query[0]), predictor.relations.id(query[1])
    return predictor.judge(np.full(n, head), np.full(n, relation), np.arange(n))


def test_a_list_is_ordered_by_the_number_that_it_shows(predictor: Predictor, query: tuple[str, str]) -> None:
    """It was ordered by one set of trees and showed the numbers of another: 0.97, 0.44, 0.08, 0.29 from the top."""
    n = len(predictor.entities)
    found = predictor.rank(*query, k=n)
    shown = [each.confidence for each in found]
    assert shown == sorted(shown, reverse=True)
    judged = everyone(predictor, query)
    ids = [predictor.entities.id(each.entity) for each in found]
    assert shown == pytest.approx(judged.confidence[ids].tolist())
    assert len(set(ids)) == len(ids) == n
    assert found[:3] == predictor.rank(*query, k=3)


def test_what_any_part_stores_is_told(predictor: Predictor, dataset: Dataset, query: tuple[str, str]) -> None:
    known = stored(dataset, *query)
    found = predictor.rank(*query, k=len(predictor.entities))
    assert {each.entity: each.stored for each in found if each.stored is not None} == pytest.approx(known)


def test_unseen_is_what_no_part_holds(predictor: Predictor, dataset: Dataset) -> None:
    """Validation and test facts were offered as discoveries."""
    held_out = dataset.test[int(np.argmax(dataset.test.confidence))]
    known = stored(dataset, held_out.head, held_out.relation)
    every = predictor.rank(held_out.head, held_out.relation, k=len(predictor.entities))
    unseen = predictor.rank(held_out.head, held_out.relation, k=len(predictor.entities), seen="exclude")
    assert held_out.tail in known
    assert [each.entity for each in unseen] == [each.entity for each in every if each.entity not in known]
    only = predictor.rank(held_out.head, held_out.relation, k=len(predictor.entities), seen="only")
    assert {each.entity for each in only} == set(known)


def test_a_known_answer_is_not_evidence_for_itself(predictor: Predictor, query: tuple[str, str]) -> None:
    known = [each for each in predictor.rank(*query, k=len(predictor.entities)) if each.stored is not None]
    facts = [(*query, each.entity) for each in known]
    assert [each.confidence for each in known] == pytest.approx(predictor.predict(facts).tolist())
    assert (predictor.predict(facts) != predictor.predict(facts, count_itself=True)).any()


def test_bounds_are_those_of_the_facts(predictor: Predictor, query: tuple[str, str]) -> None:
    wide, narrow = (predictor.rank(*query, k=6, coverage=share) for share in (0.95, 0.5))
    low, high = predictor.interval([(*query, each.entity) for each in wide], 0.95)
    assert [each.low for each in wide] == pytest.approx(low.tolist())
    assert [each.high for each in wide] == pytest.approx(high.tolist())
    spans = [sum((each.high or 0.0) - (each.low or 0.0) for each in found) for found in (wide, narrow)]
    assert spans[0] > spans[1]


def test_heads_and_chosen_entities(predictor: Predictor, dataset: Dataset) -> None:
    fact = dataset.train[3]
    found = predictor.rank(relation=fact.relation, tail=fact.tail, k=len(predictor.entities))
    assert next(each.stored for each in found if each.entity == fact.head) is not None
    among = [each.entity for each in found[1:9:2]]
    some = predictor.rank(relation=fact.relation, tail=fact.tail, k=3, among=among)
    assert [each.entity for each in some] == among[:3]
    sure = predictor.rank(relation=fact.relation, tail=fact.tail, k=99, min_confidence=found[4].confidence)
    assert [each.entity for each in sure][:5] == [each.entity for each in found[:5]]


def test_no_answers_cannot_be_asked_for(predictor: Predictor, query: tuple[str, str]) -> None:
    with pytest.raises(ConfigError, match="k is 0"):
        predictor.rank(*query, k=0)
