"""Negative links that are not negative, and the error they force on an honest model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ukge.graph.audit.lookup import ByTriple, distinct
from ukge.graph.dataset import Dataset
from ukge.graph.keys import Keys, contains, pair_keys
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Ids

SHOWN = 5


@dataclass(frozen=True, slots=True)
class FalseNegative:
    """A negative link that is a fact, by name, with the mean confidence the graph gives it."""

    head: str
    relation: str
    tail: str
    confidence: float


@dataclass(frozen=True, slots=True)
class Negatives:
    """The negative links of the test set.

    `facts` of the `rows` links are facts of the graph (train, validation or test). An honest model answers them with
    their confidence s and errs by s², so on test + negatives it cannot get below `floor_mse` (a fact recorded several
    times counts with the mean of its s²). `irreducible_mse` is what no function of (h, r, t) can avoid there, honest or
    not: it remains when every triple that is asked for with several values is answered with their mean.

    The last three say how the links were drawn: the share whose tail occurs in train as a tail of the same relation,
    the same for heads, and the share whose entity pair train links by some relation.
    """

    rows: int
    facts: int
    share: float
    floor_mse: float
    irreducible_mse: float
    tail_in_range: float
    head_in_domain: float
    pair_in_train: float
    examples: tuple[FalseNegative, ...]


def examine_negatives(dataset: Dataset, whole: UncertainGraph, facts: ByTriple, pairs: Keys) -> Negatives | None:
    """Examine the negative links of a data set.

    `facts` are the grouped rows of `whole`, all its observed facts; `pairs` the entity pairs of train.
    """
    links = dataset.negatives
    if links is None or len(links) == 0:
        return None
    at = facts.find(links.keys())
    wrong = np.flatnonzero(at >= 0)
    asked = ByTriple.of(
        np.concatenate([dataset.test.keys(), links.keys()]),
        np.concatenate([dataset.test.confidence, links.confidence]),
    )
    remains = (asked.mean_square() - asked.mean() ** 2) * asked.count
    total = len(dataset.test) + len(links)
    train, n = dataset.train, dataset.train.n_entities
    return Negatives(
        rows=len(links),
        facts=len(wrong),
        share=len(wrong) / len(links),
        floor_mse=float(facts.mean_square()[at[wrong]].sum() / total),
        irreducible_mse=float(max(remains.sum(), 0.0) / total),
        tail_in_range=_occurs(train.tail, train.relation, links.tail, links.relation, n),
        head_in_domain=_occurs(train.head, train.relation, links.head, links.relation, n),
        pair_in_train=float(contains(pairs, pair_keys(links.head, links.tail, n)).mean()),
        examples=tuple(_named(whole, facts, int(place)) for place in at[wrong[:SHOWN]]),
    )


def _named(whole: UncertainGraph, facts: ByTriple, at: int) -> FalseNegative:
    start = int(facts.start[at])
    fact = whole[int(facts.order[start])]
    mean = float(facts.confidence[start : start + int(facts.count[at])].mean())
    return FalseNegative(fact.head, fact.relation, fact.tail, mean)


def _occurs(entity: Ids, relation: Ids, asked_entity: Ids, asked_relation: Ids, n_entities: int) -> float:
    seen = distinct(pair_keys(relation, entity, n_entities, directed=True))
    return float(contains(seen, pair_keys(asked_relation, asked_entity, n_entities, directed=True)).mean())
