"""Where facts stand among all candidates, counted, not sorted, and what is made of it: nDCG, MRR, hits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ukge.compiled import kernel
from ukge.evaluation.metric import MEAN_RANK, Means, Measured, metric
from ukge.graph.index import Ranges
from ukge.graph.queries import Answers, AnyIds, Floats, Numbers, Places, Queries, Ranker, Side
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Ids

Ranks = Floats

BLOCK_BYTES = 16 << 20
"""What the all-entity scores of one block of queries may take."""

STRETCH = 4096
"""Candidates that a 32-bit counter counts before it is added up; short counters fill the vector registers."""


class RawAndFiltered(NamedTuple):
    """Ranks among all candidates, and among those that are not known answers."""

    raw: Ranks
    filtered: Ranks


@kernel(nogil=True)
def _count(scores, row, entity, skip_from, skip_to, skip, raw, filtered):  # type: ignore[no-untyped-def]
    n = scores.shape[1]
    for i in range(len(row)):
        line, e = scores[row[i]], entity[i]
        own = line[e]
        above, level = 0, 0
        for start in range(0, n, STRETCH):
            higher, not_lower = np.int32(0), np.int32(0)
            for c in range(start, min(n, start + STRETCH)):
                higher = np.int32(higher + np.int32(line[c] > own))
                not_lower = np.int32(not_lower + np.int32(line[c] >= own))
            above += int(higher)
            level += int(not_lower)
        # A score that is not a number compares with nothing, not even itself: it ranks last, never first.
        raw[i] = (above + level + 1) / 2 if level > 0 else n
        others = 0
        for s in range(skip_from[i], skip_to[i]):
            other = skip[s]
            if other != e:
                others += 1
                above -= line[other] > own
                level -= line[other] >= own
        filtered[i] = (above + level + 1) / 2 if level > 0 else n - others


def ranks_of(ranker: Ranker, queries: Queries, query: AnyIds, entity: AnyIds, known: Answers) -> RawAndFiltered:
    """Return the rank, from 1, of entity[i] among all answers to queries[query[i]]; ties share the mean of their ranks.

    `query` ascends, so that the all-entity scores of a block of queries are made once and fit the memory limit. Where
    ranks are filtered, the `known` answers of a query do not count, but for the entity itself.
    """
    result = RawAndFiltered(np.empty(len(query)), np.empty(len(query)))
    step = max(1, BLOCK_BYTES // (4 * max(1, ranker.n_entities)))
    skip = known.entity.astype(np.int32, copy=False)
    for start in range(0, len(queries), step):
        first, last = np.searchsorted(query, [start, start + step])
        if first < last:
            asked = query[first:last].astype(np.int64)
            scores = np.ascontiguousarray(queries[start : start + step].scores(ranker))
            ranks = result.raw[first:last], result.filtered[first:last]
            places = entity[first:last].astype(np.int64)
            _count(scores, asked - start, places, known.offsets[asked], known.offsets[asked + 1], skip, *ranks)
    return result


@dataclass(frozen=True, eq=False)
class RankedFacts:
    """Facts, ordered by the query that asks for their tail (or head): each query is scored once for all its facts."""

    queries: Queries
    order: Places
    query: Places
    answer: Ids

    @classmethod
    def of(cls, facts: UncertainGraph, side: Side) -> RankedFacts:
        """Group facts by query."""
        given, answer = (facts.head, facts.tail) if side == "tail" else (facts.tail, facts.head)
        groups = Ranges.of(facts.relation.astype(np.int64) * facts.n_entities + given)
        relation, entity = np.divmod(groups.keys, facts.n_entities)
        query = np.repeat(np.arange(len(groups)), groups.count)
        return cls(Queries.of(side, entity, relation), groups.rows, query, answer[groups.rows])

    def ranks(self, ranker: Ranker, known: Answers) -> RawAndFiltered:
        """Return the ranks of the facts, in their own order; `known` are answers of the queries to be left out."""
        found = ranks_of(ranker, self.queries, self.query, self.answer, known)
        ranks = RawAndFiltered(np.empty_like(found.raw), np.empty_like(found.filtered))
        ranks.raw[self.order], ranks.filtered[self.order] = found
        return ranks


@dataclass(frozen=True, slots=True)
class Ndcg:
    """Mean nDCG over queries, with linear gain s and with exponential gain 2^s − 1; higher is better."""

    linear: float = metric("nDCG linear", "higher", ties=MEAN_RANK)
    exponential: float = metric("nDCG exponential", "higher", ties=MEAN_RANK)
    queries: int = 0


def ndcg(ranks: Ranks, gains: Numbers, query: AnyIds) -> Ndcg:
    """Return the mean nDCG from the rank and the gain of every relevant tail, ordered by query.

    Tails without a gain add nothing, wherever they stand, so only the relevant ones are given. Queries whose gains are
    all 0 have no order to get right and are left out.
    """
    sample = ndcg_sample(ranks, gains, query)
    return Ndcg(**sample.point(), queries=sample.units)


def ndcg_sample(ranks: Ranks, gains: Numbers, query: AnyIds) -> Means:
    """Return the nDCG query by query, to draw from."""
    confidence = np.asarray(gains, dtype=np.float64)
    linear = per_query_ndcg(ranks, confidence, query)
    exponential = per_query_ndcg(ranks, np.exp2(confidence) - 1.0, query)
    return Means([linear, exponential], lambda means: {"linear": means[:, 0], "exponential": means[:, 1]})


def per_query_ndcg(ranks: Ranks, gains: Floats, query: AnyIds) -> Floats:
    """Return the nDCG of each query that has a gain, in the order of queries."""
    ids, group = np.unique(query, return_inverse=True)
    reached = np.bincount(group, weights=gains / np.log2(1.0 + ranks), minlength=len(ids))
    order = np.lexsort((-gains, group))
    starts = np.searchsorted(group[order], np.arange(len(ids)))
    place = np.arange(len(order)) - starts[group[order]] + 1
    ideal = np.bincount(group[order], weights=gains[order] / np.log2(1.0 + place), minlength=len(ids))
    return reached[ideal > 0] / ideal[ideal > 0]


HITS = (1, 3, 10, 20, 40)


@dataclass(frozen=True, slots=True)
class LinkMetrics:
    """Mean rank, mean reciprocal rank and hits at k, and the same weighted by the confidence s of each fact.

    WMR = Σ s·rank / Σ s, WMRR = Σ s/rank / Σ s, WHits@k = Σ s·[rank ≤ k] / Σ s.
    """

    mr: float = metric("MR", "lower", ties=MEAN_RANK, digits=1)
    mrr: float = metric("MRR", "higher", ties=MEAN_RANK)
    hits_1: float = metric("Hits@1", "higher", ties=MEAN_RANK)
    hits_3: float = metric("Hits@3", "higher", ties=MEAN_RANK)
    hits_10: float = metric("Hits@10", "higher", ties=MEAN_RANK)
    hits_20: float = metric("Hits@20", "higher", ties=MEAN_RANK)
    hits_40: float = metric("Hits@40", "higher", ties=MEAN_RANK)
    wmr: float = metric("WMR", "lower", ties=MEAN_RANK, digits=1)
    wmrr: float = metric("WMRR", "higher", ties=MEAN_RANK)
    whits_1: float = metric("WHits@1", "higher", ties=MEAN_RANK)
    whits_3: float = metric("WHits@3", "higher", ties=MEAN_RANK)
    whits_10: float = metric("WHits@10", "higher", ties=MEAN_RANK)
    whits_20: float = metric("WHits@20", "higher", ties=MEAN_RANK)
    whits_40: float = metric("WHits@40", "higher", ties=MEAN_RANK)
    facts: int = 0


def link_metrics(*sides: Ranks, confidence: Numbers) -> LinkMetrics:
    """Return the metrics of ranked facts; given the ranks of both sides, their average."""
    sample = link_sample(*sides, confidence=confidence)
    return LinkMetrics(**sample.point(), facts=sample.units)


def link_sample(*sides: Ranks, confidence: Numbers) -> Means:
    """Return what each fact adds, to draw from; a fact's sides are drawn together."""
    kinds = [np.mean(each, axis=0) for each in zip(*(_kinds(ranks) for ranks in sides), strict=True)]
    weight = np.asarray(confidence, dtype=np.float64)
    return Means([weight, *kinds, *(weight * kind for kind in kinds)], _combine)


def _kinds(ranks: Ranks) -> list[Floats]:
    return [ranks, 1.0 / ranks, *((ranks <= k).astype(np.float64) for k in HITS)]


def _combine(means: Floats) -> Measured:
    names = ["mr", "mrr", *(f"hits_{k}" for k in HITS)]
    plain = {name: means[:, 1 + at] for at, name in enumerate(names)}
    weighted = {f"w{name}": means[:, 1 + len(names) + at] / means[:, 0] for at, name in enumerate(names)}
    return {**plain, **weighted}
