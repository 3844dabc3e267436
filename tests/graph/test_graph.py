"""The uncertain graph itself: slices, equality, fingerprint, immutability, concatenation, keys, error messages."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ukge.errors import DataError
from ukge.graph.keys import contains, pair_keys, triple_keys
from ukge.graph.uncertain import Fact, UncertainGraph, concat
from ukge.graph.vocabulary import Vocabulary

Row = tuple[str, str, str, float]

FACTS: list[Row] = [
    ("college", "synonym", "university", 0.99),
    ("university", "synonym", "institute", 0.86),
    ("fork", "atLocation", "kitchen", 0.4),
    ("college", "synonym", "university", 0.5),
]

names = st.sampled_from(["a", "b", "cc", "ä", "d e", "日本"])
rows = st.lists(st.tuples(names, st.sampled_from(["r", "s"]), names, st.floats(0, 1)), max_size=12)


@pytest.fixture
def graph() -> UncertainGraph:
    return UncertainGraph.from_facts(FACTS)


def test_ids_follow_the_first_occurrence_of_names(graph: UncertainGraph) -> None:
    assert list(graph.entities) == ["college", "university", "fork", "institute", "kitchen"]
    assert list(graph.relations) == ["synonym", "atLocation"]
    assert graph.head.tolist() == [0, 1, 2, 0]
    assert graph.tail.tolist() == [1, 3, 4, 1]
    assert graph.relation.tolist() == [0, 0, 1, 0]


def test_facts_come_back_as_they_went_in(graph: UncertainGraph) -> None:
    assert [tuple(fact)[:4] for fact in graph] == FACTS
    assert graph[2] == Fact("fork", "atLocation", "kitchen", 0.4)
    assert graph[-1] == Fact("college", "synonym", "university", 0.5)
    with pytest.raises(IndexError):
        graph[4]


def test_facts_by_kind(graph: UncertainGraph) -> None:
    assert graph.facts("arrow")["head"].to_pylist() == [row[0] for row in FACTS]
    assert graph.facts("pandas")["confidence"].tolist() == [row[3] for row in FACTS]
    assert graph.facts("numpy").relation.tolist() == [row[1] for row in FACTS]
    assert graph.facts("numpy", names=False).tail.tolist() == [1, 3, 4, 1]
    with pytest.raises(DataError, match="unknown kind of facts 'polars'"):
        graph.facts("polars")  # type: ignore[call-overload]


def test_slices_share_vocabularies_and_select_rows(graph: UncertainGraph) -> None:
    part = graph[1:3]
    assert part.entities is graph.entities
    assert [tuple(fact)[:4] for fact in part] == FACTS[1:3]
    assert [tuple(fact)[:4] for fact in graph[::-1]] == FACTS[::-1]
    assert [tuple(fact)[:4] for fact in graph[np.array([3, 0])]] == [FACTS[3], FACTS[0]]
    assert [tuple(fact)[:4] for fact in graph[graph.confidence > 0.8]] == FACTS[:2]
    assert len(graph[3:1]) == 0
    with pytest.raises(DataError, match="a mask of 2 cannot choose among 4 facts"):
        graph[np.array([True, False])]


@settings(deadline=None, max_examples=40)
@given(rows, st.data())
def test_a_slice_is_the_list_slice(facts: list[Row], data: st.DataObject) -> None:
    graph = UncertainGraph.from_facts(facts)
    cut = data.draw(st.slices(len(facts)))
    assert [tuple(fact)[:4] for fact in graph[cut]] == facts[cut]


@settings(deadline=None, max_examples=60)
@given(rows, st.randoms(use_true_random=False))
def test_equality_and_fingerprint_see_names_not_ids(facts: list[Row], random: object) -> None:
    graph = UncertainGraph.from_facts(facts)
    entities = [*graph.entities, "unused"]
    random.shuffle(entities)  # type: ignore[attr-defined]
    columns = [[row[i] for row in facts] for i in range(4)]
    other = UncertainGraph.from_columns(
        *columns, entities=Vocabulary(entities), relations=Vocabulary(["s", "unused", "r"], kind="relation")
    )
    assert other == graph
    assert other.fingerprint == graph.fingerprint
    assert hash(other) == hash(graph)


@settings(deadline=None, max_examples=60)
@given(rows, rows)
def test_equal_exactly_when_the_facts_are(left: list[Row], right: list[Row]) -> None:
    assert (UncertainGraph.from_facts(left) == UncertainGraph.from_facts(right)) == (left == right)


def test_fingerprint_sees_every_change() -> None:
    base = UncertainGraph.from_facts(FACTS)
    changed = [
        [("College", *FACTS[0][1:]), *FACTS[1:]],
        [(FACTS[0][0], "related", *FACTS[0][2:]), *FACTS[1:]],
        [(*FACTS[0][:3], 0.9900001), *FACTS[1:]],
        FACTS[::-1],
        FACTS[:-1],
    ]
    prints = {base.fingerprint} | {UncertainGraph.from_facts(facts).fingerprint for facts in changed}
    assert len(prints) == len(changed) + 1
    with_source = UncertainGraph.from_facts([(*fact, "web") for fact in FACTS])
    assert with_source != base
    assert len({base, with_source, UncertainGraph.from_facts(FACTS)}) == 2


def test_names_cannot_run_into_each_other() -> None:
    left = UncertainGraph.from_facts([("ab", "r", "c", 1.0)])
    right = UncertainGraph.from_facts([("a", "r", "bc", 1.0)])
    assert left.fingerprint != right.fingerprint


def test_fingerprint_is_the_same_for_chunked_columns_and_slices(graph: UncertainGraph) -> None:
    columns = [[row[i] for row in FACTS] for i in range(4)]
    chunked = [pa.chunked_array([pa.array(column[:1]), pa.array(column[1:])]) for column in columns]
    assert UncertainGraph.from_columns(*chunked) == graph
    assert graph[1:3] == UncertainGraph.from_facts(FACTS[1:3])
    assert graph[1:3].fingerprint == graph[np.array([1, 2])].fingerprint


def test_columns_are_read_only_and_detached(graph: UncertainGraph) -> None:
    for column in (graph.head, graph.relation, graph.tail, graph.confidence):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1
    mine = np.array([0.1, 0.2])
    heads = np.array([0, 1], dtype=np.int32)
    built = UncertainGraph.from_ids(heads, [0, 0], [1, 0], mine, graph.entities, graph.relations)
    mine[:], heads[:] = 1.0, 0
    assert built.confidence.tolist() == [0.1, 0.2]
    assert built.head.tolist() == [0, 1]


def test_with_confidence_leaves_the_old_graph_alone(graph: UncertainGraph) -> None:
    before = graph.fingerprint
    other = graph.with_confidence([1.0, 1.0, 1.0, 1.0])
    assert other.confidence.tolist() == [1.0] * 4
    assert graph.confidence.tolist() == [row[3] for row in FACTS]
    assert graph.fingerprint == before != other.fingerprint
    with pytest.raises(DataError, match="2 confidences do not fit 4 facts"):
        graph.with_confidence([1.0, 1.0])


def test_compact_drops_unused_names_only(graph: UncertainGraph) -> None:
    part = graph[2:3]
    small = part.compact()
    assert small == part
    assert list(small.entities) == ["fork", "kitchen"]
    assert list(small.relations) == ["atLocation"]
    assert (part.n_entities, small.n_entities) == (5, 2)


def test_concat_joins_by_id_and_by_name(graph: UncertainGraph) -> None:
    halves = concat([graph[:2], graph[2:]])
    assert halves == graph
    assert halves.entities is graph.entities
    other = UncertainGraph.from_facts([("institute", "relatedTo", "college", 0.3, "web")])
    both = concat([graph, other])
    assert [tuple(fact)[:4] for fact in both] == [*FACTS, ("institute", "relatedTo", "college", 0.3)]
    assert both.source is not None
    assert both.source.to_pylist() == [None] * 4 + ["web"]
    assert concat([other, graph])[0].source == "web"
    with pytest.raises(DataError, match="nothing to concatenate"):
        concat([])


def test_an_empty_graph_is_a_graph() -> None:
    empty = UncertainGraph.from_facts([])
    assert len(empty) == 0
    assert list(empty) == []
    assert empty == UncertainGraph.from_facts([])
    assert len(empty.keys()) == 0
    assert len(empty.compact()) == 0


def test_errors_name_row_value_and_what_to_do() -> None:
    with pytest.raises(DataError) as error:
        UncertainGraph.from_facts([("a", "r", "b", 0.5), ("a", "r", "c", 1.5), ("a", "r", "d", float("nan"))])
    assert "2 of 3 facts have a confidence that is not in [0, 1]" in str(error.value)
    assert "row 1, column confidence: confidence is outside [0, 1] (found '1.5')" in str(error.value)
    assert "row 2, column confidence: confidence is missing or not a number" in str(error.value)
    assert "Normalise" in str(error.value)
    with pytest.raises(DataError, match=r"row 0, column tail: tail name is empty \(found ' '\)"):
        UncertainGraph.from_facts([("a", "r", " ", 0.5)])
    with pytest.raises(DataError, match="1 facts have the wrong number of parts"):
        UncertainGraph.from_facts([("a", "r", "b")])


def test_ids_outside_the_vocabulary_are_refused(graph: UncertainGraph) -> None:
    with pytest.raises(DataError, match=r"row 1, column head: no such id \(found '5'\)"):
        UncertainGraph.from_ids([0, 5], [0, 0], [1, 1], [0.1, 0.2], graph.entities, graph.relations)
    with pytest.raises(DataError, match="column tail must hold integer ids"):
        UncertainGraph.from_ids([0], [0], [1.5], [0.1], graph.entities, graph.relations)
    with pytest.raises(DataError, match="differ in length"):
        UncertainGraph.from_ids([0], [0, 0], [1], [0.1], graph.entities, graph.relations)


def test_vocabulary_looks_up_and_suggests() -> None:
    vocabulary = Vocabulary(["Tromsø", "Bergen", "Bergamo"])
    assert vocabulary.id("Bergen") == 1
    assert vocabulary.encode(["Bergamo", "Oslo"]).tolist() == [2, -1]
    assert vocabulary.decode([2, 0]).to_pylist() == ["Bergamo", "Tromsø"]
    assert "Bergen" in vocabulary
    with pytest.raises(DataError, match=r"unknown entity 'Bergn'(.|\n)*Bergen"):
        vocabulary.id("Bergn")
    with pytest.raises(DataError, match="'a' occurs twice"):
        Vocabulary(["a", "b", "a"])
    with pytest.raises(DataError, match="1 relation names are missing"):
        Vocabulary(pa.array(["a", None]), kind="relation")


@settings(deadline=None, max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2), st.integers(0, 4)), max_size=30))
def test_keys_are_equal_exactly_where_triples_are(triples: list[tuple[int, int, int]]) -> None:
    h, r, t = (np.array([triple[i] for triple in triples], dtype=np.int32) for i in range(3))
    keys = triple_keys(h, r, t, 5, 3)
    assert len(set(keys.tolist())) == len(set(triples))
    assert [triples[i] for i in np.argsort(keys, kind="stable")] == sorted(triples, key=lambda x: (x[1], x[0], x[2]))
    undirected = pair_keys(h, t, 5)
    assert len(set(undirected.tolist())) == len({frozenset((a, b)) for a, _, b in triples})
    assert len(set(pair_keys(h, t, 5, directed=True).tolist())) == len({(a, b) for a, _, b in triples})
    present = contains(np.sort(keys[::2]), keys)
    assert present.tolist() == [key in set(keys[::2].tolist()) for key in keys.tolist()]


def test_keys_that_do_not_fit_are_refused() -> None:
    one = np.zeros(1, dtype=np.int32)
    with pytest.raises(DataError, match="more than one 64-bit key can hold"):
        triple_keys(one, one, one, 2**31, 10)


def test_vocabularies_cannot_be_replaced() -> None:
    graph = UncertainGraph.from_facts([("a", "r", "b", 0.5)])
    with pytest.raises(AttributeError):
        graph.entities = graph.entities  # type: ignore[misc]


def test_indices_count_from_the_end_and_are_checked() -> None:
    graph = UncertainGraph.from_facts([("a", "r", "b", 0.5), ("b", "r", "c", 0.7)])
    assert graph[[-1, 0]] == graph[[1, 0]]
    assert len(graph[[]]) == 0
    with pytest.raises(DataError, match="there is no fact 2 among 2"):
        graph[[0, 2]]
    with pytest.raises(DataError, match="not by float64"):
        graph[np.array([0.5])]
