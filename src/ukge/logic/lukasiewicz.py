"""Łukasiewicz logic on soft truth values (eq. 6–10): numbers, NumPy arrays and torch tensors alike.

Every function works element by element, broadcasts, and is differentiable where its arguments are torch tensors that
require a gradient. torch is never imported here: a tensor brings its own operations.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

Truth: TypeAlias = Any
"""Soft truth values in [0, 1]: a number, a NumPy array or a torch tensor; the result is of the same kind."""


def conjunction(first: Truth, *others: Truth) -> Truth:
    """l₁ ∧ l₂ ∧ … = max{0, I(l₁) + I(l₂) + … − (n − 1)} (eq. 6, which is associative)."""
    return _at_least(_sum(first, others) - len(others), 0.0)


def disjunction(first: Truth, *others: Truth) -> Truth:
    """l₁ ∨ l₂ ∨ … = min{1, I(l₁) + I(l₂) + …} (eq. 7)."""
    return _at_most(_sum(first, others), 1.0)


def negation(value: Truth) -> Truth:
    """¬l = 1 − I(l) (eq. 8)."""
    return 1.0 - value


def implication(body: Truth, head: Truth) -> Truth:
    """Truth of a rule body → head: min{1, 1 − I(body) + I(head)} (eq. 9)."""
    return _at_most(1.0 - body + head, 1.0)


def distance_to_satisfaction(body: Truth, head: Truth) -> Truth:
    """How far a rule is from being satisfied: max{0, I(body) − I(head)} (eq. 10)."""
    return _at_least(body - head, 0.0)


def _sum(first: Any, others: tuple[Any, ...]) -> Any:
    total = first
    for value in others:
        total = total + value
    return total


def _at_least(values: Any, low: float) -> Any:
    if hasattr(values, "clamp"):
        return values.clamp(min=low)
    if isinstance(values, np.ndarray):
        return np.maximum(values, low)
    return max(values, type(values)(low))


def _at_most(values: Any, high: float) -> Any:
    if hasattr(values, "clamp"):
        return values.clamp(max=high)
    if isinstance(values, np.ndarray):
        return np.minimum(values, high)
    return min(values, type(values)(high))
