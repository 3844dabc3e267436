"""Fold-in: new facts and new entities without training anything again.

The vectors of new entities are fitted to their facts with every other weight frozen. A model that gives confidences
gets them by ridge regression where the confidence is linear in a vector, else by gradient steps. One that learnt an
order gets them by the loss it was trained with: a fact's entities are to stand out among others.

The known facts, their index and their sums are made anew, so that all evidence counts the new facts; the mined rules,
the trees and the bounds stay as they were fitted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from ukge.errors import DataError
from ukge.evidence.backbones import Backbone
from ukge.evidence.tables import Tables
from ukge.graph.index import FactIndex, Ranges
from ukge.graph.queries import Floats
from ukge.graph.uncertain import UncertainGraph, concat
from ukge.graph.vocabulary import Ids, Vocabulary
from ukge.models.links import Link, Logistic, links
from ukge.models.scorers import Scorer, scorers
from ukge.models.tables import Parameters

if TYPE_CHECKING:
    from ukge.evidence.evidence import Evidence

RIDGE = 0.1
"""Pull towards the mean entity, in facts of mean size."""

NEGATIVES = 4
"""Links with random entities, taken to be false, for each fact of a new entity; together they weigh as much as it."""

SWEEPS = 5
"""Times that the vectors of new entities which share facts are fitted in turn."""

STEPS, RATE = 300, 0.05
"""Gradient steps where the confidence is not linear in a vector, and their size in deviations of the known vectors."""

RANKING_STEPS, RANKING_RATE = 150, 0.1
"""The same for a model that learnt an order."""

RIVALS = 256
"""Known entities, drawn at random, among which those of a fact are to stand out; they stand for all."""

SHORT = 100.0
"""How much more a vector's length counts here than the pull in a regression: so it is as long as trained ones."""


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
    before = before.taken_as_undirected(old.undirected).with_nodes(evidence.dataset.nodes.joined(new.nodes))
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


@dataclass(frozen=True, eq=False)
class Lessons:
    """Facts of new entities, and links taken to be false, with the confidence to reach and the weight of each."""

    head: Ids
    relation: Ids
    tail: Ids
    confidence: Floats
    weight: Floats


def lessons_of(facts: UncertainGraph, n_old: int, negatives: int, seed: int) -> Lessons:
    """Return the facts of the entities from `n_old` on, and for each some links with random known entities."""
    rows = np.flatnonzero((facts.head >= n_old) | (facts.tail >= n_old))
    head, relation, tail = (column[rows] for column in (facts.head, facts.relation, facts.tail))
    again = np.repeat(np.arange(len(rows)), negatives)
    drawn = np.random.default_rng(seed).integers(n_old, size=len(again)).astype(np.int32)
    new_head = head[again] >= n_old
    subjects, kinds, objects = facts.as_stored(
        np.where(new_head, head[again], drawn), relation[again], np.where(new_head, drawn, tail[again])
    )
    return Lessons(
        np.concatenate([head, subjects]),
        np.concatenate([relation, kinds]),
        np.concatenate([tail, objects]),
        np.concatenate([facts.confidence[rows], np.zeros(len(again))]),
        np.concatenate([np.ones(len(rows)), np.full(len(again), 1.0 / max(negatives, 1))]),
    )


def widened(backbone: Backbone, lessons: Lessons, n: int, ridge: float) -> Backbone:
    """Return a model of n entities: those it has stay as they are, and the others learn from their lessons."""
    old = backbone.parameters
    n_old = len(old.entity)
    if n == n_old:
        return backbone
    mean = old.entity.mean(axis=0, dtype=np.float64).astype(np.float32)
    entity = np.ascontiguousarray(np.concatenate([old.entity, np.tile(mean, (n - n_old, 1))]))
    fitted = replace(old, entity=entity)
    shared = {name: torch.from_numpy(table.copy()) for name, table in old.shared.items()}
    scorer, link = scorers.get(backbone.scorer).bound(shared), links.get(backbone.link)
    if not backbone.learns_confidence:
        _stand_out(fitted, scorer, lessons, n_old, ridge)
    elif scorer.inner_product and not isinstance(link, Logistic):
        _solve(fitted, scorer, link, lessons, n_old, ridge)
    else:
        _descend(fitted, scorer, link, lessons, n_old)
    return replace(backbone, parameters=fitted)


