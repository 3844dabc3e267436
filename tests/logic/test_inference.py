"""The MAP state against a general optimiser, hand-computed minima, and the ground program against the definition."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize
from tests.logic.brute_force import ENTITIES, RELATIONS, Triple, graphs, once

from ukge.errors import ConfigError
from ukge.graph.uncertain import UncertainGraph
from ukge.logic.grounding import GroundingSettings
from ukge.logic.hlmrf import HingeProgram, solve
from ukge.logic.inference import infer
from ukge.logic.program import NegativePrior
from ukge.logic.rules import Rule
from ukge.logic.syntax import parse_rule

TRANSITIVE = parse_rule("1.0: synonym(A, B) & synonym(B, C) -> synonym(A, C) ^2")
CHAIN = [("a", "synonym", "b", 0.99), ("b", "synonym", "c", 0.86), ("c", "synonym", "d", 0.95)]


@st.composite
def programs(draw: st.DrawFn) -> HingeProgram:
    n, m = draw(st.integers(1, 6)), draw(st.integers(1, 15))
    variables = draw(arrays(np.int64, (m, 3), elements=st.integers(0, n - 1), unique=False))
    coefficients = draw(arrays(np.float64, (m, 3), elements=st.sampled_from([-1.0, 0.0, 1.0])))
    for row in range(m):
        for place in (1, 2):
            if variables[row, place] in variables[row, :place]:
                coefficients[row, place] = 0.0
    constant = draw(arrays(np.float64, m, elements=st.floats(-1, 1, width=32)))
    weight = draw(arrays(np.float64, m, elements=st.sampled_from([0.1, 0.5, 1.0, 3.0])))
    squared = draw(arrays(np.bool_, m))
    return HingeProgram(n, variables, coefficients, constant, weight, squared)


def by_linear_programme(program: HingeProgram) -> float:
    """Minimise with slack variables for the hinges, which makes the objective smooth, by a general optimiser."""
    n, m = program.n_variables, len(program)
    dense = np.zeros((m, n))
    np.add.at(dense, (np.arange(m)[:, None], program.variables), program.coefficients)

    def cost(z: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
        slack = z[n:]
        return float((program.weight * np.where(program.squared, slack**2, slack)).sum())

    start = np.concatenate([np.full(n, 0.5), np.maximum(dense @ np.full(n, 0.5) + program.constant, 0) + 0.1])
    above = {"type": "ineq", "fun": lambda z: z[n:] - dense @ z[:n] - program.constant}
    bounds = [(0, 1)] * n + [(0, None)] * m
    found = minimize(cost, start, method="SLSQP", bounds=bounds, constraints=[above], options={"maxiter": 500})
    return program.objective(np.clip(found.x[:n], 0, 1))


@given(programs())
@settings(deadline=None, max_examples=40)
def test_no_optimiser_finds_a_lower_objective(program: HingeProgram) -> None:
    state = solve(program)
    assert state.converged
    assert ((state.values >= 0) & (state.values <= 1)).all()
    assert state.objective <= by_linear_programme(program) + 1e-4


@given(programs())
@settings(deadline=None, max_examples=40)
def test_variables_that_nothing_ties_are_solved_for_one_by_one(program: HingeProgram) -> None:
    coefficients = program.coefficients.copy()
    coefficients[:, 1:] = 0.0
    apart = replace(program, coefficients=coefficients)
    # One potential over two variables that can never be violated makes it ADMM's turn.
    tied = HingeProgram(
        program.n_variables + 1,
        np.concatenate([apart.variables, [[0, program.n_variables, 0]]]),
        np.concatenate([coefficients, [[1.0, 1.0, 0.0]]]),
        np.append(program.constant, -5.0),
        np.append(program.weight, 1.0),
        np.append(program.squared, True),
    )
    assert solve(apart).objective <= solve(tied).objective + 1e-9
    assert solve(apart).objective == pytest.approx(solve(tied).objective, abs=1e-4)


def test_minima_by_hand() -> None:
    graph = UncertainGraph.from_facts(CHAIN[:2])
    inferred = infer(graph, [TRANSITIVE], prior=NegativePrior(0.25, squared=True))
    assert [(fact.head, fact.tail) for fact in inferred.graph] == [("a", "c")]
    assert inferred.graph.confidence == pytest.approx([0.85 * 1.0 / 1.25], abs=1e-5)
    linear = parse_rule("1.0: synonym(A, B) & synonym(B, C) -> synonym(A, C)")
    strong = infer(graph, [linear], prior=NegativePrior(0.25, squared=False))
    assert strong.graph.confidence == pytest.approx([0.85], abs=1e-5)
    weak = infer(graph, [linear], prior=NegativePrior(1.5, squared=False))
    assert weak.graph.confidence == pytest.approx([0.0], abs=1e-5)


def test_targets_support_each_other_round_by_round() -> None:
    graph = UncertainGraph.from_facts(CHAIN)
    prior, asked = NegativePrior(0.001), GroundingSettings(strong=0.7)
    once = infer(graph, [TRANSITIVE], prior=prior, settings=asked)
    assert {(fact.head, fact.tail) for fact in once.graph} == {("a", "c"), ("b", "d")}
    twice = infer(graph, [TRANSITIVE], rounds=2, joint=True, prior=prior, settings=asked)
    found = {(fact.head, fact.tail): fact.confidence for fact in twice.graph}
    assert set(found) == {("a", "c"), ("b", "d"), ("a", "d")}
    assert found["a", "d"] == pytest.approx(0.8, abs=3e-3)
    ids = [graph.entities.id(name) for name in "abcd"]
    wanted = np.array([ids[0], ids[3]]), np.array([0, 0]), np.array([ids[3], ids[0]])
    assert twice.confidence(*wanted) == pytest.approx([found["a", "d"], 0.0])


def test_a_negated_head_pushes_down() -> None:
    facts = [("a", "p", "b", 1.0), ("a", "q", "b", 0.9)]
    up, down = parse_rule("1.0: p(A, B) -> r(A, B) ^2"), parse_rule("1.0: q(A, B) -> !r(A, B) ^2")
    graph = UncertainGraph.from_facts([*facts, ("c", "r", "d", 1.0)])
    inferred = infer(graph, [up, down], prior=NegativePrior(0.0))
    assert inferred.graph.confidence == pytest.approx([(1.0 + 0.1) / 2], abs=1e-5)


RULES = [
    parse_rule("2.0: p(A, B) & q(B, C) -> r(A, C) ^2"),
    parse_rule("1.0: r(A, B) -> r(B, A)"),
    parse_rule("0.5: p(A, B) & r(A, B) -> !q(A, B) ^2"),
]


@given(graphs(n_facts=15))
@settings(deadline=None, max_examples=5)
def test_the_ground_program_is_the_sum_of_all_distances(graph: UncertainGraph) -> None:
    every = list(product(ENTITIES[:3], RELATIONS, ENTITIES[:3]))
    head, relation, tail = ([triple[i] for triple in every] for i in range(3))
    targets = UncertainGraph.from_columns(
        head, relation, tail, np.zeros(len(every)), entities=graph.entities, relations=graph.relations
    )
    asked = GroundingSettings(strong=0.0)
    inferred = infer(graph, RULES, targets=targets, joint=True, settings=asked, prior=NegativePrior(0.3))
    truth = {triple: confidence for triple, (confidence, _) in once(graph).items()}
    assert not {(f.head, f.relation, f.tail) for f in inferred.graph} & set(truth)
    fixed = set(truth)
    truth |= {(f.head, f.relation, f.tail): f.confidence for f in inferred.graph}
    total = 0.3 * sum(f.confidence**2 for f in inferred.graph)
    total = total + sum(_violations(rule, truth, fixed) for rule in RULES)
    assert inferred.state.objective == pytest.approx(total, abs=1e-6)


def _violations(rule: Rule, truth: dict[Triple, float], fixed: set[Triple]) -> float:
    total = 0.0
    for entities in product(ENTITIES, repeat=len(rule.variables)):
        if len(set(entities)) < len(entities):
            continue
        names = dict(zip(rule.variables, entities, strict=True))
        atoms = [(names[a.subject], a.relation, names[a.object]) for a in (*rule.body, rule.head)]
        if not all(atom in truth for atom in atoms) or all(atom in fixed for atom in atoms):
            continue
        body = max(0.0, sum(truth[atom] for atom in atoms[:-1]) - (len(atoms) - 2))
        head = 1.0 - truth[atoms[-1]] if rule.negated else truth[atoms[-1]]
        distance = max(0.0, body - head)
        total += rule.weight * (distance**2 if rule.squared else distance)
    return total


def test_nothing_to_infer() -> None:
    graph = UncertainGraph.from_facts(CHAIN[:1])
    inferred = infer(graph, [TRANSITIVE])
    assert len(inferred.graph) == 0
    assert inferred.confidence(graph.head, graph.relation, graph.tail).tolist() == [0.0]
    with pytest.raises(ConfigError, match="at least 1"):
        infer(graph, [TRANSITIVE], rounds=0)
    with pytest.raises(ConfigError, match="2 rounds need targets in bodies"):
        infer(graph, [TRANSITIVE], rounds=2)
