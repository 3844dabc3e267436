"""The most confident unseen facts by the model, block by block: never all pairs at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import torch

from ukge.serve.deadlines import Deadline
from ukge.serve.observed import Ids, Observed
from ukge.serve.opinion import Asked, Completion, Stated
from ukge.serve.weights import Weights

BLOCK_ELEMENTS = 1 << 21
"""Scores that are held at once."""

SPARE_SECONDS = 0.5
"""Time kept back for the answer itself."""

Rows = npt.NDArray[np.int64]


class Best:
    """The highest scores so far, with the triples they belong to."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.score = np.zeros(0, dtype=np.float32)
        self.triples: Rows = np.zeros((0, 3), dtype=np.int64)

    def add(self, score: npt.NDArray[np.float32], triples: Rows) -> None:
        """Take in more, and forget what is not among the best."""
        score, triples = np.concatenate([self.score, score]), np.concatenate([self.triples, triples])
        order = np.lexsort((*triples.T[::-1], -score))[: self.limit]
        self.score, self.triples = score[order], triples[order]

    @property
    def least(self) -> float:
        """The score that a candidate must beat."""
        return float(self.score[-1]) if len(self.score) == self.limit else -np.inf


@torch.no_grad()
def complete(weights: Weights, observed: Observed, asked: Asked, deadline: Deadline) -> Completion:
    """Return the unseen facts of the highest confidence; when time is nearly up, those found until then."""
    sides = [(relation, *_candidates(observed, relation, asked.fitting)) for relation in asked.relations]
    best, examined = Best(asked.limit), 0
    for relation, heads, tails in sides:
        for block in _blocks(heads, len(tails)):
            if deadline.left < SPARE_SECONDS:
                break
            _take_block(best, weights, observed, relation, block, tails)
            examined += len(block) * len(tails)
    confidence = weights.confidence_of(best.score)
    kept = confidence >= asked.minimum
    facts = zip(best.triples[kept].tolist(), confidence[kept].tolist(), strict=True)
    return Completion(
        tuple(Stated(head, relation, tail, value) for (head, relation, tail), value in facts),
        examined,
        sum(len(heads) * len(tails) for _, heads, tails in sides),
    )


def _take_block(best: Best, weights: Weights, observed: Observed, relation: int, heads: Ids, tails: Ids) -> None:
    queries = torch.stack([weights.tail_query(head, relation) for head in heads.tolist()])
    scores = weights.scores(queries, weights.entity[torch.from_numpy(tails)])
    for row, head in enumerate(heads.tolist()):
        known = np.append(observed.tails(head, relation).entity, head)
        at = np.searchsorted(tails, known)
        at = at[(at < len(tails)) & (tails[np.minimum(at, len(tails) - 1)] == known)]
        scores[row, torch.from_numpy(at)] = -torch.inf
    flat = scores.flatten()
    top, at_flat = flat.topk(min(len(flat), 1 + best.limit))
    hopeful = (top > best.least) & torch.isfinite(top)
    place = at_flat[hopeful].numpy()
    triples = np.stack([heads[place // len(tails)], np.full(len(place), relation), tails[place % len(tails)]], axis=1)
    best.add(top[hopeful].numpy(), triples)


def _candidates(observed: Observed, relation: int, fitting: bool) -> tuple[Ids, Ids]:
    heads, tails = observed.kind(relation, "head"), observed.kind(relation, "tail")
    return (heads, tails) if fitting else (heads, np.arange(observed.n_entities))


def _blocks(heads: Ids, n_tails: int) -> Iterator[Ids]:
    step = max(1, BLOCK_ELEMENTS // max(1, n_tails))
    for start in range(0, len(heads) if n_tails else 0, step):
        yield heads[start : start + step]
