"""Fold-in: new facts and new entities without training anything again.

The vectors of new entities are fitted to their facts with every other weight frozen. The known facts, their index and
their sums are made anew, so that all evidence counts the new facts; the mined rules, the trees and the bounds stay as
they were fitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ukge.errors import DataError
from ukge.evidence.new_vectors import lessons_of, widened
from ukge.evidence.tables import Tables
from ukge.graph.index import FactIndex
from ukge.graph.uncertain import UncertainGraph, concat
from ukge.graph.vocabulary import Vocabulary

if TYPE_CHECKING:
    from ukge.evidence.evidence import Evidence

RIDGE = 0.1
"""Pull towards the mean entity, in facts of mean size."""

NEGATIVES = 4
"""Links with random entities, taken to be false, for each fact of a new entity; together they weigh as much as it."""


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

    Entities may be new, relations not: what a relation means can only be learnt. The evidence given is not changed. A
    triple that is known already is replaced by the new one.
    """
    new = facts if isinstance(facts, UncertainGraph) else UncertainGraph.from_facts(facts)
    if len(new) == 0:
        return evidence
    entities = _extended(evidence.entities, new)
    unknown = [name for name in new.compact().relations if name not in evidence.relations]
    if unknown:
        raise DataError(
            f"{len(unknown):,} new relations cannot be folded in: {', '.join(unknown[:5])}",
            hint="Train and fit again with facts of these relations.",
        )
    table = new.facts()
    head, tail = (entities.encode(table[name]) for name in ("head", "tail"))
    relation = evidence.relations.encode(table["relation"])
    old = evidence.known
    before = UncertainGraph.from_ids(old.head, old.relation, old.tail, old.confidence, entities, evidence.relations)
    before = before.taken_as_undirected(old.undirected)
    added = before.with_facts(head, relation, tail, new.confidence)
    kept = before[~np.isin(before.keys(), added.keys())]
    known = FactIndex(concat([kept, added]))
    features = evidence.features
    lessons = lessons_of(added, len(evidence.entities), negatives, seed)
    backbones = tuple(widened(each, lessons, len(entities), ridge) for each in features.backbones)
    folded = replace(features, index=known, tables=Tables.of(known, engine), backbones=backbones)
    return evidence.over(folded)


def _extended(entities: Vocabulary, new: UncertainGraph) -> Vocabulary:
    """Return the vocabulary with unknown names at its end."""
    unknown = [name for name in new.compact().entities if name not in entities]
    return Vocabulary([*entities, *unknown]) if unknown else entities
