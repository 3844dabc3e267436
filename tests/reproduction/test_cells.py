"""Cells, ranks and orders, worked out by hand."""

from __future__ import annotations

import math

import pytest

from ukge.reproduction.cells import F1, LINEAR, MSE, Comparison, Summary, ranks, summary, swapped


def test_a_summary_is_mean_and_sample_deviation() -> None:
    found = summary([0.08, 0.09, 0.10], 100.0)
    assert found is not None
    assert found.mean == pytest.approx(9.0)
    assert found.deviation == pytest.approx(1.0)
    assert found.text(MSE) == "9.00 ± 1.00"


def test_one_value_has_no_deviation_and_none_is_nothing() -> None:
    assert summary([None, 0.9461, math.nan]) == Summary(0.9461, None, 1)
    assert Summary(0.9461, None, 1).text(LINEAR) == "0.946"
    assert summary([None, math.nan]) is None


@pytest.mark.parametrize(
    ("comparison", "first", "second", "reached"),
    [
        (Comparison(MSE, 8.61, Summary(8.504, 0.031, 3)), "8.50 ± 0.03", "8.61 (−0.11)", True),
        (Comparison(MSE, 8.61, Summary(8.64, 0.05, 3)), "8.64 ± 0.05", "8.61 (+0.03)", True),
        (Comparison(MSE, 8.61, Summary(8.70, 0.05, 3)), "8.70 ± 0.05", "8.61 (+0.09)", False),
        (Comparison(MSE, 8.61, Summary(8.614, None, 1)), "8.61", "8.61 (±0.00)", True),
        (Comparison(LINEAR, 0.970, Summary(0.966, 0.001, 3)), "0.966 ± 0.001", "0.970 (−0.004)", False),
        (Comparison(F1, 95.1, Summary(95.3, None, 1)), "95.3", "95.1 (+0.2)", True),
        (Comparison(F1, 95.1, None), "–", "95.1", None),
        (Comparison(F1, None, Summary(95.3, None, 1)), "95.3", "", None),
        (Comparison(F1, None, None), "–", "", None),
    ],
)
def test_cells_print_and_judge(comparison: Comparison, first: str, second: str, reached: bool | None) -> None:
    assert (comparison.first, comparison.second, comparison.reached) == (first, second, reached)


def test_ranks_share_the_mean_where_values_print_the_same() -> None:
    assert ranks({"a": 2.0, "b": 1.004, "c": 1.0, "d": 3.0}, MSE) == {"b": 1.5, "c": 1.5, "a": 3.0, "d": 4.0}
    assert ranks({"a": 0.5, "b": 0.7}, LINEAR) == {"b": 1.0, "a": 2.0}


def test_only_pairs_that_turn_round_count_as_swapped() -> None:
    first = {"a": 1.0, "b": 2.5, "c": 2.5, "d": 4.0}
    second = {"a": 2.0, "b": 1.0, "c": 3.0, "d": 4.0, "e": 5.0}
    assert swapped(first, second) == [("a", "b")]
    assert swapped(first, first) == []
