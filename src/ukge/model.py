"""A model is embeddings × scorer × link: how its weights start, and what they say about facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ukge.engines.aligned import aligned_zeros
from ukge.engines.base import Floats, Parameters
from ukge.errors import ConfigError
from ukge.links import Identity, Link
from ukge.scoring import Scorer

Ids = npt.NDArray[np.integer[Any]]

BLOCK = 1 << 20
"""Elements that a block of the initialisation, of looked-up rows or of scores may hold."""

BOUND = 2.0
"""Deviations at which the initial normal distribution is cut off."""

SAMPLE = 1024
"""Random facts whose mean distance sets the link's first weight."""


def init(
    scorer: Scorer,
    n_entities: int,
    n_relations: int,
    dim: int,
    scale: float,
    seed: int,
    entity: Floats | None = None,
) -> Parameters:
    """Return initial weights: a truncated normal of deviation `scale`, and phases uniform on the circle.

    The link starts with w = 1 and b = 0 for inner products. A distance starts with b = 1 and w one over the mean
    distance of random facts, so that w·g + b is 0 on them and 1 at a distance of 0: plausibilities of −30 would find
    the logistic link without a gradient. The entities' rows are written to `entity`, if that table is given.
    """
    rng = np.random.Generator(np.random.Philox(seed))
    width = scorer.entity_width(dim)
    table = aligned_zeros(n_entities, width) if entity is None else entity
    for rows, values in normal_rows(rng, n_entities, width, scale):
        table[rows] = values
    return Parameters(table, *init_rest(rng, scorer, n_entities, n_relations, dim, scale, lambda ids: table[ids]))


def init_rest(
    rng: np.random.Generator,
    scorer: Scorer,
    n_entities: int,
    n_relations: int,
    dim: int,
    scale: float,
    entity_rows: Callable[[npt.NDArray[np.int64]], Floats],
) -> tuple[Floats, Floats]:
    """Return the relations' table and the link's w and b, drawn after the entities' rows, which are looked up by id."""
    width = scorer.relation_width(dim)
    if scorer.phases:
        relation = rng.uniform(-np.pi, np.pi, (n_relations, width)).astype(np.float32)
    else:
        relation = aligned_zeros(n_relations, width)
        for rows, values in normal_rows(rng, n_relations, width, scale):
            relation[rows] = values
    link = np.array([1.0, 0.0], dtype=np.float32)
    if not scorer.inner_product:
        ends = rng.integers(n_entities, size=2 * SAMPLE)
        kinds = rng.integers(n_relations, size=SAMPLE)
        drawn = Model(Parameters(entity_rows(ends), relation), scorer, Identity())
        distance = -drawn.plausibility(np.arange(SAMPLE), kinds, np.arange(SAMPLE, 2 * SAMPLE)).mean()
        link[:] = (1 / distance if distance > 0 else 1.0), 1.0
    return relation, link


def normal_rows(rng: np.random.Generator, rows: int, width: int, scale: float) -> Iterator[tuple[slice, Floats]]:
    """Yield a table drawn from a truncated normal of deviation `scale`, block by block."""
    for block in _blocks(rows, width):
        values = rng.standard_normal((block.stop - block.start, width), dtype=np.float32)
        while (outside := np.abs(values) > BOUND).any():
            values[outside] = rng.standard_normal(int(outside.sum()), dtype=np.float32)
        yield block, values * np.float32(scale)


def to_tensor(array: npt.NDArray[Any], device: torch.device) -> Tensor:
    """Return an array on a device; on the CPU it is shared if it can be written to, else copied."""
    # PyTorch has no read-only tensors and warns when it is given such an array, as Arrow's are.
    return torch.from_numpy(array if array.flags.writeable else array.copy()).to(device)


