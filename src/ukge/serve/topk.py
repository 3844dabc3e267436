"""The k best entities for a query: exactly, block by block; or approximately by an index, behind the same call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ukge.serve.deadlines import Deadline
from ukge.serve.weights import Weights

Ids = npt.NDArray[np.int64]

BLOCK_ELEMENTS = 1 << 21
"""Scores that are held at once."""

SMALL_SHARE = 8
"""Candidates fewer than one in so many are looked up; of more, the whole table is scored and the others struck out."""

NOBODY = np.zeros(0, dtype=np.int64)


class Found(NamedTuple):
    """The best entities of one query, best first, and their scores."""

    entity: Ids
    score: npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Wanted:
    """One query: its vector, how many answers, which entities may be answers (None for all) and which may not."""

    query: Tensor
    k: int
    among: Ids | None = None
    without: Ids = field(default_factory=lambda: NOBODY)


class Searcher(Protocol):
    """Finds the best entities of several queries at once."""

    def search(self, wanted: Sequence[Wanted], deadline: Deadline) -> list[Found]:
        """Return the answers of each query; fewer than k where there are no more candidates."""

    def describe(self) -> dict[str, object]:
        """Return what kind of search this is, for people who ask the service about itself."""


class ExactSearch:
    """Scores every candidate. Blocks bound the memory; queries that wait together share one pass over the table."""

    def __init__(self, weights: Weights, block_elements: int = BLOCK_ELEMENTS) -> None:
        self.weights = weights
        self._block = block_elements

    def describe(self) -> dict[str, object]:
        """Return that the search is exact."""
        return {"kind": "exact", "recall": 1.0}

    @torch.no_grad()
    def search(self, wanted: Sequence[Wanted], deadline: Deadline) -> list[Found]:
        """Return the answers of each query."""
        found: dict[int, Found] = {}
        together = []
        for place, one in enumerate(wanted):
            if one.among is not None and len(one.among) * SMALL_SHARE < self.weights.n_entities:
                deadline.check()
                found[place] = self._among(one, one.among)
            else:
                together.append(place)
        if together:
            answers = self._everywhere([wanted[place] for place in together], deadline)
            found.update(zip(together, answers, strict=True))
        return [found[place] for place in range(len(wanted))]

    def _among(self, one: Wanted, among: Ids) -> Found:
        kept = np.setdiff1d(among, one.without) if len(one.without) else among
        rows = self.weights.entity[torch.from_numpy(kept)]
        return best(kept, self.weights.scores(one.query[None], rows)[0], one.k)

    def _everywhere(self, wanted: Sequence[Wanted], deadline: Deadline) -> list[Found]:
        queries = torch.stack([one.query for one in wanted])
        outside = [_outside(one, self.weights.n_entities) for one in wanted]
        step = max(1, self._block // len(wanted))
        parts: list[list[Found]] = [[] for _ in wanted]
        for start in range(0, self.weights.n_entities, step):
            deadline.check()
            stop = min(start + step, self.weights.n_entities)
            scores = self.weights.scores(queries, self.weights.entity[start:stop])
            for row, one in enumerate(wanted):
                first, last = np.searchsorted(outside[row], (start, stop))
                scores[row, torch.from_numpy(outside[row][first:last] - start)] = -torch.inf
                top, at = scores[row].topk(min(one.k, stop - start))
                parts[row].append(Found(at.numpy() + start, top.numpy()))
        return [_joined(each, one.k) for each, one in zip(parts, wanted, strict=True)]


def best(entity: Ids, scores: Tensor, k: int) -> Found:
    """Return the k entities with the highest scores; of equal ones, the one with the lower id comes first."""
    top, at = scores.topk(min(k, len(entity)))
    return _joined([Found(entity[at.numpy()], top.numpy())], k)


def _joined(parts: Sequence[Found], k: int) -> Found:
    entity = np.concatenate([part.entity for part in parts])
    score = np.concatenate([part.score for part in parts])
    kept = np.isfinite(score)
    entity, score = entity[kept], score[kept]
    order = np.lexsort((entity, -score))[:k]
    return Found(entity[order], score[order])


def _outside(one: Wanted, n_entities: int) -> Ids:
    """Return, sorted, the entities that are no candidates."""
    if one.among is None:
        return np.unique(one.without)
    inside = np.zeros(n_entities, dtype=np.bool_)
    inside[one.among] = True
    inside[one.without] = False
    return np.flatnonzero(~inside)
