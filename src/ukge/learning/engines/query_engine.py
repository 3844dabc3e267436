"""1-vs-all by query: the same objective as fact by fact, but what facts share is computed once.

Against every entity, a fact costs a product with the whole table for each of its two queries, and many facts have the
same query: 2 on average on NL27k, 4 on CN15k, 24 on PPI5k. So a step here is about queries and all their known answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ukge.graph.index import Ranges
from ukge.learning.data import TrainingData
from ukge.learning.engines.torch_engine import OnDevice
from ukge.learning.engines.torch_optimisers import Gradient
from ukge.learning.objective import log_total
from ukge.learning.sampling import epoch_order
from ukge.models.scorers import Scorer, scorers
from ukge.models.tables import Parameters
from ukge.settings.config import Config


def applies(config: Config) -> bool:
    """Return whether `config` asks for softmax over all entities and nothing that needs single facts."""
    objective, sampling = config.objective, config.sampling
    scorer = scorers.get(config.model.scorer)
    own_penalty = type(scorer).penalty is not Scorer.penalty
    return (
        not config.model.encodes
        and objective.loss == "softmax"
        and sampling.sampler == "exhaustive"
        and not sampling.in_range
        and not objective.rule_weight
        and not objective.rule_prior
        and not (own_penalty and objective.l2)
        and not scorer.shared_parts(config.model.dim)
    )


@dataclass(frozen=True, eq=False)
class Queries:
    """All queries of the facts, (h, r, ?) first, then (?, r, t); the answers of q are `start[q]:start[q + 1]`."""

    given: npt.NDArray[np.int64]
    relation: npt.NDArray[np.int64]
    start: npt.NDArray[np.int64]
    answer: npt.NDArray[np.int64]
    confidence: npt.NDArray[np.float32]
    for_tails: int

    @classmethod
    def of(cls, data: TrainingData) -> Queries:
        """Group the facts by head and relation, and by relation and tail."""
        n = len(data)
        side = np.repeat([0, 1], n)
        given, answer = np.concatenate([data.head, data.tail]), np.concatenate([data.tail, data.head])
        relation, confidence = np.tile(data.relation, 2), np.tile(data.confidence, 2)
        key = (side * data.n_relations + relation) * data.n_entities + given
        groups = Ranges.of(key)
        first = groups.rows[groups.start[:-1]]
        return cls(
            given=given[first].astype(np.int64),
            relation=relation[first].astype(np.int64),
            start=groups.start,
            answer=answer[groups.rows].astype(np.int64),
            confidence=confidence[groups.rows],
            for_tails=int(np.searchsorted(groups.start[:-1], n)),
        )

    def __len__(self) -> int:
        return len(self.given)


class QueryEngine(OnDevice):
    """Trains on the queries of both sides. A step is about as many facts as a batch holds."""

    def __init__(self, parameters: Parameters, data: TrainingData, config: Config, scorer: Scorer) -> None:
        super().__init__(parameters, data, config)
        self._scorer = scorer
        self._queries = Queries.of(data)

    @property
    def _names(self) -> Sequence[str]:
        return ("softmax", "l2") if self._config.objective.l2 else ("softmax",)

    def _steps(self, number: int) -> Iterator[tuple[Tensor, int]]:
        order = epoch_order(len(self._queries), self._config.runtime.seed, number)
        answers = np.cumsum(np.diff(self._queries.start)[order])
        # Every fact is an answer of two queries, so a batch of b facts is one of 2b answers.
        batch = (answers - 1) // (2 * self._config.optimiser.batch_size)
        ends = np.append(np.flatnonzero(np.diff(batch)) + 1, len(order))
        begin = told = 0
        for end in ends.tolist():
            facts = int(answers[end - 1]) // 2
            yield self._step(np.sort(order[begin:end])), facts - told
            begin, told = end, facts

    def _step(self, queries: npt.NDArray[np.int64]) -> Tensor:
        leaves = {name: self.tables[name].detach().requires_grad_() for name in ("entity", "relation")}
        values = self._terms(leaves["entity"], leaves["relation"], queries)
        found = torch.autograd.grad(values.sum(), list(leaves.values()))
        self._optimiser.step({name: Gradient(part) for name, part in zip(leaves, found, strict=True)})
        return values.detach()

    def _terms(self, entity: Tensor, relation: Tensor, queries: npt.NDArray[np.int64]) -> Tensor:
        """Return the terms of the objective: means over the facts, of which every answer is a half."""
        known = self._queries
        size = known.start[queries + 1] - known.start[queries]
        place = np.repeat(known.start[queries] - np.cumsum(size) + size, size) + np.arange(size.sum())
        query = self._tensor(np.repeat(np.arange(len(queries)), size))
        answer, confidence = self._tensor(known.answer[place]), self._tensor(known.confidence[place])
        given = entity.index_select(0, self._tensor(known.given[queries]))
        kind = relation.index_select(0, self._tensor(known.relation[queries]))
        tails = int(np.searchsorted(queries, known.for_tails))
        asked = torch.cat(
            [self._scorer.tail_query(given[:tails], kind[:tails]), self._scorer.head_query(kind[tails:], given[tails:])]
        )
        scores = self._scorer.compare_all(asked, entity)
        # Taken out of all scores, it would have a gradient as large as those.
        own = self._scorer.compare(asked.index_select(0, query), entity.index_select(0, answer))
        if self._config.sampling.filter_observed:
            unknown = torch.ones_like(scores, dtype=torch.bool)
            unknown[query, answer] = False
            total = torch.logaddexp(log_total(scores, unknown)[query], own)
        else:
            total = log_total(scores, None)[query]
        terms = [2.0 * (confidence * (total - own)).mean()]
        if self._config.objective.l2:
            rows = given.square().sum(dim=1)
            if not self._scorer.phases:
                rows = rows + kind.square().sum(dim=1)
            squares = rows[query] + entity.square().sum(dim=1)[answer]
            terms.append(self._config.objective.l2 * 0.5 * squares.mean())
        return torch.stack(terms)

    def _tensor(self, array: npt.NDArray[Any]) -> Tensor:
        return torch.from_numpy(array).to(self.device)
