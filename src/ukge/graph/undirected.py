"""Relations without a direction: found by their facts, and facts of theirs that are one with their mirror.

"A interacts with B" and "B interacts with A" are one fact. Files say it once, twice, or now this way and now that; a
graph that is told so (`without_direction`) holds it once, so that splits, counts, training and completions take both
for one. Its names are in alphabetical order and its facts in the order of their names: files that say the same facts in
one direction, in both, or in another order give the same graph.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow.compute as pc

from ukge.errors import ConfigError, known_names
from ukge.graph.aggregate import aggregate
from ukge.graph.arrow import from_numpy
from ukge.graph.index import FactIndex
from ukge.graph.queries import Floats, Places
from ukge.graph.uncertain import UncertainGraph, concat
from ukge.graph.vocabulary import Vocabulary

AUTO, NONE = "auto", "none"

MIRRORED = 0.9
"""Share of a relation's facts whose mirror is a fact too from which on it is held to be undirected."""

GAP = 0.05
"""Mean difference of the confidences of a fact and its mirror up to which they are held to be one."""

FEWEST = 20
"""Facts that a relation must have for its form to tell anything."""

SHARED = 0.2
"""Share of a relation's entities that stand at both of its ends, below which its ends are of different kinds."""


def find_undirected(graph: UncertainGraph) -> tuple[str, ...]:
    """Return the relations that have no direction, as far as their facts tell.

    Either nearly every fact has its mirror, with the same confidence: the file says each fact twice. Or every fact has
    its two names in alphabetical order, and many entities stand at both ends: somebody has left the mirrors out. Facts
    that stand in one direction by chance cannot be told from those of a directed relation.
    """
    index = FactIndex(graph)
    count, mirrored, gap = mirrors(index)
    facts = index.all()
    apart = facts.head != facts.tail
    head, relation, tail = (column[apart] for column in facts[:3])
    n = graph.n_relations
    rank = np.empty(graph.n_entities, dtype=np.int64)
    rank[pc.sort_indices(graph.entities.names).to_numpy()] = np.arange(graph.n_entities)
    rising = np.bincount(relation, weights=rank[head] < rank[tail], minlength=n)
    twice = (mirrored >= MIRRORED * count) & (gap <= GAP * mirrored)
    once = (mirrored == 0) & ((rising == count) | (rising == 0))
    enough = count >= FEWEST
    return tuple(
        graph.relations[int(number)]
        for number in np.flatnonzero(enough & (twice | once))
        if twice[number] or _ends_shared(index, int(number)) >= SHARED
    )


def mirrors(index: FactIndex) -> tuple[Places, Floats, Floats]:
    """Return of each relation its facts between two entities, those with a mirror, and how far the two are apart.

    The last is the sum of the differences of the two confidences.
    """
    facts = index.all()
    apart = facts.head != facts.tail
    head, relation, tail = (column[apart] for column in facts[:3])
    mirror = index.stored(tail, relation, head)
    n = index.n_relations
    gaps = np.nan_to_num(np.abs(facts.confidence[apart] - mirror))
    count: Places = np.bincount(relation, minlength=n)
    mirrored: Floats = np.bincount(relation, weights=(~np.isnan(mirror)).astype(np.float64), minlength=n)
    gap: Floats = np.bincount(relation, weights=gaps, minlength=n)
    return count, mirrored, gap


def _ends_shared(index: FactIndex, relation: int) -> float:
    heads, tails = index.of_relation(relation, "head"), index.of_relation(relation, "tail")
    both = len(np.intersect1d(heads, tails, assume_unique=True))
    return both / max(len(heads) + len(tails) - both, 1)


def chosen_undirected(graph: UncertainGraph, wanted: str | Sequence[str]) -> tuple[str, ...]:
    """Return the undirected relations that somebody asks for: `auto` finds them, `none` are none, else their names."""
    if wanted == AUTO:
        return find_undirected(graph)
    names = [] if wanted == NONE else [wanted] if isinstance(wanted, str) else list(wanted)
    for name in names:
        if name not in graph.relations:
            raise ConfigError(
                f"there is no relation {name!r} to be undirected",
                hint=known_names(name, [*graph.relations, AUTO, NONE]),
            )
    return tuple(name for name in graph.relations if name in names)


def without_direction(graph: UncertainGraph, relations: Sequence[str]) -> UncertainGraph:
    """Return the graph with relations that have no direction: each of their facts once, with the mean confidence.

    Of the two entities the alphabetically first one is the head. Other relations keep their rows, repeats too.
    """
    if not relations:
        return graph
    names = pc.sort_indices(graph.entities.names).to_numpy()
    rank = np.empty(len(names), dtype=np.int32)
    rank[names] = np.arange(len(names), dtype=np.int32)
    entities = Vocabulary.trusted(graph.entities.names.take(from_numpy(names)), graph.entities.kind)
    chosen = np.zeros(graph.n_relations, dtype=np.bool_)
    chosen[[graph.relations.index[name] for name in relations]] = True
    head, tail, turned = rank[graph.head], rank[graph.tail], chosen[graph.relation]
    lower, upper = np.minimum(head, tail), np.maximum(head, tail)
    oriented = UncertainGraph.from_ids(
        np.where(turned, lower, head),
        graph.relation,
        np.where(turned, upper, tail),
        graph.confidence,
        entities,
        graph.relations,
        source=graph.source,
    )
    merged = concat([aggregate(oriented[turned]).graph, oriented[~turned]])
    ordered = merged[np.argsort(merged.keys(), kind="stable")]
    return ordered.taken_as_undirected(relations)
