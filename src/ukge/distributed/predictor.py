"""Predicting with a sharded table: the first rank asks, all ranks answer, each for its own shard."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed as dist
from torch import Tensor

from ukge.distributed.engine import DistributedEngine
from ukge.models.model import Ids, Ranking

STOP, CONFIDENCE, TAILS, HEADS, TOP_TAILS, TOP_HEADS = range(6)
FACTS = 1 << 16
"""Facts of one block of confidences."""
SCORES = 1 << 24
"""Scores that a rank holds of one block of queries."""


class ShardedPredictor:
    """What `ukge.models.model.Model` is for one process. Only the first rank may ask, inside `answering`.

    For a query, each rank scores the entities of its own shard, and scores travel, not rows; for the k best, k scores
    of each rank do.
    """

    def __init__(self, engine: DistributedEngine) -> None:
        self._engine = engine
        self._world = engine.world
        self._table = engine.table

    @property
    def n_entities(self) -> int:
        """How many entities can be an answer."""
        return self._table.shape[0]

    def confidence(self, head: Ids, relation: Ids, tail: Ids) -> npt.NDArray[np.float32]:
        """Return f(h, r, t) of each fact; with a bounded link, within [0, 1]."""
        out = np.empty(len(head), dtype=np.float32)
        for rows in _blocks(len(head), FACTS):
            out[rows] = self._ask(CONFIDENCE, 0, head[rows], relation[rows], tail[rows])[0].numpy()
        return out

    def tail_scores(self, head: Ids, relation: Ids) -> npt.NDArray[np.float32]:
        """Return for each query (h, r, ?) a score of every entity, (n, n_entities): a higher one ranks higher."""
        return self._scores(TAILS, head, relation)

    def head_scores(self, relation: Ids, tail: Ids) -> npt.NDArray[np.float32]:
        """Return for each query (?, r, t) a score of every entity, (n, n_entities)."""
        return self._scores(HEADS, tail, relation)

    def rank_tails(self, head: Ids, relation: Ids, k: int) -> Ranking:
        """Return the k best tails of each query (h, r, ?); all entities are candidates."""
        return self._best(TOP_TAILS, head, relation, k)

    def rank_heads(self, relation: Ids, tail: Ids, k: int) -> Ranking:
        """Return the k best heads of each query (?, r, t); all entities are candidates."""
        return self._best(TOP_HEADS, tail, relation, k)

    @contextmanager
    def answering(self) -> Iterator[None]:
        """On the first rank, let the block ask; on the others, first answer until that block has ended."""
        if not self._world.first:
            while self._answer():
                pass
            yield
            return
        try:
            yield
        finally:
            self._tell(STOP, 0, 0)

    def _scores(self, what: int, entity: Ids, relation: Ids) -> npt.NDArray[np.float32]:
        out = np.empty((len(entity), self.n_entities), dtype=np.float32)
        for rows in _blocks(len(entity), max(1, SCORES // self.n_entities)):
            out[rows] = self._ask(what, 0, entity[rows], relation[rows])[0].numpy()
        return out

    def _best(self, what: int, entity: Ids, relation: Ids, k: int) -> Ranking:
        k = min(k, self.n_entities)
        best = Ranking(np.empty((len(entity), k), dtype=np.int64), np.empty((len(entity), k), dtype=np.float32))
        for rows in _blocks(len(entity), max(1, SCORES // self._table.block)):
            scores, entities = self._ask(what, k, entity[rows], relation[rows])
            best.confidence[rows] = self._predict(self._sign() * scores).cpu().numpy()
            best.entity[rows] = entities.numpy()
        return best

    def _ask(self, what: int, k: int, *ids: Ids) -> tuple[Tensor, ...]:
        self._tell(what, k, len(ids[0]))
        return self._serve(what, k, torch.from_numpy(np.stack([each.astype(np.int64) for each in ids])))

    def _answer(self) -> bool:
        what, k, n = self._tell(STOP, 0, 0)
        if what != STOP:
            self._serve(what, k, torch.empty((3 if what == CONFIDENCE else 2, n), dtype=torch.int64))
        return what != STOP

    def _tell(self, what: int, k: int, n: int) -> list[int]:
        """Send what is asked from the first rank to the others."""
        box = torch.tensor([what, k, n], device=self._world.device)
        dist.broadcast(box, src=0)
        return [int(number) for number in box.tolist()]

    @torch.no_grad()
    def _serve(self, what: int, k: int, ids: Tensor) -> tuple[Tensor, ...]:
        asked = ids.to(self._world.device)
        dist.broadcast(asked, src=0)
        if what == CONFIDENCE:
            return (self._confidences(asked),)
        entity, relation = self._table.rows(asked[0]), self._engine.replicated["relation"][asked[1]]
        scorer = self._engine.scorer
        tails = what in (TAILS, TOP_TAILS)
        query = scorer.tail_query(entity, relation) if tails else scorer.head_query(relation, entity)
        scores = self._sign() * scorer.compare_all(query, self._table.local)
        if what in (TAILS, HEADS):
            return (self._joined(scores, dim=1, of=self._table.block)[:, : self.n_entities],)
        best = scores.topk(min(k, scores.shape[1]), dim=1)
        width = min(k, self._table.block)
        found = self._joined(best.values, dim=1, of=width, fill=-torch.inf)
        places = self._joined(best.indices + self._table.first, dim=1, of=width)
        if not self._world.first:
            return ()
        top = found.topk(k, dim=1)
        return top.values, places.gather(1, top.indices)

    def _confidences(self, asked: Tensor) -> Tensor:
        """Let each rank score its part of the facts."""
        n, ranks = asked.shape[1], self._world.size
        part = -(-n // ranks)
        head, relation, tail = asked[:, self._world.rank * part : (self._world.rank + 1) * part]
        rows = self._table.rows(torch.cat([head, tail]))
        kinds = self._engine.replicated["relation"][relation]
        plausibility = self._engine.scorer.plausibility(rows[: len(head)], kinds, rows[len(head) :])
        return self._joined(self._predict(plausibility), dim=0, of=part)[:n]

    def _predict(self, plausibility: Tensor) -> Tensor:
        weight, bias = self._engine.replicated["link"].unbind()
        return self._engine.link.predict(plausibility, weight, bias)

    def _sign(self) -> float:
        return self._engine.link.ranking_sign(float(self._engine.replicated["link"][0]))

    def _joined(self, part: Tensor, *, dim: int, of: int, fill: float = 0.0) -> Tensor:
        """Return the ranks' parts side by side, each filled up to the same size; only the first rank needs them."""
        shape = list(part.shape)
        shape[dim] = of
        padded = part.new_full(shape, fill)
        padded.narrow(dim, 0, part.shape[dim]).copy_(part)
        gathered = [torch.empty_like(padded) for _ in range(self._world.size)] if self._world.first else None
        dist.gather(padded, gathered, dst=0)
        return padded if gathered is None else torch.cat(gathered, dim=dim).cpu()


def _blocks(n: int, size: int) -> Iterator[slice]:
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))