def _solve(parameters: Parameters, scorer: Scorer, link: Link, lessons: Lessons, n_old: int, ridge: float) -> None:
    """Fit each new vector by ridge regression, in turn, with all other vectors frozen."""
    weight, bias = (float(each) for each in parameters.link) if link.bounded else (1.0, 0.0)
    target = (lessons.confidence - bias) / (weight if abs(weight) > 1e-6 else 1e-6)
    entity, kinds = torch.from_numpy(parameters.entity), torch.from_numpy(parameters.relation)
    mean = parameters.entity[n_old].astype(np.float64)
    ends = [(lessons.head, lessons.tail), (lessons.tail, lessons.head)]
    by_end = [Ranges.of(own.astype(np.int64)) for own, _ in ends]
    for _ in range(SWEEPS):
        for new in range(n_old, len(parameters.entity)):
            found = [rows.of_key(new) for rows in by_end]
            # A fact of an entity with itself is not linear in its vector.
            as_head, as_tail = (rows[lessons.head[rows] != lessons.tail[rows]] for rows in found)
            rows = np.concatenate([as_head, as_tail])
            if len(rows) == 0:
                continue
            by_head = scorer.head_query(kinds[lessons.relation[as_head]], entity[lessons.tail[as_head]])
            by_tail = scorer.tail_query(entity[lessons.head[as_tail]], kinds[lessons.relation[as_tail]])
            queries = torch.cat([by_head, by_tail]).numpy().astype(np.float64)
            weighted = queries * lessons.weight[rows][:, None]
            size = ridge * max(float(np.mean(np.sum(queries**2, axis=1))), 1e-12)
            hessian = weighted.T @ queries + size * np.eye(queries.shape[1])
            parameters.entity[new] = mean + np.linalg.solve(hessian, weighted.T @ (target[rows] - queries @ mean))


def _descend(parameters: Parameters, scorer: Scorer, link: Link, lessons: Lessons, n_old: int) -> None:
    """Fit the new vectors together to the confidences of their lessons, by squared error."""
    kinds = torch.from_numpy(parameters.relation[lessons.relation])
    wanted, share = (torch.from_numpy(each.astype(np.float32)) for each in (lessons.confidence, lessons.weight))
    weight, bias = torch.from_numpy(parameters.link.copy()).unbind()

    def loss(head: Tensor, tail: Tensor, new: Tensor) -> Tensor:  # noqa: ARG001
        predicted = link.forward(scorer.plausibility(head, kinds, tail), weight, bias)
        return (share * (predicted - wanted).square()).sum()

    _take_steps(parameters, lessons.head, lessons.tail, n_old, loss, STEPS, RATE)


def _stand_out(parameters: Parameters, scorer: Scorer, lessons: Lessons, n_old: int, ridge: float) -> None:
    """Fit the new vectors together by the softmax loss of both queries of each fact."""
    facts = np.flatnonzero(lessons.confidence > 0.0)
    kinds = torch.from_numpy(parameters.relation[lessons.relation[facts]])
    share = torch.from_numpy(lessons.confidence[facts].astype(np.float32))
    drawn = np.random.default_rng(len(facts)).permutation(n_old)[:RIVALS]
    rivals, missing = torch.from_numpy(parameters.entity[drawn]), float(np.log(n_old / len(drawn)))
    length = float(np.mean(np.sum(parameters.entity[:n_old] ** 2, axis=1)))

    def loss(head: Tensor, tail: Tensor, new: Tensor) -> Tensor:
        total = SHORT * ridge / length * new.square().sum()
        for query, answer in ((scorer.tail_query(head, kinds), tail), (scorer.head_query(kinds, tail), head)):
            own = scorer.compare(query, answer)
            others = torch.logsumexp(scorer.compare_all(query, rivals), dim=1) + missing
            total = total + (share * (torch.logaddexp(own, others) - own)).sum()
        return total

    _take_steps(parameters, lessons.head[facts], lessons.tail[facts], n_old, loss, RANKING_STEPS, RANKING_RATE)


def _take_steps(
    parameters: Parameters,
    head: Ids,
    tail: Ids,
    n_old: int,
    loss: Callable[[Tensor, Tensor, Tensor], Tensor],
    steps: int,
    rate: float,
) -> None:
    """Lower a loss of the heads' vectors, the tails' and the new ones among them by gradient steps on the new ones."""
    used, places = np.unique(np.concatenate([head, tail]), return_inverse=True)
    at_head, at_tail = torch.from_numpy(places.reshape(2, -1)).unbind()
    n_known = int(np.searchsorted(used, n_old))
    known = torch.from_numpy(parameters.entity[used[:n_known]])
    new = torch.from_numpy(parameters.entity[used[n_known:]]).requires_grad_()
    descent = torch.optim.Adam([new], lr=rate * float(parameters.entity[:n_old].std()))
    for _ in range(steps):
        every = torch.cat([known, new])
        descent.zero_grad()
        loss(every[at_head], every[at_tail], new).backward()  # type: ignore[no-untyped-call]
        descent.step()
    parameters.entity[used[n_known:]] = new.detach().numpy()
