"""Relations that say the same from the other end: parentOf(a, b) where childOf(b, a)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ukge.graph.index import FactIndex, Ranges
from ukge.graph.keys import pair_keys
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.undirected import FEWEST, MIRRORED

Inverses = tuple[tuple[str, str], ...]


def find_inverses(graph: UncertainGraph) -> Inverses:
    """Return pairs of relations of which nearly every fact r(a, b) has its s(b, a), and the other way round.

    Relations without a direction are their own inverse and in no pair.
    """
    directed = ~graph.undirected_relations
    facts = FactIndex(graph).all()
    kept = directed[facts.relation] & (facts.head != facts.tail)
    head, relation, tail = (column[kept] for column in facts[:3])
    count = np.bincount(relation, minlength=graph.n_relations)
    by_pair = Ranges.of(pair_keys(head, tail, graph.n_entities, directed=True))
    begin, end = by_pair.find(pair_keys(tail, head, graph.n_entities, directed=True))
    own = np.repeat(relation, end - begin).astype(np.int64)
    other = relation[by_pair.gather(begin, end)]
    meetings, times = np.unique((own * graph.n_relations + other)[own < other], return_counts=True)
    first, second = np.divmod(meetings, graph.n_relations)
    most = np.maximum(count[first], count[second])
    found = (most >= FEWEST) & (times >= MIRRORED * most)
    return tuple(
        (graph.relations[int(r)], graph.relations[int(s)]) for r, s in zip(first[found], second[found], strict=True)
    )


def one_way(graph: UncertainGraph, inverses: Inverses) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return keys that are equal for r(a, b) and s(b, a), and which facts are of such a relation."""
    relations = np.arange(graph.n_relations)
    turned, paired = np.zeros((2, graph.n_relations), dtype=np.bool_)
    for r, s in ([graph.relations.index[name] for name in pair] for pair in inverses):
        relations[s], turned[s] = relations[r], not turned[r]
        paired[[r, s]] = True
    back = turned[graph.relation]
    head, tail = np.where(back, graph.tail, graph.head), np.where(back, graph.head, graph.tail)
    keys = pair_keys(head, tail, graph.n_entities, directed=True) * graph.n_relations + relations[graph.relation]
    return keys, paired[graph.relation]