def resolve_device(name: str) -> torch.device:
    """Return the device called `name`; `auto` takes CUDA, then MPS, then the CPU."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(
            f"device '{name}' cannot be used: {reason}", hint="Give ‹device='auto'› or ‹device='cpu'›."
        ) from None
    return device


class Ranking(NamedTuple):
    """The k best answers to each of n queries, best first: entity ids and confidences, both (n, k)."""

    entity: npt.NDArray[np.int64]
    confidence: Floats


class Model:
    """Weights that predict, by id. On the CPU it reads `parameters` in place, so it follows their training."""

    def __init__(self, parameters: Parameters, scorer: Scorer, link: Link, device: str | torch.device = "cpu") -> None:
        self.scorer = scorer
        self.link = link
        self.device = resolve_device(str(device))
        self._entity = to_tensor(parameters.entity, self.device)
        self._relation = to_tensor(parameters.relation, self.device)
        self._link = to_tensor(parameters.link, self.device)

    @property
    def n_entities(self) -> int:
        """How many entities can be an answer."""
        return len(self._entity)

    @torch.no_grad()
    def plausibility(self, head: Ids, relation: Ids, tail: Ids) -> Floats:
        """Return g(h, r, t) of each fact."""
        out = np.empty(len(head), dtype=np.float32)
        for rows, plausibility in self._plausibilities(head, relation, tail):
            out[rows] = plausibility.cpu().numpy()
        return out

    @torch.no_grad()
    def confidence(self, head: Ids, relation: Ids, tail: Ids) -> Floats:
        """Return f(h, r, t) of each fact; with a bounded link, within [0, 1]."""
        out = np.empty(len(head), dtype=np.float32)
        for rows, plausibility in self._plausibilities(head, relation, tail):
            out[rows] = self._predict(plausibility).cpu().numpy()
        return out

    @torch.no_grad()
    def tail_scores(self, head: Ids, relation: Ids) -> Floats:
        """Return for each query (h, r, ?) a score of every entity, (n, n_entities): a higher one ranks higher.

        Scores are plausibilities turned the way of confidence, not confidences, which tie where a link is clamped.
        """
        return self._all_scores(self._tail_query(head, relation)).cpu().numpy()

    @torch.no_grad()
    def head_scores(self, relation: Ids, tail: Ids) -> Floats:
        """Return for each query (?, r, t) a score of every entity, (n, n_entities), as `tail_scores` does."""
        return self._all_scores(self._head_query(relation, tail)).cpu().numpy()

    @torch.no_grad()
    def rank_tails(self, head: Ids, relation: Ids, k: int) -> Ranking:
        """Return the k best tails of each query (h, r, ?); all entities are candidates."""
        return self._rank(len(head), k, lambda rows: self._tail_query(head[rows], relation[rows]))

    @torch.no_grad()
    def rank_heads(self, relation: Ids, tail: Ids, k: int) -> Ranking:
        """Return the k best heads of each query (?, r, t); all entities are candidates."""
        return self._rank(len(tail), k, lambda rows: self._head_query(relation[rows], tail[rows]))

    def _plausibilities(self, head: Ids, relation: Ids, tail: Ids) -> Iterator[tuple[slice, Tensor]]:
        for rows in _blocks(len(head), self._entity.shape[1]):
            yield (
                rows,
                self.scorer.plausibility(
                    self._rows(self._entity, head[rows]),
                    self._rows(self._relation, relation[rows]),
                    self._rows(self._entity, tail[rows]),
                ),
            )

    def _predict(self, plausibility: Tensor) -> Tensor:
        return self.link.predict(plausibility, self._link[0], self._link[1])

    def _rows(self, table: Tensor, ids: Ids) -> Tensor:
        return table.index_select(0, torch.from_numpy(ids.astype(np.int64)).to(self.device))

    def _tail_query(self, head: Ids, relation: Ids) -> Tensor:
        return self.scorer.tail_query(self._rows(self._entity, head), self._rows(self._relation, relation))

    def _head_query(self, relation: Ids, tail: Ids) -> Tensor:
        return self.scorer.head_query(self._rows(self._relation, relation), self._rows(self._entity, tail))

    def _all_scores(self, query: Tensor) -> Tensor:
        plausibility = self.scorer.compare_all(query, self._entity)
        return -plausibility if self.link.ranking_sign(float(self._link[0])) < 0 else plausibility

    def _rank(self, n: int, k: int, query: Callable[[slice], Tensor]) -> Ranking:
        k = min(k, self.n_entities)
        best = Ranking(np.empty((n, k), dtype=np.int64), np.empty((n, k), dtype=np.float32))
        sign = self.link.ranking_sign(float(self._link[0]))
        for rows in _blocks(n, self.n_entities):
            scores, entities = self._all_scores(query(rows)).topk(k, dim=1)
            best.entity[rows] = entities.cpu().numpy()
            best.confidence[rows] = self._predict(sign * scores).cpu().numpy()
        return best


def _blocks(n: int, width: int) -> Iterator[slice]:
    step = max(1, BLOCK // max(1, width))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))
