"""Negative links that are not negative, and the error they force on an honest model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ukge.graph.dataset import Dataset
from ukge.graph.index import FactIndex, Triples

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


def examine_negatives(dataset: Dataset, facts: FactIndex, known: FactIndex) -> Negatives | None:
    """Examine the negative links of a data set; `facts` are all that it observes, `known` those of train."""
    links = dataset.negatives
    if links is None or len(links) == 0:
        return None
    at = facts.find(links.head, links.relation, links.tail)
    wrong = np.flatnonzero(at >= 0)
    asked = Triples.of_rows(
        np.concatenate([dataset.test.keys(), links.keys()]),
        np.concatenate([dataset.test.confidence, links.confidence]),
    )
    remains = (asked.mean_square - asked.mean**2) * asked.count
    total = len(dataset.test) + len(links)
    return Negatives(
        rows=len(links),
        facts=len(wrong),
        share=len(wrong) / len(links),
        floor_mse=float(facts.triples.mean_square[at[wrong]].sum() / total),
        irreducible_mse=float(max(remains.sum(), 0.0) / total),
        tail_in_range=float(known.occurs(links.tail, links.relation, "tail").mean()),
        head_in_domain=float(known.occurs(links.head, links.relation, "head").mean()),
        pair_in_train=float(known.linked(links.head, links.tail).mean()),
        examples=tuple(_named(facts, int(place)) for place in at[wrong[:SHOWN]]),
    )


def _named(facts: FactIndex, at: int) -> FalseNegative:
    fact = facts.named(int(facts.triples.first[at]))
    return FalseNegative(fact.head, fact.relation, fact.tail, float(facts.triples.mean[at]))
