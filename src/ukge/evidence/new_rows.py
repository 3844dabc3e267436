"""Vectors for names that no training saw: fitted to their facts with every other weight frozen.

A model that gives confidences gets them by ridge regression where the confidence is linear in a vector, else by
gradient steps. One that learnt an order gets them by the loss it was trained with: a fact's entities are to stand out
among others. New relations get theirs by gradient steps, together with the new entities of their facts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ukge.evidence.backbones import Backbone
from ukge.graph.index import Ranges
from ukge.graph.queries import Floats
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Ids
from ukge.models.links import Link, Logistic, links
from ukge.models.scorers import Scorer, scorers
from ukge.models.tables import Parameters

RIDGE = 0.1
"""Pull towards the mean entity, in facts of mean size."""

NEGATIVES = 4
"""Links with random entities, taken to be false, for each fact of a new name; together they weigh as much as it."""

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

MOST = 20_000
"""Facts that new vectors are fitted to at once; of more, so many are drawn."""


class Sizes(NamedTuple):
    """How many entities and relations there are."""

    entities: int
    relations: int


@dataclass(frozen=True, eq=False)
class Free:
    """The names whose vectors are fitted, by ids that rise, and how many names the training saw: theirs stay."""

    entities: Ids
    relations: Ids
    trained: Sizes

    @classmethod
    def of(cls, facts: UncertainGraph, trained: Sizes) -> Free:
        """Return the names of some facts that the training did not see."""
        ends = np.unique(np.concatenate([facts.head, facts.tail])).astype(np.int32)
        kinds = np.unique(facts.relation).astype(np.int32)
        return cls(ends[ends >= trained.entities], kinds[kinds >= trained.relations], trained)


@dataclass(frozen=True, eq=False)
class Lessons:
    """Facts of new names, and links taken to be false, with the confidence to reach and the weight of each."""

    head: Ids
    relation: Ids
    tail: Ids
    confidence: Floats
    weight: Floats


def lessons_of(facts: UncertainGraph, free: Free, negatives: int = NEGATIVES, seed: int = 0) -> Lessons:
    """Return the facts of the names that are fitted, and for each some links with random known entities."""
    new_head, new_tail = (np.isin(ends, free.entities) for ends in (facts.head, facts.tail))
    rows = np.flatnonzero(new_head | new_tail | np.isin(facts.relation, free.relations))
    chance = np.random.default_rng(seed)
    if len(rows) > MOST:
        rows = np.sort(chance.choice(rows, MOST, replace=False))
    head, relation, tail = (column[rows] for column in (facts.head, facts.relation, facts.tail))
    again = np.repeat(np.arange(len(rows)), negatives)
    drawn = chance.integers(free.trained.entities, size=len(again)).astype(np.int32)
    kept = (new_head | ~new_tail)[rows][again]
    subjects, kinds, objects = facts.as_stored(
        np.where(kept, head[again], drawn), relation[again], np.where(kept, drawn, tail[again])
    )
    return Lessons(
        np.concatenate([head, subjects]),
        np.concatenate([relation, kinds]),
        np.concatenate([tail, objects]),
        np.concatenate([facts.confidence[rows], np.zeros(len(again))]),
        np.concatenate([np.ones(len(rows)), np.full(len(again), 1.0 / max(negatives, 1))]),
    )


def with_room(backbone: Backbone, trained: Sizes, sizes: Sizes) -> Backbone:
    """Return a model with rows for so many names; those it has not yet are the mean of those that were trained."""
    old = backbone.parameters
    tables = []
    for table, known, size in zip((old.entity, old.relation), trained, sizes, strict=True):
        mean = table[:known].mean(axis=0, dtype=np.float64).astype(np.float32)
        more = size - len(table)
        tables.append(np.ascontiguousarray(np.concatenate([table, np.tile(mean, (more, 1))])) if more else table)
    undirected = backbone.undirected
    if undirected is not None and sizes.relations > len(undirected):
        undirected = np.append(undirected, np.zeros(sizes.relations - len(undirected), dtype=np.bool_))
    parameters = Parameters(tables[0], tables[1], old.link, old.shared)
    return replace(backbone, parameters=parameters, undirected=undirected)


def widened(backbone: Backbone, lessons: Lessons, free: Free, ridge: float = RIDGE) -> Backbone:
    """Return a model whose free names have learnt from their lessons; all others stay as they are."""
    if not len(free.entities) and not len(free.relations):
        return backbone
    old = backbone.parameters
    fitted = replace(old, entity=old.entity.copy(), relation=old.relation.copy())
    shared = {name: torch.from_numpy(table.copy()) for name, table in old.shared.items()}
    scorer, link = scorers.get(backbone.scorer).bound(shared), links.get(backbone.link)
    if not backbone.learns_confidence:
        _stand_out(fitted, scorer, lessons, free, ridge)
    elif scorer.inner_product and not isinstance(link, Logistic) and not len(free.relations):
        _solve(fitted, scorer, link, lessons, free, ridge)
    else:
        _descend(fitted, scorer, link, lessons, free)
    return replace(backbone, parameters=fitted)


def _solve(parameters: Parameters, scorer: Scorer, link: Link, lessons: Lessons, free: Free, ridge: float) -> None:
    """Fit each new vector by ridge regression, in turn, with all other vectors frozen."""
    weight, bias = (float(each) for each in parameters.link) if link.bounded else (1.0, 0.0)
    target = (lessons.confidence - bias) / (weight if abs(weight) > 1e-6 else 1e-6)
    entity, kinds = torch.from_numpy(parameters.entity), torch.from_numpy(parameters.relation)
    mean = parameters.entity[: free.trained.entities].mean(axis=0, dtype=np.float64)
    ends = [(lessons.head, lessons.tail), (lessons.tail, lessons.head)]
    by_end = [Ranges.of(own.astype(np.int64)) for own, _ in ends]
    for _ in range(SWEEPS):
        for new in free.entities.tolist():
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


Loss = Callable[[Tensor, Tensor, Tensor, Tensor, Tensor], Tensor]
"""Of the rows of heads, relations and tails, and of the rows of entities and relations that are fitted."""


def _descend(parameters: Parameters, scorer: Scorer, link: Link, lessons: Lessons, free: Free) -> None:
    """Fit the new vectors together to the confidences of their lessons, by squared error."""
    wanted, share = (torch.from_numpy(each.astype(np.float32)) for each in (lessons.confidence, lessons.weight))
    weight, bias = torch.from_numpy(parameters.link.copy()).unbind()

    def loss(head: Tensor, kinds: Tensor, tail: Tensor, entities: Tensor, relations: Tensor) -> Tensor:  # noqa: ARG001
        predicted = link.forward(scorer.plausibility(head, kinds, tail), weight, bias)
        return (share * (predicted - wanted).square()).sum()

    _take_steps(parameters, (lessons.head, lessons.relation, lessons.tail), free, loss, STEPS, RATE)


def _stand_out(parameters: Parameters, scorer: Scorer, lessons: Lessons, free: Free, ridge: float) -> None:
    """Fit the new vectors together by the softmax loss of both queries of each fact."""
    facts = np.flatnonzero(lessons.confidence > 0.0)
    share = torch.from_numpy(lessons.confidence[facts].astype(np.float32))
    n_old = free.trained.entities
    drawn = np.random.default_rng(len(facts)).permutation(n_old)[:RIVALS]
    rivals, missing = torch.from_numpy(parameters.entity[drawn]), float(np.log(n_old / len(drawn)))
    tables = parameters.entity[:n_old], parameters.relation[: free.trained.relations]
    lengths = [float(np.mean(np.sum(table**2, axis=1))) for table in tables]

    def loss(head: Tensor, kinds: Tensor, tail: Tensor, entities: Tensor, relations: Tensor) -> Tensor:
        pulled = zip((entities, relations), lengths, strict=True)
        total = torch.stack([SHORT * ridge / length * new.square().sum() for new, length in pulled]).sum()
        for query, answer in ((scorer.tail_query(head, kinds), tail), (scorer.head_query(kinds, tail), head)):
            own = scorer.compare(query, answer)
            others = torch.logsumexp(scorer.compare_all(query, rivals), dim=1) + missing
            total = total + (share * (torch.logaddexp(own, others) - own)).sum()
        return total

    ids = lessons.head[facts], lessons.relation[facts], lessons.tail[facts]
    _take_steps(parameters, ids, free, loss, RANKING_STEPS, RANKING_RATE)


def _take_steps(
    parameters: Parameters, facts: tuple[Ids, Ids, Ids], free: Free, loss: Loss, steps: int, rate: float
) -> None:
    """Lower a loss of the facts' rows by gradient steps on those that are free."""
    head, relation, tail = facts
    entities = _Table(parameters.entity, free.entities, np.concatenate([head, tail]), free.trained.entities, rate)
    relations = _Table(parameters.relation, free.relations, relation, free.trained.relations, rate)
    at_head, at_tail = entities.places.reshape(2, -1).unbind()
    descent = torch.optim.Adam([entities.group, relations.group])
    for _ in range(steps):
        rows, kinds = entities.rows(), relations.rows()
        descent.zero_grad()
        value = loss(rows[at_head], kinds[relations.places], rows[at_tail], entities.free, relations.free)
        value.backward()  # type: ignore[no-untyped-call]
        descent.step()
    for each in (entities, relations):
        each.keep()


class _Table:
    """The rows of one table that facts use, of which some are free."""

    def __init__(self, table: npt.NDArray[np.float32], free: Ids, used: Ids, trained: int, rate: float) -> None:
        self._table, self._ids = table, free
        ids, places = np.unique(np.concatenate([used, free]), return_inverse=True)
        self.places = torch.from_numpy(places[: len(used)])
        self._start = torch.from_numpy(table[ids])
        self._at = torch.from_numpy(np.searchsorted(ids, free))
        self.free = torch.from_numpy(table[free]).requires_grad_()
        self.group = {"params": [self.free], "lr": rate * float(table[:trained].std())}

    def rows(self) -> Tensor:
        """Return the rows with the free ones as they are now."""
        return self._start.index_copy(0, self._at, self.free) if len(self._ids) else self._start

    def keep(self) -> None:
        """Write the free rows back."""
        self._table[self._ids] = self.free.detach().numpy()
