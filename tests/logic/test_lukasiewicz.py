"""Equations 6–10, on the paper's own numbers and on all three kinds of values."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ukge.logic.lukasiewicz import conjunction, disjunction, distance_to_satisfaction, implication, negation

truths = st.floats(0, 1, allow_nan=False)


def test_the_papers_examples() -> None:
    assert conjunction(0.8, 0.3) == pytest.approx(0.1)
    assert disjunction(0.8, 0.3) == 1.0
    assert negation(0.3) == pytest.approx(0.7)


def test_the_papers_ground_rule_is_satisfied_from_085_upwards() -> None:
    body = conjunction(0.99, 0.86)
    assert body == pytest.approx(0.85)
    assert distance_to_satisfaction(body, 0.85) == pytest.approx(0.0)
    assert distance_to_satisfaction(body, 0.2) == pytest.approx(0.65)
    assert implication(body, 0.9) == 1.0
    assert implication(body, 0.2) == pytest.approx(0.35)


def test_whole_numbers_are_truth_values_too() -> None:
    assert conjunction(1, 0) == 0
    assert disjunction(1, 1) == 1


@given(truths, truths, truths)
@settings(deadline=None, max_examples=60)
def test_laws(a: float, b: float, c: float) -> None:
    assert conjunction(a, b, c) == pytest.approx(conjunction(conjunction(a, b), c))
    assert disjunction(a, b, c) == pytest.approx(disjunction(a, disjunction(b, c)))
    assert negation(conjunction(a, b)) == pytest.approx(disjunction(negation(a), negation(b)))
    assert implication(a, b) == pytest.approx(disjunction(negation(a), b))
    assert distance_to_satisfaction(a, b) == pytest.approx(1 - implication(a, b))
    assert 0 <= conjunction(a, b) <= min(a, b) + 1e-12


@given(st.lists(st.tuples(truths, truths), min_size=1, max_size=8))
@settings(deadline=None, max_examples=40)
def test_arrays_and_tensors_agree_with_numbers(pairs: list[tuple[float, float]]) -> None:
    left, right = np.array(pairs).T
    for operator in (conjunction, disjunction, implication, distance_to_satisfaction):
        one_by_one = [operator(a, b) for a, b in pairs]
        assert np.allclose(operator(left, right), one_by_one)
        assert np.allclose(operator(torch.tensor(left), torch.tensor(right)).numpy(), one_by_one)


def test_gradients_flow_where_the_rule_is_violated() -> None:
    head = torch.tensor([0.2, 0.95], dtype=torch.float64, requires_grad=True)
    distance_to_satisfaction(0.85, head).square().sum().backward()
    assert head.grad is not None
    assert head.grad.tolist() == pytest.approx([-2 * 0.65, 0.0])


def test_torch_is_not_imported() -> None:
    code = "import sys, ukge.logic.lukasiewicz, ukge.logic.syntax; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
