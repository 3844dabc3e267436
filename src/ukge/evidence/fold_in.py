"""Fold-in: new facts, entities and relations without training anything again.

The known facts, their index and their sums are made anew, so that all evidence counts the new facts; names that are new
get vectors (see `new_rows`); the mined rules, the trees and the bounds stay as they were fitted. What a new relation
means to the trees was never learnt: they know of it what they know of the rarest relations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ukge.evidence.backbones import Backbone
from ukge.evidence.features import over_more
from ukge.evidence.new_rows import NEGATIVES, RIDGE, Free, Sizes, lessons_of, widened, with_room
from ukge.evidence.tables import Tables
from ukge.graph.index import FactIndex
from ukge.graph.uncertain import UncertainGraph, concat
from ukge.runs.additions import Rows, joined

if TYPE_CHECKING:
    from ukge.evidence.evidence import Evidence


def fold_in(
    evidence: Evidence,
    facts: UncertainGraph | Sequence[Sequence[Any]],
    *,
    ridge: float = RIDGE,
    negatives: int = NEGATIVES,
    seed: int = 0,
    engine: str = "duckdb",
) -> Evidence:
    """Return evidence that also knows some facts, given as a graph or as (head, relation, tail, confidence).

    Entities and relations may be new. The evidence given is not changed. A triple that is known already is replaced by
    the new one.
    """
    new = facts if isinstance(facts, UncertainGraph) else UncertainGraph.from_facts(facts)
    if len(new) == 0:
        return evidence
    old, features = evidence.known, evidence.features
    added = joined((evidence.entities, evidence.relations), [new.facts()], old.undirected)
    before = UncertainGraph.from_ids(
        old.head, old.relation, old.tail, old.confidence, added.entities, added.relations
    ).taken_as_undirected(old.undirected)
    before = before.with_nodes(evidence.dataset.nodes.joined(new.nodes))
    kept = before[~np.isin(before.keys(), added.keys())]
    known = FactIndex(concat([kept, added]))
    trained = Sizes(old.n_entities, old.n_relations)
    free = Free.of(added, trained)
    lessons = lessons_of(added, free, negatives, seed)
    sizes = Sizes(added.n_entities, added.n_relations)
    backbones = tuple(widened(with_room(each, trained, sizes), lessons, free, ridge) for each in features.backbones)
    parts = features.rules, backbones, features.category, features.expectation, features.values
    return evidence.over(over_more(known, Tables.of(known, engine), *parts))


def rows_for(
    models: Mapping[str, Backbone], facts: UncertainGraph, incoming: UncertainGraph, trained: Sizes, seed: int
) -> dict[str, Rows]:
    """Return rows of each model for the names of incoming facts that its training did not see.

    They are fitted to all `facts` of these names, those that were added before among them. A model has rows already
    for names that came before; they are fitted anew.
    """
    free = Free.of(incoming, trained)
    lessons = lessons_of(facts, free, seed=seed)
    sizes = Sizes(facts.n_entities, facts.n_relations)
    found = {}
    for name, backbone in models.items():
        fitted = widened(with_room(backbone, trained, sizes), lessons, free).parameters
        found[name] = Rows(free.entities, fitted.entity[free.entities], free.relations, fitted.relation[free.relations])
    return found
