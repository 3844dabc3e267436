"""A whole program for PSL: rules, observed facts and targets as one JSON configuration that its runtime reads.

PSL's predicates are identifiers without regard to case, and its rules say where two variables must differ. So relations
are renamed here (`R3_plays_for`), and inequalities written out.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from ukge.graph.aggregate import aggregate
from ukge.graph.uncertain import UncertainGraph
from ukge.logic.facts import relation_ids
from ukge.logic.program import NegativePrior
from ukge.logic.rules import Atom, Rule


def psl_program(
    graph: UncertainGraph,
    rules: Sequence[Rule],
    targets: UncertainGraph,
    *,
    prior: NegativePrior | None = None,
    distinct: bool = True,
) -> dict[str, Any]:
    """Return the program as PSL's runtime takes it; run it with `python -m pslpython.runtime FILE`.

    `targets` are the unseen facts to infer; their confidences are ignored.
    """
    used = sorted({relation for ids in relation_ids(rules, graph) for relation in ids})
    names = {graph.relations[number]: predicate(number, graph.relations[number]) for number in used}
    observations = _atoms(aggregate(graph).graph, with_confidence=True)
    wanted = _atoms(targets, with_confidence=False)
    predicates = {
        f"{name}/2": {"observations": observations[relation], "targets": wanted[relation]}
        for relation, name in names.items()
    }
    texts = [psl_rule(rule, names, distinct=distinct) for rule in rules]
    if prior is not None:
        texts += [f"{prior.weight!r}: !{name}(A, B){' ^2' * prior.squared}" for name in names.values()]
    options = {"runtime.learn": False, "runtime.inference": True}
    return {"options": options, "rules": texts, "predicates": predicates}


def psl_rule(rule: Rule, names: dict[str, str], *, distinct: bool) -> str:
    """Return one rule with PSL's predicate names and, if variables stand for different entities, its inequalities."""
    unequal = [f"({one} != {other})" for one, other in combinations(rule.variables, 2)] if distinct else []
    body = " & ".join([*(_atom(atom, names) for atom in rule.body), *unequal])
    return f"{rule.weight!r}: {body} -> {'!' * rule.negated}{_atom(rule.head, names)}{' ^2' * rule.squared}"


def predicate(number: int, relation: str) -> str:
    """Return the predicate that stands for a relation: unique whatever its letters, and still readable."""
    readable = re.sub(r"[^A-Za-z0-9]+", "_", relation).strip("_")
    return f"R{number}_{readable}" if readable else f"R{number}"


def _atom(atom: Atom, names: dict[str, str]) -> str:
    return f"{names[atom.relation]}({atom.subject}, {atom.object})"


def _atoms(graph: UncertainGraph, *, with_confidence: bool) -> dict[str, list[list[str | float]]]:
    found: dict[str, list[list[str | float]]] = defaultdict(list)
    for fact in graph:
        row: list[str | float] = [fact.head, fact.tail]
        found[fact.relation].append([*row, fact.confidence] if with_confidence else row)
    return found
