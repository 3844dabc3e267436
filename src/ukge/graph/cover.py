"""Covers: sets of units (facts, or all facts of a pair) that together mention every entity and every relation."""

from __future__ import annotations

from collections import deque

import numpy as np
import numpy.typing as npt

from ukge.graph.keys import pair_keys
from ukge.graph.uncertain import UncertainGraph

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


def random_cover(graph: UncertainGraph, unit: Rows, rank: Rows) -> Flags:
    """Return a cover as flags per unit: for every entity and relation the unit of lowest `rank` that mentions it."""
    return _complete(graph, unit, rank, np.zeros(len(rank), dtype=np.bool_))


def thrifty_cover(graph: UncertainGraph, unit: Rows, size: Rows) -> Flags:
    """Return a cover of few facts, for graphs so sparse that a random cover leaves too little.

    A smallest edge cover is a largest matching and one unit for each entity the matching leaves out. The matching is
    Karp and Sipser's (an entity with one free neighbour left is matched first), which is optimal on forests and close
    to it on other sparse graphs. Of several units the smallest is taken. Near-linear, but an interpreted loop.
    """
    rank = np.empty(len(size), dtype=np.int64)
    rank[np.argsort(size, kind="stable")] = np.arange(len(size))
    rows = np.argsort(rank[unit], kind="stable")
    _, first = np.unique(pair_keys(graph.head[rows], graph.tail[rows], graph.n_entities), return_index=True)
    edges = rows[first]
    edges = edges[graph.head[edges] != graph.tail[edges]]
    matched = _matching(graph.head[edges], graph.tail[edges], graph.n_entities)
    covered = np.zeros(len(size), dtype=np.bool_)
    covered[unit[edges[matched]]] = True
    return _complete(graph, unit, rank, covered)


def _complete(graph: UncertainGraph, unit: Rows, rank: Rows, covered: Flags) -> Flags:
    """Add the unit of lowest rank for every entity, then for every relation, that `covered` does not mention yet."""
    by_rank = np.argsort(rank)
    for size, columns in ((graph.n_entities, (graph.head, graph.tail)), (graph.n_relations, (graph.relation,))):
        lowest = np.full(size, len(rank), dtype=np.int64)
        inside = covered[unit]
        for ids in columns:
            np.minimum.at(lowest, ids, rank[unit])
        for ids in columns:
            lowest[ids[inside]] = len(rank)
        covered[by_rank[lowest[lowest < len(rank)]]] = True
    return covered


def _matching(head: npt.NDArray[np.int32], tail: npt.NDArray[np.int32], n_entities: int) -> Rows:
    """Return the edges of a large matching of the graph without loops and parallel edges."""
    ends = np.concatenate([head, tail])
    order = np.argsort(ends, kind="stable")
    starts = np.searchsorted(ends[order], np.arange(n_entities + 1)).tolist()
    edge_of = (order % len(head) if len(head) else order).tolist()
    heads, tails = head.tolist(), tail.tolist()
    degree = np.bincount(ends, minlength=n_entities).tolist()
    free = [True] * n_entities
    lonely = deque(entity for entity in range(n_entities) if degree[entity] == 1)
    chosen: list[int] = []

    def match(edge: int) -> None:
        chosen.append(edge)
        free[heads[edge]] = free[tails[edge]] = False
        for entity in (heads[edge], tails[edge]):
            for other_edge in edge_of[starts[entity] : starts[entity + 1]]:
                neighbour = heads[other_edge] + tails[other_edge] - entity
                if free[neighbour]:
                    degree[neighbour] -= 1
                    if degree[neighbour] == 1:
                        lonely.append(neighbour)

    for edge in range(len(heads)):
        while lonely:
            entity = lonely.popleft()
            if not free[entity]:
                continue
            for near in edge_of[starts[entity] : starts[entity + 1]]:
                if free[heads[near]] and free[tails[near]]:
                    match(near)
                    break
        if free[heads[edge]] and free[tails[edge]]:
            match(edge)
    return np.asarray(chosen, dtype=np.int64)
