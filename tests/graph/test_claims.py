"""Claims: what several sources say of the same facts."""

import numpy as np
import pyarrow as pa
import pytest

from ukge import DataError, UncertainGraph
from ukge.graph.claims import UNNAMED, Claims, join

HEAD = ["a", "b", "a", "a"]
TAIL = ["b", "c", "b", "b"]
SURE = [0.9, 0.4, 0.5, 0.1]
WHO = ["x", "y", "y", None]


@pytest.fixture
def claims() -> Claims:
    """Return four claims about two facts, one of which names no source."""
    return Claims.from_columns(HEAD, ["r"] * 4, TAIL, SURE, WHO, document=["p", None, "q", "p"])


def test_facts_are_distinct_and_their_confidence_is_the_mean_of_their_claims(claims: Claims) -> None:
    facts = claims.facts
    assert [fact[:3] for fact in facts] == [("a", "r", "b"), ("b", "r", "c")]
    np.testing.assert_allclose(facts.confidence, [0.5, 0.4])
    assert facts.source is None
    assert claims.fact.tolist() == [0, 1, 0, 0]
    assert claims.counts.tolist() == [3, 1]
    assert claims.sources.decode(claims.source).to_pylist() == ["x", "y", "y", UNNAMED]


def test_the_table_gives_back_what_was_given(claims: Claims) -> None:
    table = claims.table()
    assert table.column_names == ["head", "relation", "tail", "confidence", "source", "document"]
    assert table["head"].to_pylist() == HEAD
    assert table["tail"].to_pylist() == TAIL
    assert table["confidence"].to_pylist() == SURE
    assert table["document"].to_pylist() == ["p", None, "q", "p"]


def test_a_slice_keeps_the_facts_that_its_claims_speak_of(claims: Claims) -> None:
    some = claims[np.array([False, False, True, True])]
    assert len(some) == 2
    assert [tuple(fact) for fact in some.facts] == [("a", "r", "b", 0.3, None)]
    assert some.sources == claims.sources
    assert some.document is not None
    assert some.document.to_pylist() == ["q", "p"]
    assert len(claims[:0]) == 0
    assert claims[::-1].table()["confidence"].to_pylist() == SURE[::-1]


def test_a_graph_without_sources_is_the_claims_of_one() -> None:
    claims = Claims.of_graph(UncertainGraph.from_facts([("a", "r", "b", 0.5), ("a", "r", "b", 0.7)]))
    assert list(claims.sources) == [UNNAMED]
    assert len(claims.facts) == 1


def test_joined_claims_meet_in_their_facts(claims: Claims) -> None:
    more = Claims.from_columns(["b", "z"], ["r", "r"], ["c", "a"], [1.0, 0.2], ["x", "w"])
    both = join([claims, more])
    assert len(both) == 6
    assert both.facts.confidence.tolist() == pytest.approx([0.5, 0.7, 0.2])
    assert both.document is not None
    assert both.document.to_pylist() == ["p", None, "q", "p", None, None]
    assert both.table()["source"].to_pylist() == ["x", "y", "y", UNNAMED, "x", "w"]


def test_a_mirror_of_an_undirected_fact_is_the_same_fact() -> None:
    graph = UncertainGraph.from_ids(
        [0, 0],
        [0, 0],
        [1, 1],
        [0.2, 0.4],
        UncertainGraph.from_facts([("a", "r", "b", 1.0)]).entities,
        UncertainGraph.from_facts([("a", "r", "b", 1.0)]).relations,
        source=pa.array(["x", "y"]),
    ).taken_as_undirected(["r"])
    claims = Claims.of_graph(graph)
    assert claims.facts.undirected == ("r",)
    assert claims[1:].facts.undirected == ("r",)


def test_columns_that_do_not_fit_are_refused() -> None:
    with pytest.raises(DataError, match="2 values of time do not fit 1 claims"):
        Claims.from_columns(["a"], ["r"], ["b"], [0.5], ["x"], time=[1, 2])
    with pytest.raises(DataError, match="no column 'page'"):
        Claims.from_columns(["a"], ["r"], ["b"], [0.5], ["x"], page=[1])
