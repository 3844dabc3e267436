"""Facts in every shape people have them, and answers in the same shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pytest

from ukge.errors import DataError, KindError, UkgeWarning
from ukge.graph.given import as_graph, judged, known_ids
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Ids

GRAPH = UncertainGraph.from_facts([("a", "r", "b", 0.5), ("b", "r", "c", 0.25), ("c", "s", "a", 1.0)])
TRIPLES = [("a", "r", "b"), ("b", "r", "c"), ("c", "s", "a")]
FRAME = pd.DataFrame(TRIPLES, columns=["head", "relation", "tail"], index=[7, 3, 5])
IDS = ([0, 1, 2], [0, 0, 1], [1, 2, 0])


def ids_of(facts: Any) -> tuple[list[int], ...]:
    return tuple(column.tolist() for column in known_ids(facts, GRAPH.entities, GRAPH.relations, "predict"))


def say(facts: Any) -> Any:
    """Judge a fact by its ids, so that every answer tells which fact it belongs to."""

    def judge(head: Ids, relation: Ids, tail: Ids) -> npt.NDArray[np.float64]:
        return np.asarray(head + 10.0 * relation + 100.0 * tail)

    return judged(facts, GRAPH.entities, GRAPH.relations, judge, "predict")


@pytest.mark.parametrize(
    "facts",
    [
        GRAPH,
        UncertainGraph.from_facts(list(GRAPH)),  # equal names, other vocabularies
        GRAPH[::-1].compact()[::-1],  # other ids
        TRIPLES,
        list(GRAPH),
        [list(fact) for fact in TRIPLES],
        (fact for fact in TRIPLES),
        np.array(TRIPLES),
        np.array(TRIPLES, dtype=object),
        FRAME,
        FRAME.rename(columns={"head": "subject", "relation": "predicate", "tail": "object"}),
        FRAME.set_axis(["x", "y", "z"], axis=1),  # by position
        FRAME[["tail", "relation", "head"]].assign(other=1),  # by name
        FRAME.astype("category"),
        pa.Table.from_pandas(FRAME),
    ],
)
def test_facts_in_every_shape_have_the_same_ids(facts: Any) -> None:
    assert ids_of(facts) == IDS


def test_a_tuple_of_three_names_is_one_fact() -> None:
    """It was taken for three facts of letters, or failed where a name was shorter."""
    assert ids_of(("b", "r", "c")) == ([1], [0], [2])
    for one in (("b", "r", "c"), ("b", "r", "c", 0.5), GRAPH[1]):
        answer = say(one)
        assert type(answer) is float
        assert answer == 201.0
    assert say([("b", "r", "c")]).tolist() == [201.0]
    assert say([]).tolist() == []


def test_whole_numbers_are_names_in_tuples_as_in_frames() -> None:
    graph = UncertainGraph.from_facts([(1, "r", 2, 0.5), (2, "r", 30, 0.5)])
    assert list(graph.entities) == ["1", "2", "30"]
    assert known_ids((30, "r", 1), graph.entities, graph.relations, "predict")[0].tolist() == [2]
    with pytest.raises(DataError, match="names in column head must be text"):
        UncertainGraph.from_facts([(1, "r", 2, 0.5), ("2", "r", 30, 0.5)])


@pytest.mark.parametrize(
    ("facts", "kind"),
    [
        ({"head": "a"}, "a dict"),
        (5, "an int"),
        ("facts.tsv", "a str"),
        (FRAME["head"], "a Series"),
        (None, "a NoneType"),
    ],
)
def test_a_type_that_is_not_taken_is_named(facts: Any, kind: str) -> None:
    with pytest.raises(KindError, match=rf"predict takes a pandas frame, .* or a list of such tuples, not {kind}$"):
        say(facts)
    assert issubclass(KindError, TypeError)


@pytest.mark.parametrize("facts", [["a", "r", "b"], [("a", "r")], [("a", "r", "b"), 5], ("a", "r")])
def test_rows_that_are_no_facts_are_shown(facts: Any) -> None:
    with pytest.raises(DataError, match="wrong number of parts") as caught:
        say(facts)
    assert "One fact is a tuple (head, relation, tail), several are a list of such tuples" in str(caught.value)


def test_a_frame_comes_back_with_its_columns_and_index() -> None:
    frame = FRAME.assign(note=["x", "y", "z"])
    answered = say(frame)
    assert list(answered.columns) == ["head", "relation", "tail", "note", "confidence"]
    assert answered.index.tolist() == [7, 3, 5]
    assert answered["confidence"].tolist() == [100.0, 201.0, 12.0]
    assert list(frame.columns) == ["head", "relation", "tail", "note"]  # the given one is as it was


def test_a_given_confidence_is_kept() -> None:
    frame = FRAME.assign(confidence=[0.1, 0.2, 0.3])
    once = say(frame)
    assert once["given"].tolist() == [0.1, 0.2, 0.3]
    assert once["confidence"].tolist() == [100.0, 201.0, 12.0]
    pd.testing.assert_frame_equal(say(once), once)  # a cell that runs twice loses nothing
    assert "given" not in say(frame.rename(columns={"confidence": "score"}))


def test_unknown_names_of_a_frame_are_nan_and_told() -> None:
    frame = FRAME.copy()
    frame.loc[3, "head"] = "zebra"
    frame.loc[5, ["relation", "tail"]] = ["owns", None]
    with pytest.warns(UkgeWarning, match=r"^2 of 3 facts have names that were never seen: .*column 'unknown'"):
        answered = say(frame)
    np.testing.assert_array_equal(answered["confidence"], [100.0, np.nan, np.nan])
    assert [None if pd.isna(each) else each for each in answered["unknown"]] == [
        None,
        "head 'zebra'",
        "relation 'owns', tail is missing",
    ]
    again = say(answered.assign(head="a", relation="r", tail="b"))
    assert again["unknown"].isna().all()


def test_an_arrow_table_comes_back_as_one() -> None:
    table = pa.table({"head": ["a", "?"], "relation": ["r", "r"], "tail": ["b", "b"], "confidence": [0.5, 0.6]})
    with pytest.warns(UkgeWarning, match="1 of 2 facts"):
        answered = say(table)
    assert answered.to_pydict() == {
        "head": ["a", "?"],
        "relation": ["r", "r"],
        "tail": ["b", "b"],
        "given": [0.5, 0.6],
        "confidence": pytest.approx([100.0, np.nan], nan_ok=True),
        "unknown": [None, "head '?'"],
    }


def test_unknown_names_elsewhere_are_an_error_with_near_ones() -> None:
    with pytest.raises(DataError, match="unknown entity 'zebra'"):
        say([("a", "r", "b"), ("zebra", "r", "b")])
    with pytest.raises(DataError, match="unknown relation 'owns'"):
        say(("a", "owns", "b"))


@pytest.mark.parametrize("y", [[0.5, 0.25, 1.0], np.array([0.5, 0.25, 1.0]), np.array([[0.5], [0.25], [1.0]])])
@pytest.mark.parametrize("data", [FRAME, FRAME.assign(confidence=0.0), TRIPLES, np.array(TRIPLES), list(GRAPH), GRAPH])
def test_confidences_beside_the_facts(data: Any, y: Any) -> None:
    assert as_graph(data, y, "fit", "") == GRAPH


def test_confidences_of_another_index_stand_in_the_order_of_the_rows() -> None:
    y = pd.Series([0.5, 0.25, 1.0], index=[5, 3, 7])
    assert as_graph(FRAME, y, "fit", "") == GRAPH


@pytest.mark.parametrize("y", [[0.5, 0.25], 0.5, [[0.1, 0.2]] * 3])
def test_confidences_that_do_not_fit_are_told(y: Any) -> None:
    with pytest.raises(DataError, match="3 facts need 3 confidences, but y holds"):
        as_graph(FRAME, y, "fit", "")


def test_confidences_outside_the_bounds_name_their_row() -> None:
    with pytest.raises(DataError, match=r"pandas frame: 1 of 3 facts .*\n  row 1, column confidence: .*1\.5"):
        as_graph(FRAME, [0.5, 1.5, 0.0], "fit", "")


def test_a_graph_from_what_read_takes() -> None:
    nx = pytest.importorskip("networkx")
    graph = nx.DiGraph()
    graph.add_edge("a", "b", relation="r", confidence=0.5)
    for data in (
        graph,
        FRAME[:1].assign(score=0.5),
        [("a", "r", "b", 0.5)],
        pa.table({"h": ["a"], "r": ["r"], "t": ["b"], "w": [0.5]}),
    ):
        assert as_graph(data, None, "fit", "") == GRAPH[:1]
    with pytest.raises(KindError, match="fit takes facts, not a dict"):
        as_graph({}, None, "fit", "facts")
    with pytest.raises(DataError, match=r"a tuple \(head, relation, tail, confidence\)"):
        as_graph(TRIPLES, None, "fit", "")
