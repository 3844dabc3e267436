"""The neighbourhood of an entity: the most telling facts around it, those of the graph and those that are predicted."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ukge.asking.predictor import Predictor
    from ukge.graph.fact import FactArrays

Group = tuple[str, bool]
"""A relation, and whether the entity is its head."""

RELATIONS, GUESSES = 8, 6
"""Relations that answers are predicted of at most, those with most facts first, and answers of each."""

PREDICTED = 1 / 3
"""Share of the neighbours that are predicted, if that many are."""

BRANCHES = 3
"""Facts of each neighbour at most that lead one step further."""


@dataclass(frozen=True)
class Edge:
    """A fact between an entity and another, with its confidence: stored, or predicted if it is a `guess`."""

    head: str
    relation: str
    tail: str
    other: str
    confidence: float
    guess: bool
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Neighbourhood:
    """Edges of an entity to its neighbours, from these to theirs, and how sure neighbours are linked to each other."""

    middle: str
    edges: tuple[Edge, ...]
    further: Mapping[str, tuple[Edge, ...]]
    """edges of neighbours, by the neighbour's name"""
    across: Mapping[tuple[str, str], float]
    facts: int
    """how many facts the graph holds of the entity"""

    @property
    def names(self) -> list[str]:
        """Everybody in it."""
        beyond = [edge.other for edges in self.further.values() for edge in edges]
        return [self.middle, *(edge.other for edge in self.edges), *beyond]


def in_turn(groups: Mapping[Group, list[Edge]], limit: int, seen: set[str]) -> list[Edge]:
    """Return the surest edge of each relation, then the second, and so on; to no neighbour that was seen."""
    edges: list[Edge] = []
    lists = [list(group) for _, group in sorted(groups.items(), key=lambda each: -len(each[1]))]
    while any(lists) and len(edges) < limit:
        for waiting in lists:
            edge = next((each for each in waiting if each.other not in seen), None)
            del waiting[: len(waiting) if edge is None else waiting.index(edge) + 1]
            if edge is not None and len(edges) < limit:
                seen.add(edge.other)
                edges.append(edge)
    return edges


def neighbourhood(predictor: Predictor, name: str, k: int = 12, hops: int = 1) -> Neighbourhood:
    """Return up to k neighbours of an entity, a third of them predicted, if there are so many.

    With two `hops`, edges of the observed neighbours follow, at most three of each.
    """
    known = _known(predictor, name)
    guessed = {group: _guessed(predictor, name, group) for group in _largest(known)}
    others = {edge.other for edges in guessed.values() for edge in edges} - {name}
    guesses = min(int(k * PREDICTED), len(others))
    seen = {name}
    observed = in_turn(known, k - guesses, seen)
    edges = [*observed, *in_turn(guessed, k - len(observed), seen)]
    further: dict[str, tuple[Edge, ...]] = {}
    for edge in observed if hops > 1 else ():
        further[edge.other] = tuple(in_turn(_known(predictor, edge.other), BRANCHES, seen))
    ordered = sorted(edges, key=lambda each: (each.guess, each.relation, each.head != name, -each.confidence))
    names = [edge.other for edge in observed]
    return Neighbourhood(name, tuple(ordered), further, across(predictor, names), sum(map(len, known.values())))


def _known(predictor: Predictor, name: str) -> dict[Group, list[Edge]]:
    """Return the observed facts of an entity by relation and side, the surest first; none with itself."""
    entity, index = predictor.entities.id(name), predictor.known
    groups: dict[Group, list[Edge]] = defaultdict(list)
    for facts, as_head in ((index.as_head(entity), True), (index.as_tail(entity), False)):
        for edge in _edges(predictor, facts, as_head):
            if edge.other != name:
                groups[edge.relation, as_head].append(edge)
    return {group: sorted(edges, key=lambda each: -each.confidence) for group, edges in groups.items()}


def _edges(predictor: Predictor, facts: FactArrays, as_head: bool) -> list[Edge]:
    heads, tails = (predictor.entities.decode(ids).to_pylist() for ids in (facts.head, facts.tail))
    relations = predictor.relations.decode(facts.relation).to_pylist()
    rows = zip(heads, relations, tails, facts.confidence.tolist(), strict=True)
    return [Edge(h, r, t, t if as_head else h, confidence, guess=False) for h, r, t, confidence in rows]


def _largest(known: Mapping[Group, list[Edge]]) -> list[Group]:
    return sorted(known, key=lambda group: -len(known[group]))[:RELATIONS]


def _guessed(predictor: Predictor, name: str, group: Group) -> list[Edge]:
    """Return what is predicted with a relation: entities that are observed at its other end, with others."""
    relation, as_head = group
    head, tail = (name, None) if as_head else (None, name)
    answers = predictor.rank(head, relation, GUESSES, tail=tail, type="fitting", seen="exclude")
    return [
        Edge(
            head or each.entity, relation, tail or each.entity, each.entity, each.confidence, True, each.low, each.high
        )
        for each in answers
        if each.entity != name
    ]


def across(predictor: Predictor, names: list[str]) -> dict[tuple[str, str], float]:
    """Return the surest confidence of the facts between each two neighbours that have any."""
    ids = {predictor.entities.id(name): name for name in names}
    found: dict[tuple[str, str], float] = {}
    for one, name in ids.items():
        facts = predictor.known.as_head(one)
        for row in np.flatnonzero(np.isin(facts.tail, list(ids)) & (facts.tail != one)).tolist():
            pair = min(name, ids[facts.tail[row]]), max(name, ids[facts.tail[row]])
            found[pair] = max(found.get(pair, 0.0), float(facts.confidence[row]))
    return found
