"""Repeated triples become one fact: hand-computed values, a plain-Python double, what stays of the repeats."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ukge.errors import ConfigError, DataError
from ukge.graph.aggregate import AGGREGATIONS, aggregate
from ukge.graph.uncertain import UncertainGraph

Row = tuple[str, str, str, float, str | None]

FACTS: list[Row] = [
    ("b", "r", "c", 0.5, "web"),
    ("a", "r", "b", 0.9, "web"),
    ("b", "r", "c", 0.8, "book"),
    ("a", "r", "c", 0.3, None),
    ("b", "r", "c", 0.2, "web"),
    ("a", "r", "c", 0.3, "book"),
]

names = st.sampled_from("abc")
rows = st.lists(
    st.tuples(names, st.sampled_from("rs"), names, st.floats(0, 1), st.none() | st.sampled_from(["web", "book"])),
    min_size=1,
    max_size=25,
)


@pytest.fixture
def graph() -> UncertainGraph:
    return UncertainGraph.from_facts(FACTS)


@pytest.mark.parametrize(
    ("how", "expected"),
    [("mean", [0.5, 0.9, 0.3]), ("max", [0.8, 0.9, 0.3]), ("noisy-or", [0.92, 0.9, 0.51]), ("last", [0.2, 0.9, 0.3])],
)
def test_confidences_by_hand(graph: UncertainGraph, how: str, expected: list[float]) -> None:
    result = aggregate(graph, how)
    assert [fact[:3] for fact in result.graph] == [("b", "r", "c"), ("a", "r", "b"), ("a", "r", "c")]
    assert result.graph.confidence.tolist() == pytest.approx(expected)


def test_repeats_and_spread_stay_available(graph: UncertainGraph) -> None:
    result = aggregate(graph)
    assert result.repeats.tolist() == [3, 1, 2]
    assert result.spread.tolist() == pytest.approx([0.6, 0.0, 0.0])
    assert result.deviation.tolist() == pytest.approx([math.sqrt(0.06), 0.0, 0.0])
    assert result.removed == 3
    assert result.graph.entities is graph.entities


def test_sources_are_kept_or_joined(graph: UncertainGraph) -> None:
    merged = aggregate(graph).graph.source
    assert merged is not None
    assert merged.to_pylist() == ["web; book", "web", "book"]


def test_error_names_the_repeated_triples(graph: UncertainGraph) -> None:
    with pytest.raises(DataError) as error:
        aggregate(graph, "error")
    assert "2 triples occur more than once" in str(error.value)
    assert "row 2: (b, r, c) occurs 3 times, first at row 0" in str(error.value)
    assert "noisy-or" in str(error.value)
    assert aggregate(graph[:2], "error").graph == graph[:2]


def test_unknown_aggregation_lists_the_known(graph: UncertainGraph) -> None:
    with pytest.raises(ConfigError, match="error, last, max, mean, noisy-or"):
        aggregate(graph, "median")


def test_facts_whose_rows_disagree() -> None:
    done = aggregate(UncertainGraph.from_facts([*FACTS, ("a", "r", "b", 0.1, None), ("b", "s", "c", 0.4, None)]))
    assert [fact[:3] for fact in done.graph[done.spread > 0]] == [("b", "r", "c"), ("a", "r", "b")]
    assert [fact[:3] for fact in done.graph[done.spread > 0.7]] == [("a", "r", "b")]


def test_no_facts_are_no_problem() -> None:
    empty = UncertainGraph.from_facts([])
    for how in AGGREGATIONS:
        assert len(aggregate(empty, how).graph) == 0


@settings(deadline=None, max_examples=60)
@given(rows)
def test_agrees_with_a_dictionary(facts: list[Row]) -> None:
    groups: dict[tuple[str, str, str], list[tuple[float, str | None]]] = {}
    for h, r, t, confidence, source in facts:
        groups.setdefault((h, r, t), []).append((confidence, source))
    values = [[confidence for confidence, _ in group] for group in groups.values()]
    graph = UncertainGraph.from_facts(facts)
    doubles = {
        "mean": [sum(group) / len(group) for group in values],
        "max": [max(group) for group in values],
        "noisy-or": [1 - math.prod(1 - value for value in group) for group in values],
        "last": [group[-1] for group in values],
    }
    for how, expected in doubles.items():
        result = aggregate(graph, how)
        assert [fact[:3] for fact in result.graph] == list(groups)
        assert result.graph.confidence.tolist() == pytest.approx(expected)
        assert result.repeats.tolist() == [len(group) for group in values]
        assert result.spread.tolist() == pytest.approx([max(group) - min(group) for group in values])
        assert result.deviation.tolist() == pytest.approx([float(np.std(group)) for group in values], abs=1e-12)
    joined = ["; ".join(dict.fromkeys(s for _, s in group if s is not None)) or None for group in groups.values()]
    merged = aggregate(graph).graph.source
    assert ([None] * len(groups) if merged is None else merged.to_pylist()) == joined


@settings(deadline=None, max_examples=30)
@given(rows, st.sampled_from(["mean", "max", "noisy-or", "last"]))
def test_aggregating_twice_changes_nothing(facts: list[Row], how: str) -> None:
    once = aggregate(UncertainGraph.from_facts(facts), how).graph
    assert aggregate(once, how).graph == once


def test_benchmark_repeats_are_found(benchmark_data: Path) -> None:
    """Known of the data: PPI5k's train part has 230,929 rows of 214,661 distinct triples."""
    columns = np.loadtxt(benchmark_data / "ppi5k" / "train.tsv", usecols=(0, 1, 2))
    head, relation, tail = (column.astype(int).astype(str).tolist() for column in columns.T)
    result = aggregate(UncertainGraph.from_columns(head, relation, tail, np.ones(len(columns))))
    assert (len(result.graph), result.removed) == (214_661, 230_929 - 214_661)
