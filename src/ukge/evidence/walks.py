"""Walks of two steps between a fact's entities: what common neighbours and ground rules rest on."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ukge.evidence.features import Features
from ukge.evidence.lookup import find
from ukge.logic.lukasiewicz import conjunction
from ukge.logic.rules import Atom, Rule

Walk = tuple[int, int]
"""Places among the neighbours of the head's and of the tail's step, which meet."""


class Walks:
    """The walks from one fact's head to its tail over an entity between them."""

    def __init__(self, features: Features, fact: tuple[int, int, int]) -> None:
        self._rules = features.rules
        self._near = features.index.neighbours
        self._inverse = features.inverse_step
        self._both_ways = bool(features.index.graph.undirected_relations[fact[1]])
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
        rules, near, inverse, wide = self._rules, self._near, self._inverse, 2 * len(self._relations)
        walks = np.array(self.all, dtype=np.int64).reshape(-1, 2)
        sure = near.confidence[walks]
        truth = conjunction(sure[:, 0], sure[:, 1])
        kept = (sure > rules.strong).all(axis=1) & (truth > 0.0)
        walks, truth = walks[kept], truth[kept]
        first, second = near.step[walks[:, 0]].astype(np.int64), inverse[near.step[walks[:, 1]]].astype(np.int64)
        keys = (self._relation * wide + first) * wide + second
        if self._both_ways:
            keys = np.minimum(keys, (self._relation * wide + inverse[second].astype(np.int64)) * wide + inverse[first])
        found: dict[int, tuple[float, Walk]] = {}
        for place, body, walk in zip(find(rules.key, keys).tolist(), truth.tolist(), walks.tolist(), strict=True):
            if place >= 0 and body > found.get(place, (0.0,))[0]:
                found[place] = body, (walk[0], walk[1])
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
