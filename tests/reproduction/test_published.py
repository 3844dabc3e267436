"""The published numbers against cells read off the paper by hand."""

from __future__ import annotations

import pytest

from ukge.evaluation.case_study import Tail
from ukge.graph.catalogue import BENCHMARKS
from ukge.reproduction.cells import published
from ukge.reproduction.recipes import PAPER_MODELS

METRICS = ("mse", "mae", "linear", "exponential", "f1", "accuracy")


@pytest.mark.parametrize(
    ("graph", "model", "metric", "value"),
    [
        ("cn15k", "ukge-rect", "mse", 8.61),
        ("cn15k", "ukge-logi", "exponential", 0.788),
        ("cn15k", "complex", "f1", 18.9),
        ("cn15k", "urge", "linear", 0.572),
        ("nl27k", "ukge-n", "mae", 36.67),
        ("nl27k", "transe", "accuracy", 53.4),
        ("nl27k", "ukge-p", "f1", 89.7),
        ("nl27k", "distmult", "exponential", 0.897),
        ("ppi5k", "ukge-logi", "accuracy", 99.5),
        ("ppi5k", "ukge-rect", "mae", 3.79),
        ("ppi5k", "distmult", "linear", 0.894),
        ("nl27k", "beurre", "mse", 2.01),
        ("ppi5k", "beurre", "mse", None),
        ("ppi5k", "transe", "mse", None),
    ],
)
def test_cells(graph: str, model: str, metric: str, value: float | None) -> None:
    assert published().value(graph, model, metric) == value


def test_every_cell_of_the_three_tables_is_there() -> None:
    deterministic = {"transe", "distmult", "complex"}
    for model in PAPER_MODELS:
        for graph in BENCHMARKS:
            known = {name for name in METRICS if published().value(graph, model, name) is not None}
            assert known == set(METRICS) - ({"mse", "mae"} if model in deterministic else set())


def test_statistics_rules_and_cases() -> None:
    found = published()
    assert (found.statistics["nl27k"].relations, found.statistics["nl27k"].deviation) == (404, 0.242)
    ratios = {graph: [rule.hit_ratio for rule in rules] for graph, rules in found.rules.items()}
    assert ratios == {"cn15k": [37.0, 35.6], "nl27k": [42.9], "ppi5k": [80.8]}
    hotel = found.cases["cn15k"][1]
    assert hotel.predicted[0] == Tail("relaxing", 0.858, None)
    assert hotel.predicted[2] == Tail("rest", 0.827, 0.984)
