"""Scales: hand-computed values, the paper's recipes, composition, text, sources, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ukge.errors import ConfigError, DataError
from ukge.graph.normalise import (
    CONCEPTNET,
    NELL,
    SCALES,
    Chain,
    Clip,
    Log,
    MinMax,
    Rank,
    as_scale,
    normalise,
    parse_scale,
)
from ukge.graph.uncertain import UncertainGraph

weights = st.lists(st.floats(0.01, 1000), max_size=30)


def test_each_scale_by_hand() -> None:
    assert Clip(0.0, 2.0)([-1.0, 1.0, 5.0]).tolist() == [0.0, 1.0, 2.0]
    assert Log()([1.0, np.e]).tolist() == pytest.approx([0.0, 1.0])
    assert MinMax(0.0, 1.0)([2.0, 3.0, 6.0]).tolist() == [0.0, 0.25, 1.0]
    assert MinMax(0.1, 1.0)([0.0, 10.0]).tolist() == pytest.approx([0.1, 1.0])
    assert MinMax(0.0, 1.0, 0.0, 10.0)([5.0, 5.0]).tolist() == [0.5, 0.5]
    assert Rank()([30.0, 10.0, 20.0, 20.0]).tolist() == [0.875, 0.125, 0.5, 0.5]


def test_conceptnet_recipe_gives_the_published_confidences() -> None:
    """The most frequent confidences of CN15k are those of the weights 1, 2, 0.5, and of both ends."""
    found = CONCEPTNET([1.0, 2.0, 0.5, 3.0, 0.1, 22.9, 0.01])
    expected = [0.709293243, 0.892708786, 0.525877701, 1.0, 0.1, 1.0, 0.1]
    assert found.tolist() == pytest.approx(expected, abs=5e-10)


def test_conceptnet_recipe_does_not_depend_on_the_sample() -> None:
    assert CONCEPTNET([1.0])[0] == CONCEPTNET([0.1, 1.0, 3.0])[1]


def test_conceptnet_recipe_explains_the_benchmark(benchmark_data: Path) -> None:
    """Whole weights dominate ConceptNet: the confidences of 1, 2 and 0.5 make up most of CN15k."""
    column = np.loadtxt(benchmark_data / "cn15k" / "train.tsv", usecols=3)
    known = CONCEPTNET([0.5, 1.0, 2.0])
    share = np.isclose(column[:, None], known[None, :], atol=1e-9).any(axis=1).mean()
    assert share > 0.6
    assert (column.min(), column.max()) == (0.1, 1.0)


def test_nell_recipe_uses_the_range_of_the_graph() -> None:
    assert NELL([0.5, 0.75, 1.0]).tolist() == pytest.approx([0.1, 0.55, 1.0])


@settings(deadline=None, max_examples=40)
@given(weights)
def test_composition_is_one_after_another(values: list[float]) -> None:
    values = [*values, 1.0, 2.0]
    by_hand = MinMax(0.1, 1.0)(Log()(Clip(0.05, 100.0)(values)))
    chain = Clip(0.05, 100.0) | Log() | MinMax(0.1, 1.0)
    assert chain(values).tolist() == by_hand.tolist()
    assert parse_scale("clip:0.05,100 log minmax:0.1,1")(values).tolist() == by_hand.tolist()
    assert as_scale(["clip:0.05,100", Log(), "minmax:0.1,1"]) == chain


@settings(deadline=None, max_examples=40)
@given(weights, st.sampled_from(["minmax:0.1,1", "rank:0.1,1", "log minmax", "conceptnet", "quantile"]))
def test_scales_keep_the_order_and_stay_in_bounds(values: list[float], text: str) -> None:
    values = [*values, 1.0, 2.0]
    scaled = parse_scale(text)(values)
    order = np.argsort(values, kind="stable")
    assert (np.diff(scaled[order]) >= 0).all()
    assert scaled.min() >= 0.0
    assert scaled.max() <= 1.0


def test_text_is_read_or_refused() -> None:
    assert parse_scale("minmax") == MinMax()
    assert parse_scale("conceptnet") == CONCEPTNET
    assert parse_scale("clip:0,1 | rank") == Chain((Clip(0.0, 1.0), Rank()))
    assert set(SCALES) >= {"clip", "log", "minmax", "rank", "quantile", "conceptnet", "nell"}
    for text, message in {
        "": "no scale given",
        "minmx:0,1": "Did you mean 'minmax'",
        "clip:a,b": "are not numbers",
        "clip:1": "1 numbers do not fit clip",
        "clip:3,1": "clip needs lo < hi",
        "minmax:1,0": "minmax needs a < b",
        "minmax:0,1,5": "both bounds or none",
        "minmax:0,1,5,5": "minmax needs lo < hi",
        "rank:1,0": "rank needs a < b",
    }.items():
        with pytest.raises(ConfigError, match=message):
            parse_scale(text)


@pytest.mark.parametrize(
    ("text", "values", "message"),
    [
        ("log", [1.0, 0.0, -2.0], r"2 of 3 weights cannot be scaled\n  row 1, .*the logarithm needs a weight above 0"),
        ("minmax", [2.0, 2.0], r"all 2 weights are 2(.|\n)*minmax:0,1,0,2"),
        ("minmax", [2.0, float("inf")], r"row 1, column confidence: weight is infinite"),
        ("rank", [1.0, float("nan")], r"row 1, column confidence: weight is missing or not a number \(found 'nan'\)"),
        ("minmax:0,1,0,10", [5.0, 11.0], r"row 1, .*outside the given bounds \[0, 10\](.|\n)*clip:0,10"),
    ],
)
def test_what_cannot_be_scaled_is_named(text: str, values: list[float], message: str) -> None:
    with pytest.raises(DataError, match=message):
        normalise(values, text)


def test_no_weights_are_no_problem() -> None:
    assert len(parse_scale("clip:0.1,3 log minmax rank")([])) == 0


def test_a_graph_is_normalised_into_a_new_graph() -> None:
    graph = UncertainGraph.from_facts([("a", "r", "b", 0.2), ("b", "r", "c", 0.4), ("c", "r", "d", 0.6)])
    scaled = normalise(graph, "minmax:0.1,1")
    assert scaled.confidence.tolist() == pytest.approx([0.1, 0.55, 1.0])
    assert scaled.keys().tolist() == graph.keys().tolist()
    assert graph.confidence.tolist() == [0.2, 0.4, 0.6]
    with pytest.raises(DataError, match=r"not in \[0, 1\]"):
        normalise(graph, "log")


def test_sources_are_scaled_apart() -> None:
    values = [0.0, 10.0, 1.0, 2.0, 5.0, 6.0]
    source = ["web", "web", "expert", "expert", None, None]
    assert normalise(values, "minmax", per_source=True, source=source).tolist() == [0.0, 1.0, 0.0, 1.0, 0.0, 1.0]
    together = normalise(values, "minmax", source=source)
    assert together.tolist() == pytest.approx([0.0, 1.0, 0.1, 0.2, 0.5, 0.6])
    graph = UncertainGraph.from_facts([("a", "r", "b", 0.2, "x"), ("a", "r", "c", 0.4, "y"), ("a", "r", "d", 0.4, "x")])
    assert normalise(graph, "minmax:0,1,0,0.4", per_source=True).confidence.tolist() == [0.5, 1.0, 1.0]


def test_errors_per_source_name_the_source_and_the_row_of_the_whole() -> None:
    with pytest.raises(DataError, match=r"facts of source 'web': 1 of 2 weights cannot be scaled\n  row 3, "):
        normalise([1.0, 1.0, 2.0, -1.0], "log", per_source=True, source=["a", "a", "web", "web"])
    with pytest.raises(DataError, match="facts without a source: all 1 weights are 1"):
        normalise([1.0], "minmax", per_source=True, source=[None])
    with pytest.raises(DataError, match="do not say where they came from"):
        normalise(UncertainGraph.from_facts([("a", "r", "b", 0.2)]), "minmax", per_source=True)
    with pytest.raises(DataError, match="1 sources do not fit 2 weights"):
        normalise([1.0, 2.0], "minmax", per_source=True, source=["a"])
