"""The definitions spelt out in plain Python: every entity is tried for every variable of a rule. For tiny graphs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from hypothesis import strategies as st

from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Vocabulary
from ukge.logic.rules import Atom, Rule

Triple = tuple[str, str, str]
RELATIONS = ("p", "q", "r")
ENTITIES = tuple(f"e{i}" for i in range(5))


@st.composite
def graphs(draw: st.DrawFn, n_facts: int = 30) -> UncertainGraph:
    """Draw a small dense graph, with repeated triples, facts about one entity twice, and ties of confidence."""
    triple = st.tuples(st.sampled_from(ENTITIES), st.sampled_from(RELATIONS), st.sampled_from(ENTITIES))
    confidence = st.sampled_from([0.0, 0.3, 0.6, 0.7, 0.85, 0.9, 1.0])
    facts = draw(st.lists(st.tuples(triple, confidence), min_size=8, max_size=n_facts))
    head, relation, tail = ([triple[i] for triple, _ in facts] for i in range(3))
    entities, relations = Vocabulary(ENTITIES), Vocabulary(RELATIONS, kind="relation")
    values = [confidence for _, confidence in facts]
    return UncertainGraph.from_columns(head, relation, tail, values, entities=entities, relations=relations)


def once(graph: UncertainGraph) -> dict[Triple, tuple[float, int]]:
    """Return the mean of each triple's confidences and the first row that says it."""
    found: dict[Triple, list[tuple[float, int]]] = defaultdict(list)
    for row, fact in enumerate(graph):
        found[fact.head, fact.relation, fact.tail].append((fact.confidence, row))
    return {triple: (_mean([value for value, _ in rows]), rows[0][1]) for triple, rows in found.items()}


def _mean(values: list[float]) -> float:
    """Return the mean, added up as everywhere, so that it passes τ or not; of equal numbers it is that number."""
    mean = float(np.add.reduceat(values, [0])[0]) / len(values)
    return min(max(mean, min(values)), max(values))


@dataclass(frozen=True)
class Grounding:
    """One way to fill a body: the head it implies, the body's truth and the rows of its facts."""

    head: Triple
    value: float
    rows: tuple[int, ...]


def groundings(graph: UncertainGraph, rule: Rule, strong: float, distinct: bool) -> Iterator[Grounding]:
    """Yield every way to fill a rule's body with facts above `strong`."""
    facts = {triple: found for triple, found in once(graph).items() if found[0] > strong}
    for entities in product(ENTITIES, repeat=len(rule.variables)):
        if distinct and len(set(entities)) < len(entities):
            continue
        names = dict(zip(rule.variables, entities, strict=True))
        body = [(names[a.subject], a.relation, names[a.object]) for a in rule.body]
        if all(triple in facts for triple in body):
            value = max(0.0, sum(facts[triple][0] for triple in body) - (len(body) - 1))
            head = (names[rule.head.subject], rule.head.relation, names[rule.head.object])
            yield Grounding(head, value, tuple(facts[triple][1] for triple in body))


def measures(graph: UncertainGraph, rule: Rule, strong: float, distinct: bool) -> dict[str, float]:
    """Return the counted figures of one rule."""
    facts = {triple: found[0] for triple, found in once(graph).items()}
    implied: dict[Triple, float] = defaultdict(float)
    for found in groundings(graph, rule, strong, distinct):
        implied[found.head] = max(implied[found.head], found.value)
    hits = [(value, facts[triple]) for triple, value in implied.items() if triple in facts]
    subjects = {h for (h, r, _), c in facts.items() if r == rule.head.relation and c > strong}
    of_head = [c for (_, r, _), c in facts.items() if r == rule.head.relation]
    return {
        "implied": len(implied),
        "support": len(hits),
        "strong_support": sum(c > strong for _, c in hits),
        "pca_implied": sum(h in subjects for h, _, _ in implied),
        "head_facts": len(of_head),
        "body_sum": sum(implied.values()),
        "overlap": sum(min(pair) for pair in hits),
        "body_mean": float(np.mean([value for value, _ in hits])) if hits else np.nan,
        "head_mean": float(np.mean([c for _, c in hits])) if hits else np.nan,
        "error": float(np.mean([abs(value - c) for value, c in hits])) if hits else np.nan,
        "relation_mean": float(np.mean(of_head)) if of_head else np.nan,
    }


def every_rule(max_length: int, conjunctions: bool) -> Iterator[Rule]:
    """Yield every closed rule along a walk, and with `conjunctions` every body of two atoms over the head's ends."""
    for length in range(1, max_length + 1):
        ends = ["ABCD"[i : i + 2] for i in range(length)]
        for relations in product(RELATIONS, repeat=length + 1):
            for turned in product((False, True), repeat=length):
                atoms = [_atom(r, pair, t) for r, pair, t in zip(relations, ends, turned, strict=False)]
                head = Atom(relations[-1], "A", ends[-1][1])
                if atoms != [head]:
                    yield Rule(tuple(atoms), head)
    if conjunctions:
        steps = [_atom(r, "AB", t) for r in RELATIONS for t in (False, True)]
        for head in (Atom(r, "A", "B") for r in RELATIONS):
            for i, first in enumerate(steps):
                for second in steps[i + 1 :]:
                    if head not in (first, second):
                        yield Rule((first, second), head)


def walk(rule: Rule) -> tuple[tuple[str, bool], ...]:
    """Return the body as steps from the head's subject on: each a relation, and whether it is walked backwards."""
    steps, here, waiting = [], rule.head.subject, list(rule.body)
    while waiting:
        atom = next(atom for atom in waiting if here in atom.variables)
        waiting.remove(atom)
        steps.append((atom.relation, atom.object == here))
        here = atom.subject if atom.object == here else atom.object
    return tuple(steps)


def turned(steps: tuple[tuple[str, bool], ...]) -> tuple[tuple[str, bool], ...]:
    """Return the same walk seen from its other end."""
    return tuple((relation, not backwards) for relation, backwards in reversed(steps))


def _atom(relation: str, pair: str, turned: bool) -> Atom:
    return Atom(relation, pair[1], pair[0]) if turned else Atom(relation, pair[0], pair[1])
