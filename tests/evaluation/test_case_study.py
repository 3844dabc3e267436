"""The case study: the paper's Table 5."""

from __future__ import annotations

import numpy as np
import pytest
from tests.evaluation.table_predictor import TablePredictor

from ukge.errors import ConfigError, DataError
from ukge.evaluation.case_study import informative_queries, parse_query, study
from ukge.graph.dataset import Dataset
from ukge.graph.uncertain import UncertainGraph, concat
from ukge.graph.vocabulary import Vocabulary

NAMES = ("hotel", "sleeping", "rest", "relaxing", "salt, pepper")


def named(*facts: tuple[str, str, str, float]) -> UncertainGraph:
    entities, relations = Vocabulary(NAMES), Vocabulary(("usedfor", "is, a"), kind="relation")
    columns = list(zip(*facts, strict=True))
    return UncertainGraph.from_columns(*columns, entities=entities, relations=relations)


@pytest.fixture
def hotel() -> Dataset:
    train = named(("hotel", "usedfor", "sleeping", 0.8), ("hotel", "usedfor", "sleeping", 1.0))
    val = named(("rest", "usedfor", "hotel", 0.4))
    test = named(("hotel", "usedfor", "rest", 0.984))
    return Dataset("hotels", train, val, test)


def test_top_tails_with_their_true_confidence(hotel: Dataset) -> None:
    table = np.zeros((2, 5, 5), dtype=np.float32)
    table[0, 0] = [0.1, 0.849, 0.827, 0.858, 0.0]
    (case,) = study(hotel, TablePredictor(table), [(0, 0)], k=3)
    assert (case.head, case.relation, case.known) == ("hotel", "usedfor", 2)
    assert [tail.entity for tail in case.predicted] == ["relaxing", "sleeping", "rest"]
    assert [tail.predicted for tail in case.predicted] == pytest.approx([0.858, 0.849, 0.827])
    assert [tail.observed for tail in case.predicted] == [None, pytest.approx(0.9), 0.984]
    assert [tail.parts for tail in case.predicted] == [(), ("train",), ("test",)]
    assert [tail.entity for tail in case.true] == ["rest", "sleeping"]


@pytest.mark.parametrize("text", ["hotel,usedfor", " hotel , usedfor "])
def test_a_query_is_read(text: str, hotel: Dataset) -> None:
    assert parse_query(text, hotel) == (0, 0)


def test_names_may_hold_commas(hotel: Dataset) -> None:
    assert parse_query("salt, pepper,is, a", hotel) == (4, 1)


def test_wrong_queries_are_told(hotel: Dataset) -> None:
    with pytest.raises(ConfigError, match="is no query"):
        parse_query("hotel", hotel)
    with pytest.raises(DataError, match="unknown entity 'hotels'") as caught:
        parse_query("hotels,usedfor", hotel)
    assert "hotel" in str(caught.value)
    with pytest.raises(DataError, match="unknown relation 'used'"):
        parse_query("hotel,used", hotel)


def test_chosen_queries_have_test_tails_and_differ_in_relation(dataset: Dataset) -> None:
    chosen = informative_queries(dataset, 5)
    assert len(set(chosen)) == len(chosen) == 5
    test = dataset.test
    assert set(chosen) <= set(zip(test.head.tolist(), test.relation.tolist(), strict=True))
    assert len({relation for _, relation in chosen}) == 5
    assert chosen == informative_queries(dataset, 5)


def test_a_small_graph_has_cases_too(hotel: Dataset) -> None:
    assert informative_queries(hotel) == [(0, 0)]
    assert len(concat([hotel.train, hotel.test])) == 3
