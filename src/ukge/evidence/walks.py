"""Walks of two steps between a fact's entities: what common neighbours and ground rules rest on."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ukge.evidence.features import Features
from ukge.logic.lukasiewicz import conjunction
from ukge.logic.rules import Atom, Rule

Walk = tuple[int, int]
"""Places among the neighbours of the head's and of the tail's step, which meet."""


class Walks:
    """The walks from one fact's head to its tail over an entity between them."""

    def __init__(self, features: Features, fact: tuple[int, int, int]) -> None:
        self._rules = features.rules
        self._near = features.index.neighbours
        self._relations = features.index.graph.relations
        self._head, self._relation, self._tail = fact

    @cached_property
    def all(self) -> list[Walk]:
        """Every walk; none from an entity to itself."""
        near = self._near
        if self._head == self._tail:
            return []
        a, b = (slice(int(near.links[e]), int(near.links[e + 1])) for e in (self._head, self._tail))
        _, i, j = np.intersect1d(near.near[a], near.near[b], assume_unique=True, return_indices=True)
        return [
            (first, second)
            for from_head, from_tail in zip((a.start + i).tolist(), (b.start + j).tolist(), strict=True)
            for first in range(near.first[from_head], near.first[from_head + 1])
            for second in range(near.first[from_tail], near.first[from_tail + 1])
        ]

    def surest(self) -> list[int]:
        """Return the rows of the known facts of the walk whose confidences have the highest product."""
        sure = self._near.confidence
        first, second = max(self.all, key=lambda walk: float(sure[walk[0]] * sure[walk[1]]))
        return self.rows((first, second))

    def rows(self, walk: Walk) -> list[int]:
        """Return the rows of the known facts of a walk."""
        return [int(self._near.row[place]) for place in walk]

    def bodies(self) -> dict[int, tuple[float, Walk]]:
        """Return the truest body of each rule that concludes the fact, and its walk, by the rule's place."""
        rules, near, n = self._rules, self._near, len(self._relations)
        found: dict[int, tuple[float, Walk]] = {}
        for first, second in self.all:
            c, d = float(near.confidence[first]), float(near.confidence[second])
            body = conjunction(c, d)
            if c <= rules.strong or d <= rules.strong or body <= 0.0:
                continue
            onwards = (int(near.step[second]) + n) % (2 * n)
            wanted = (self._relation * 2 * n + int(near.step[first])) * 2 * n + onwards
            place = int(np.searchsorted(rules.key, wanted))
            if place < len(rules.key) and rules.key[place] == wanted and body > found.get(place, (0.0,))[0]:
                found[place] = body, (first, second)
        return found

    def rule(self, place: int) -> Rule:
        """Return the rule at a place; its key is (r·2R + p)·2R + p'."""
        wide = 2 * len(self._relations)
        rest, second = divmod(int(self._rules.key[place]), wide)
        head, first = divmod(rest, wide)
        weight = float(self._rules.weight[place])
        return Rule(
            (self._atom(first, "A", "C"), self._atom(second, "C", "B")),
            Atom(self._relations[head], "A", "B"),
            weight=weight,
        )

    def _atom(self, step: int, subject: str, target: str) -> Atom:
        name = self._relations[step % len(self._relations)]
        return Atom(name, target, subject) if step >= len(self._relations) else Atom(name, subject, target)
