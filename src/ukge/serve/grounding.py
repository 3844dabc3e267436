"""Which rules speak of one fact: their bodies filled with observed facts, found by looking around its two entities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np

from ukge.graph.vocabulary import Vocabulary
from ukge.logic.lukasiewicz import conjunction
from ukge.logic.rules import Atom, Rule
from ukge.serve.deadlines import Deadline
from ukge.serve.observed import Answers, Floats, Ids, Observed

Triple = tuple[int, int, int]

MOST_STARTS = 2_000
"""Entities tried for the first of two variables that the fact leaves open (bodies of three atoms only)."""


@dataclass(frozen=True)
class GroundBody:
    """A body that implies the fact: its facts in the order of the rule's atoms, their confidences, its truth (eq. 6).

    `bodies` is how many bodies of the same rule imply the fact; this one is the truest.
    """

    rule: Rule
    facts: tuple[Triple, ...]
    confidences: tuple[float, ...]
    truth: float
    bodies: int


class Grounder:
    """Grounds rules for single facts. Different variables stand for different entities."""

    def __init__(self, observed: Observed, relations: Vocabulary) -> None:
        self._observed = observed
        self._relations = relations

    def truest(self, rules: Iterable[Rule], fact: Triple, deadline: Deadline) -> list[GroundBody]:
        """Return for each rule that implies the fact its truest body; bodies that are not true at all do not count.

        The fact itself is no part of a body.
        """
        head, relation, tail = fact
        found = []
        for rule in rules:
            if self._relations.index.get(rule.head.relation) != relation or head == tail:
                continue
            deadline.check()
            best, count = None, 0
            for values, truth in self._bindings(rule, {rule.head.subject: head, rule.head.object: tail}):
                body = self._body(rule, values)
                if fact in body:
                    continue
                count += 1
                if best is None or truth > best[1]:
                    best = body, truth
            if best is not None:
                confidences = tuple(self._observed.confidence(*triple) or 0.0 for triple in best[0])
                found.append(GroundBody(rule, best[0], confidences, best[1], count))
        return found

    def _body(self, rule: Rule, values: dict[str, int]) -> tuple[Triple, ...]:
        index = self._relations.index
        return tuple((values[atom.subject], index[atom.relation], values[atom.object]) for atom in rule.body)

    def _bindings(self, rule: Rule, bound: dict[str, int]) -> Iterator[tuple[dict[str, int], float]]:
        """Yield entities for all variables, and the truth of the body that they make."""
        known = [self._value(atom, bound) for atom in rule.body if set(atom.variables) <= bound.keys()]
        if any(value is None for value in known):
            return
        fresh = [variable for variable in rule.variables if variable not in bound]
        if not fresh:
            truth = float(conjunction(*(value or 0.0 for value in known)))
            if truth > 0:
                yield bound, truth
        elif len(fresh) == 1:
            yield from self._closed(rule, bound, fresh[0], [value or 0.0 for value in known])
        else:
            first = min(fresh, key=lambda variable: len(self._candidates(rule.body, bound, variable)[0]))
            for entity in self._candidates(rule.body, bound, first)[0][:MOST_STARTS].tolist():
                yield from self._bindings(rule, {**bound, first: entity})

    def _closed(
        self, rule: Rule, bound: dict[str, int], variable: str, known: Sequence[float]
    ) -> Iterator[tuple[dict[str, int], float]]:
        """Yield the bindings of the one variable that is left: entities that every atom about it allows."""
        entities, confidences = self._candidates(rule.body, bound, variable)
        if len(confidences) + len(known) < len(rule.body):  # an atom that no fact can fill
            return
        truths = conjunction(*confidences, *known)
        for entity, truth in zip(entities[truths > 0].tolist(), truths[truths > 0].tolist(), strict=True):
            yield {**bound, variable: entity}, float(truth)

    def _candidates(self, atoms: Sequence[Atom], bound: dict[str, int], variable: str) -> tuple[Ids, list[Floats]]:
        """Return the entities that the atoms between a variable and a bound one allow; by atom, their confidences."""
        every = (self._answers(atom, bound, variable) for atom in atoms)
        answers = [one for one in every if one is not None]
        if not answers:
            return np.zeros(0, dtype=np.int64), []
        allowed = reduce(lambda found, one: np.intersect1d(found, one, assume_unique=True), [a.entity for a in answers])
        allowed = np.setdiff1d(allowed, list(bound.values()), assume_unique=True)
        return allowed, [one.confidence[np.searchsorted(one.entity, allowed)] for one in answers]

    def _answers(self, atom: Atom, bound: dict[str, int], variable: str) -> Answers | None:
        """Return what an atom allows for a variable, None if it says nothing of it or its other end is open."""
        relation = self._relations.index.get(atom.relation)
        if relation is None or atom.subject == atom.object:
            return None
        if atom.object == variable and atom.subject in bound:
            return self._observed.tails(bound[atom.subject], relation)
        if atom.subject == variable and atom.object in bound:
            return self._observed.heads(relation, bound[atom.object])
        return None

    def _value(self, atom: Atom, bound: dict[str, int]) -> float | None:
        relation = self._relations.index.get(atom.relation)
        if relation is None:
            return None
        return self._observed.confidence(bound[atom.subject], relation, bound[atom.object])
