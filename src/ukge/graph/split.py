"""Cut one graph into train, validation and test facts, so that nothing is judged on an entity it never saw.

The units that are dealt out are single facts, or, when the split is to be leak-safe, all facts of one unordered entity
pair. A *cover* (units that together mention every entity and every relation) goes to train first; whatever is left is
free, and the held-out parts are drawn from it. This is near-linear and needs no second try.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ukge.errors import ConfigError, DataError, UkgeWarning
from ukge.graph.dataset import Dataset
from ukge.graph.keys import pair_keys
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.undirected import AUTO, Inverses, find_inverses, one_way, take_undirected
from ukge.settings.knobs import check_seed

Rows = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class _Units:
    """What is dealt out: `unit[row]` numbers the unit of each fact, `size[unit]` counts its facts."""

    unit: Rows
    size: Rows


def split(
    graph: UncertainGraph,
    *,
    val: float = 0.07,
    test: float = 0.08,
    seed: int = 0,
    leak_safe: bool = False,
    undirected: str | Sequence[str] = AUTO,
    name: str = "graph",
) -> Dataset:
    """Return train, validation and test facts; every entity and relation of the graph occurs in train.

    The parts hold the asked fractions of the facts, rounded to whole facts, and keep the order of the graph. With
    `leak_safe`, all facts of one unordered entity pair stay on one side (exact twins, inverse twins and other
    relations of the pair), and the sizes are met as closely as the sizes of the pairs allow.

    `undirected` names the relations without a direction, of which a fact and its mirror are one fact: "auto" finds
    them by their facts, "none" takes all as they stand (see `ukge.graph.undirected`). Where two relations are each
    other's inverse, r(a, b) and s(b, a) stay in one part.

    Where a graph is so sparse that train must keep more than its share, validation and test shrink in proportion and
    an `UkgeWarning` says so. Train then keeps a cover close to the smallest there is. A leak-safe split also warns when
    a part falls short by more than five per cent because the remaining pairs are too large.
    """
    _check(graph, val, test)
    check_seed(seed)
    graph = take_undirected(graph, undirected)
    inverses = find_inverses(graph)
    rng = np.random.default_rng(seed)
    units = _units(graph, leak_safe, inverses)
    asked = {"val": round(len(graph) * val), "test": round(len(graph) * test)}
    covered = random_cover(graph, units.unit, rng.permutation(len(units.size)))
    if _free(units, covered) < sum(asked.values()):
        covered = max(covered, thrifty_cover(graph, units.unit, units.size), key=lambda cover: _free(units, cover))
    targets = _affordable(asked, _free(units, covered))
    order = rng.permutation(np.flatnonzero(~covered))
    parts = {}
    for part in ("test", "val"):
        chosen = _fill(order, units.size, targets[part])
        parts[part] = np.zeros(len(units.size), dtype=np.bool_)
        parts[part][chosen] = True
        order = order[~parts[part][order]]
    in_val, in_test = parts["val"][units.unit], parts["test"][units.unit]
    got = {"val": int(in_val.sum()), "test": int(in_test.sum())}
    _tell(asked, targets, got, len(graph), grouped=leak_safe or bool(inverses))
    return Dataset(name, graph[~(in_val | in_test)], graph[in_val], graph[in_test], inverses=inverses)


def _check(graph: UncertainGraph, val: float, test: float) -> None:
    if not (val >= 0.0 and test >= 0.0 and val + test < 1.0):
        raise ConfigError(
            f"fractions ‹val={val:g}› and ‹test={test:g}› leave nothing to learn from",
            hint="Both must be 0 or more and together less than 1, for example ‹val=0.07› and ‹test=0.08›.",
        )
    if len(graph) == 0:
        raise DataError("a graph without facts cannot be split")


def _units(graph: UncertainGraph, leak_safe: bool, inverses: Inverses) -> _Units:
    if leak_safe:
        keys = pair_keys(graph.head, graph.tail, graph.n_entities)
    elif inverses:
        keys, paired = one_way(graph, inverses)
        keys = np.where(paired, keys, -1 - np.arange(len(graph)))  # any other fact is a unit of its own
    else:
        return _Units(np.arange(len(graph)), np.ones(len(graph), dtype=np.int64))
    _, unit, size = np.unique(keys, return_inverse=True, return_counts=True)
    return _Units(unit, size)


def _free(units: _Units, covered: Flags) -> int:
    return int(units.size[~covered].sum())


def _affordable(asked: dict[str, int], free: int) -> dict[str, int]:
    """Shrink both parts in proportion when train cannot spare as many facts as asked."""
    total = sum(asked.values())
    if total <= free:
        return asked
    test = round(free * asked["test"] / total)
    return {"test": test, "val": free - test}


def _fill(order: Rows, size: Rows, target: int) -> Rows:
    """Return units, taken in `order`, whose sizes add up to `target`, or miss it by less than any unit left."""
    sizes = size[order]
    prefix = int(np.searchsorted(np.cumsum(sizes), target, side="right"))
    chosen = [order[:prefix]]
    short = target - int(sizes[:prefix].sum())
    rest, rest_sizes = order[prefix:], sizes[prefix:]
    while short > 0:
        fitting = rest_sizes[rest_sizes <= short]
        if len(fitting) == 0:
            break
        largest = int(fitting.max())
        picked = np.flatnonzero(rest_sizes == largest)[: short // largest]
        chosen.append(rest[picked])
        short -= largest * len(picked)
        rest, rest_sizes = np.delete(rest, picked), np.delete(rest_sizes, picked)
    return np.concatenate(chosen)


def _tell(asked: dict[str, int], targets: dict[str, int], got: dict[str, int], n_facts: int, *, grouped: bool) -> None:
    """Warn when a part is smaller than asked; where facts stay together, by more than five per cent."""
    allowed = 0.05 if grouped else 0.0
    if all(asked[part] - got[part] <= allowed * asked[part] for part in asked):
        return
    why = "the facts of one entity pair stay together, and the pairs that are left are too large"
    if targets != asked:
        why = "train needs all others, because every entity and relation must occur there"
    warnings.warn(
        f"asked for {asked['val']:,} validation and {asked['test']:,} test facts of {n_facts:,}, "
        f"got {got['val']:,} and {got['test']:,}: {why}. Ask for smaller fractions, or add facts.",
        UkgeWarning,
        stacklevel=3,
    )


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
