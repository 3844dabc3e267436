"""The ground program: observed facts, unseen facts to be inferred (targets), and the rules between them as hinges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pyarrow as pa

from ukge.graph.aggregate import aggregate
from ukge.graph.index import FactIndex
from ukge.graph.uncertain import UncertainGraph, concat
from ukge.logic.engine import Engine
from ukge.logic.facts import distinct_facts, fact_tables
from ukge.logic.ground_rules import Grounding
from ukge.logic.grounding import FACTS, GroundingSettings, ground_on
from ukge.logic.hlmrf import Floats, HingeProgram, Indices
from ukge.logic.rules import Rule

NEGLIGIBLE = 1e-12
"""A ground rule whose distance to satisfaction cannot get beyond this is satisfied whatever the targets are."""


@dataclass(frozen=True, eq=False)
class GroundProgram:
    """`targets` are the variables of `hinges`, in order; with the observed facts they are all atoms there are.

    `grounded` tells how the ground rules came about. Those that can never be violated are no part of `hinges`.
    """

    targets: UncertainGraph
    hinges: HingeProgram
    grounded: Grounding


@dataclass(frozen=True, slots=True)
class NegativePrior:
    """γ₀: ¬l for every target (eq. 11 and 12), which keeps what no rule supports near 0."""

    weight: float = 0.1
    squared: bool = True


def ground_program(
    engine: Engine,
    graph: UncertainGraph,
    rules: Sequence[Rule],
    targets: UncertainGraph,
    settings: GroundingSettings,
    prior: NegativePrior,
    *,
    joint: bool,
) -> GroundProgram:
    """Ground rules over observed facts and targets; with `joint`, a body may hold targets too, as PSL has it.

    A head that is neither observed nor a target is no atom, and its ground rules are left out. Targets that are
    observed are no variables.
    """
    unseen = targets[~np.isin(targets.keys(), graph.keys())]
    variables = aggregate(unseen).graph
    # As part of a body a target may turn out to be true, so it is grounded as if it were.
    atoms = concat([graph, variables.with_confidence(np.ones(len(variables)))])
    asked = replace(settings, unseen_only=not joint, best_only=settings.best_only and not joint)
    with fact_tables(engine, atoms if joint else graph, settings.strong) as tables:
        grounded = ground_on(engine, tables, atoms, rules, asked)
    hinges = _joined(_rule_hinges(grounded, atoms, len(graph)), _prior_hinges(len(variables), prior))
    return GroundProgram(variables, hinges, grounded)


def _rule_hinges(grounded: Grounding, atoms: UncertainGraph, n_observed: int) -> HingeProgram:
    """Write body − head (for a negated head: body + head − 1) as a·y + c over the targets y."""
    table = grounded.read()
    number = table["rule"].to_numpy()
    weight, squared, negated = (
        np.array([getattr(rule, name) for rule in grounded.rules], dtype=kind)[number]
        for name, kind in (("weight", np.float64), ("squared", np.bool_), ("negated", np.bool_))
    )
    body = np.stack([table[name].fill_null(-1).to_numpy() for name in FACTS], axis=1)
    facts = distinct_facts(atoms)
    head = _rows_of(table, facts, atoms)
    places = np.concatenate([body, head[:, None]], axis=1)
    signs = np.ones(places.shape)
    signs[:, -1] = np.where(negated, 1.0, -1.0)
    known = (places >= 0) & (places < n_observed)
    confidence = np.zeros(len(atoms))
    confidence[facts["row"].to_numpy()] = facts["c"].to_numpy()
    values = np.where(known, confidence[np.maximum(places, 0)], 0.0)
    constant = (signs * values).sum(axis=1) - ((body >= 0).sum(axis=1) - 1) - negated
    variables, coefficients = _merged(np.where(places >= n_observed, places - n_observed, -1), signs)
    reachable = constant + np.maximum(coefficients, 0.0).sum(axis=1)
    kept = (head >= 0) & (reachable > NEGLIGIBLE) & (coefficients != 0.0).any(axis=1)
    n_targets = len(atoms) - n_observed
    return HingeProgram(n_targets, variables[kept], coefficients[kept], constant[kept], weight[kept], squared[kept])


def _prior_hinges(n_targets: int, prior: NegativePrior) -> HingeProgram:
    variables = np.zeros((n_targets, len(FACTS) + 1), dtype=np.int64)
    variables[:, 0] = np.arange(n_targets)
    coefficients = np.zeros(variables.shape)
    coefficients[:, 0] = 1.0
    weight, squared = np.full(n_targets, prior.weight), np.full(n_targets, prior.squared)
    return HingeProgram(n_targets, variables, coefficients, np.zeros(n_targets), weight, squared)


def _joined(one: HingeProgram, other: HingeProgram) -> HingeProgram:
    columns = ("variables", "coefficients", "constant", "weight", "squared")
    both = (np.concatenate([getattr(one, name), getattr(other, name)]) for name in columns)
    return HingeProgram(one.n_variables, *both)


def _rows_of(table: pa.Table, facts: pa.Table, atoms: UncertainGraph) -> Indices:
    """Return the row of each ground rule's head among the atoms, −1 where it is none; `facts` are the distinct ones."""
    rows = facts["row"].to_numpy()
    head, relation, tail = (table[name].to_numpy() for name in ("head", "relation", "tail"))
    index = FactIndex(atoms[rows])
    at = index.find(head, relation, tail)
    found: Indices = np.append(rows[index.triples.first], -1)[at]
    return found


def _merged(variables: Indices, coefficients: Floats) -> tuple[Indices, Floats]:
    """Add up the coefficients of a variable that occurs twice in a row; unused places get coefficient 0."""
    coefficients = np.where(variables >= 0, coefficients, 0.0)
    for one, other in combinations(range(variables.shape[1]), 2):
        same = (variables[:, one] == variables[:, other]) & (variables[:, one] >= 0)
        coefficients[:, one] += np.where(same, coefficients[:, other], 0.0)
        coefficients[same, other] = 0.0
    return np.maximum(variables, 0), coefficients
