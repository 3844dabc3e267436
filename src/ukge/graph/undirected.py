"""Relations that say the same from the other end: those without a direction, and pairs like parentOf and childOf.

"A interacts with B" and "B interacts with A" are one fact. Files say it once, twice, or now this way and now that; a
graph that is told so (`without_direction`) holds it once, so that splits, counts, training and completions take both
for one. Its names are in alphabetical order and its facts in the order of their names: files that say the same facts in
one direction, in both, or in another order give the same graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from ukge.errors import ConfigError, Wording, in_python, known_names, worded
from ukge.graph.aggregate import aggregate
from ukge.graph.arrow import from_numpy
from ukge.graph.dataset import Dataset
from ukge.graph.index import FactIndex, Ranges
from ukge.graph.keys import contains, pair_keys
from ukge.graph.queries import Floats, Places
from ukge.graph.uncertain import UncertainGraph, concat
from ukge.graph.vocabulary import Ids, Vocabulary

AUTO, NONE = "auto", "none"

Inverses = tuple[tuple[str, str], ...]
"""Pairs of relations of which each is the other's inverse."""

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
    _, rank = alphabetical(graph.entities)
    rising = np.bincount(relation, weights=rank[head] < rank[tail], minlength=n)
    twice = (mirrored >= MIRRORED * count) & (gap <= GAP * mirrored)
    once = (mirrored == 0) & ((rising == count) | (rising == 0))
    enough = count >= FEWEST
    return tuple(
        graph.relations[int(number)]
        for number in np.flatnonzero(enough & (twice | once))
        if twice[number] or ends_shared(index, int(number)) >= SHARED
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
    mirrored, gap = (
        np.asarray(np.bincount(relation, weights=each, minlength=n), dtype=np.float64)
        for each in (~np.isnan(mirror), gaps)
    )
    return count, mirrored, gap


def ends_shared(index: FactIndex, relation: int) -> float:
    """Return the share of a relation's entities that are heads of some of its facts and tails of others."""
    heads, tails = index.of_relation(relation, "head"), index.of_relation(relation, "tail")
    both = len(np.intersect1d(heads, tails, assume_unique=True))
    return both / max(len(heads) + len(tails) - both, 1)


def chosen_undirected(graph: UncertainGraph, wanted: str | Sequence[str]) -> tuple[str, ...]:
    """Return the undirected relations that somebody asks for: `auto` finds them, `none` are none, else their names."""
    if wanted == AUTO:
        return find_undirected(graph)
    given = [] if wanted == NONE else [wanted] if isinstance(wanted, str) else list(wanted)
    names = [name for each in given for name in ([each] if each in graph.relations else each.split(","))]
    for name in names:
        if name not in graph.relations:
            raise ConfigError(
                f"there is no relation {name!r} to be undirected",
                hint=known_names(name, [*graph.relations, AUTO, NONE]),
            )
    return tuple(name for name in graph.relations if name in names)


def take_undirected(graph: UncertainGraph, wanted: str | Sequence[str]) -> UncertainGraph:
    """Return the graph with the undirected relations that somebody asks for; `auto` leaves what is decided already."""
    if (wanted == AUTO and graph.undirected) or wanted == graph.undirected:
        return graph
    chosen = chosen_undirected(graph, wanted)
    return without_direction(graph, chosen) if chosen else graph.taken_as_undirected(())


def without_direction(graph: UncertainGraph, relations: Sequence[str]) -> UncertainGraph:
    """Return the graph with relations that have no direction: each of their facts once, with the mean confidence.

    Of the two entities the alphabetically first one is the head. Other relations keep their rows, repeats too.
    """
    if not relations:
        return graph
    facts = oriented(graph, relations).taken_as_undirected(())
    chosen = np.isin(facts.relation, [facts.relations.index[name] for name in relations])
    merged = concat([aggregate(facts[chosen]).graph, facts[~chosen]])
    ordered = merged[np.argsort(merged.keys(), kind="stable")]
    return ordered.taken_as_undirected(sorted(relations))


@dataclass(frozen=True, slots=True)
class Undirected:
    """What taking relations for undirected did: so many rows became so many facts, and some left a held-out part.

    Where they are not `taken`, they only look like it.
    """

    relations: tuple[str, ...]
    rows: int
    facts: int
    left: int = 0
    taken: bool = True

    def line(self, wording: Wording = in_python) -> str:
        """Say it in one line, in the words of a surface."""
        first = ", ".join(self.relations[:3])
        more = f" and {len(self.relations) - 3:,} more" if len(self.relations) > 3 else ""
        have = "has" if len(self.relations) == 1 else "have"
        if not self.taken:
            names = f"‹undirected={','.join(self.relations)}›"
            what = f"as far as the facts tell, {first}{more} {have} no direction, but the parts of a prepared directory"
            return worded(f"{what} are taken as they stand; {names} makes a fact and its mirror one", wording)
        left = f" ({self.left:,} of them in two parts, which train keeps)" if self.left else ""
        told = f"{first}{more} {have} no direction: {self.rows:,} rows are {self.facts:,} facts{left}"
        return worded(f"{told}; ‹undirected='none'› takes them as they stand", wording)


def tell_as_it_stands(dataset: Dataset, on_undirected: Callable[[Undirected], None] | None) -> None:
    """Tell which relations of a data set look undirected, though it is taken as it stands."""
    whole = dataset.whole() if on_undirected is not None else None
    if whole is not None and on_undirected is not None and (found := find_undirected(whole)):
        rows = _rows_of(whole, found)
        on_undirected(Undirected(found, rows, rows, taken=False))


def undirected_graph(
    graph: UncertainGraph, wanted: str | Sequence[str], on_undirected: Callable[[Undirected], None] | None = None
) -> UncertainGraph:
    """Return the graph with the undirected relations that somebody asks for, and tell what that did."""
    taken = take_undirected(graph, wanted)
    if taken.undirected and on_undirected is not None:
        rows, facts = (_rows_of(each, taken.undirected) for each in (graph, taken))
        on_undirected(Undirected(taken.undirected, rows, facts))
    return taken


def undirected_dataset(
    dataset: Dataset, wanted: str | Sequence[str], on_undirected: Callable[[Undirected], None] | None = None
) -> Dataset:
    """Return the data set with the undirected relations that somebody asks for, and tell what that did."""
    chosen = chosen_undirected(dataset.whole(), wanted)
    taken, left = dataset_without_direction(dataset, chosen)
    if chosen and on_undirected is not None:
        rows, facts = (_rows_of(each.whole(), chosen) for each in (dataset, taken))
        on_undirected(Undirected(chosen, rows, facts, sum(left.values())))
    return taken


def _rows_of(graph: UncertainGraph, relations: Sequence[str]) -> int:
    return int(np.isin(graph.relation, [graph.relations.index[name] for name in relations]).sum())


def dataset_without_direction(dataset: Dataset, relations: Sequence[str]) -> tuple[Dataset, dict[str, int]]:
    """Return a data set with relations that have no direction, and how many facts left each part.

    A fact that train has, whichever way it stands there, leaves validation and test; one of validation leaves test.
    Negative links, rule heads and queries keep their rows.
    """
    if not relations:
        return dataset, {}
    parts, left = {}, {}
    known = np.zeros(0, dtype=np.int64)
    for name, part in dataset.parts.items():
        facts = without_direction(part, relations)
        keys = facts.keys()
        stays = ~(facts.undirected_relations[facts.relation] & contains(known, keys))
        known = np.sort(np.concatenate([known, keys]))
        parts[name], left[name] = facts[stays], int((~stays).sum())
    links, heads = (
        None if rows is None else oriented(rows, relations) for rows in (dataset.negatives, dataset.ground_rules)
    )
    queries = dataset.queries
    if queries is not None:
        rank, kind = alphabetical(dataset.entities)[1], alphabetical(dataset.relations)[1]
        queries = np.stack([rank[queries[:, 0]], kind[queries[:, 1]]], axis=1)
    train, val, test = parts.values()
    taken = replace(dataset, train=train, val=val, test=test, negatives=links, queries=queries, ground_rules=heads)
    return taken, left


def alphabetical(names: Vocabulary) -> tuple[Vocabulary, Ids]:
    """Return names in alphabetical order, and the new id of each."""
    order = pc.sort_indices(names.names).to_numpy()
    rank = np.empty(len(order), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return Vocabulary.trusted(names.names.take(from_numpy(order)), names.kind), rank


def oriented(graph: UncertainGraph, relations: Sequence[str]) -> UncertainGraph:
    """Return the same rows over names in alphabetical order; of an undirected relation the first name is the head."""
    (entities, rank), (kinds, kind) = alphabetical(graph.entities), alphabetical(graph.relations)
    chosen = np.zeros(graph.n_relations, dtype=np.bool_)
    chosen[[graph.relations.index[name] for name in relations]] = True
    head, tail, turned = rank[graph.head], rank[graph.tail], chosen[graph.relation]
    lower, upper = np.minimum(head, tail), np.maximum(head, tail)
    facts = UncertainGraph.from_ids(
        np.where(turned, lower, head),
        kind[graph.relation],
        np.where(turned, upper, tail),
        graph.confidence,
        entities,
        kinds,
        source=graph.source,
    )
    return facts.taken_as_undirected(sorted(relations)).with_nodes(graph.nodes)


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
