"""Hinge-loss Markov random fields: find the truth values that violate the ground rules least.

A potential is w · max{0, a·y + c} or w · max{0, a·y + c}²: how far a·y is from implying −c. Their sum is convex, so its
minimum over 0 ≤ y ≤ 1, the MAP state, can be found exactly. The alternating direction method of multipliers gives
every potential its own copy of its variables, for which the minimum has a closed form, and lets the copies agree step
by step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ukge.logic.lukasiewicz import distance_to_satisfaction

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]

BISECTIONS = 50
ADAPTING = 1_000
"""Steps in which the penalty may change; a fixed one after that makes the search come to rest."""


@dataclass(frozen=True, eq=False)
class HingeProgram:
    """Potentials over `n_variables` truth values. Row j: `weight`, `constant`, `squared`, and up to k variables.

    `variables` (m, k) holds the variables' numbers and `coefficients` (m, k) the a; unused places have coefficient 0.
    """

    n_variables: int
    variables: Indices
    coefficients: Floats
    constant: Floats
    weight: Floats
    squared: npt.NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.constant)

    def distances(self, values: Floats) -> Floats:
        """Return each potential's distance to satisfaction (eq. 10) at these truth values."""
        return self.distances_of_copies(values[self.variables] if self.n_variables else np.zeros(self.variables.shape))

    def distances_of_copies(self, values: Floats) -> Floats:
        """Return the distances where every potential has its own copies (m, k) of the truth values."""
        distance: Floats = distance_to_satisfaction((self.coefficients * values).sum(axis=1), -self.constant)
        return distance

    def objective(self, values: Floats) -> float:
        """Return the weighted sum of the distances, squared where the rule says so."""
        distance = self.distances(values)
        return float((self.weight * np.where(self.squared, distance**2, distance)).sum())


@dataclass(frozen=True, eq=False)
class MapState:
    """The most probable truth values, how badly they violate the program, and whether the search came to rest."""

    values: Floats
    objective: float
    steps: int
    converged: bool


def solve(program: HingeProgram, *, tolerance: float = 1e-7, max_steps: int = 20_000, penalty: float = 1.0) -> MapState:
    """Return the MAP state. ADMM rests when copies and values agree to `tolerance` (root mean square).

    Where no potential ties two variables together, each is solved for by itself, by bisection.
    """
    used = program.coefficients != 0.0
    if (used.sum(axis=1) <= 1).all():
        values = _one_by_one(program, used)
        return MapState(values, program.objective(values), BISECTIONS, converged=True)
    a, at = program.coefficients, program.variables
    copies_of = np.bincount(at[used], minlength=program.n_variables).astype(np.float64)
    norm = np.maximum((a * a).sum(axis=1), 1e-12)
    consensus = np.zeros(program.n_variables)
    drift = np.zeros_like(a)
    scale = np.sqrt(used.sum())
    for step in range(1, max_steps + 1):
        local = _local_minimum(program, consensus[at] - drift, norm, penalty)
        sums = np.bincount(at[used], weights=(local + drift)[used], minlength=program.n_variables)
        before, consensus = consensus, np.clip(sums / np.maximum(copies_of, 1.0), 0.0, 1.0)
        apart = np.where(used, local - consensus[at], 0.0)
        drift += apart
        primal = np.linalg.norm(apart) / scale
        dual = penalty * np.linalg.norm(np.sqrt(copies_of) * (consensus - before)) / scale
        if primal < tolerance and dual < tolerance:
            return MapState(consensus, program.objective(consensus), step, converged=True)
        if step % 10 == 0 and step <= ADAPTING:
            penalty, drift = _balanced(penalty, drift, primal, dual)
    return MapState(consensus, program.objective(consensus), max_steps, converged=False)


def _one_by_one(program: HingeProgram, used: npt.NDArray[np.bool_]) -> Floats:
    """Halve the interval of every variable towards where its potentials fall; of equal minima, take the least."""
    row, place = np.nonzero(used)
    at, a = program.variables[row, place], program.coefficients[row, place]
    c, w, squared = program.constant[row], program.weight[row], program.squared[row]
    low, high = np.zeros(program.n_variables), np.ones(program.n_variables)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        distance = a * middle[at] + c
        slope = np.where(distance > 0.0, w * a * np.where(squared, 2.0 * distance, 1.0), 0.0)
        rising = np.bincount(at, weights=slope, minlength=program.n_variables) >= 0.0
        low, high = np.where(rising, low, middle), np.where(rising, middle, high)
    return low


def _local_minimum(program: HingeProgram, target: Floats, norm: Floats, penalty: float) -> Floats:
    """Return argmin_x w · max{0, a·x + c}^p + penalty / 2 · ‖x − target‖², for every potential at once."""
    a, w = program.coefficients, program.weight
    violation = program.distances_of_copies(target)
    # Along −a, a linear hinge moves by w / penalty but never past the point where it is satisfied.
    linear = np.minimum(w / penalty, violation / norm)
    square = 2.0 * w * violation / (penalty + 2.0 * w * norm)
    local: Floats = target - np.where(program.squared, square, linear)[:, None] * a
    return local


def _balanced(penalty: float, drift: Floats, primal: float, dual: float) -> tuple[float, Floats]:
    """Keep both residuals of one size: raise the penalty when the copies disagree, lower it when the values drift."""
    if primal > 10.0 * dual and penalty < 1e4:
        return penalty * 2.0, drift / 2.0
    if dual > 10.0 * primal and penalty > 1e-4:
        return penalty / 2.0, drift * 2.0
    return penalty, drift
