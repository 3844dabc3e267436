"""A model is embeddings × scorer × link: how its weights start, and what they say about facts.

Where the weights lie, and who looks their rows up, is in `tables`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ukge.models.links import Identity, Link, links
from ukge.models.scorers import Part, Scorer, scorers
from ukge.models.scorers.base import width_of
from ukge.models.tables import ArrayTables, Floats, Ids, Parameters, Questions, Tables, aligned_zeros
from ukge.settings.config import Config

BLOCK = 1 << 20
"""Elements that a block of the initialisation may hold."""

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
    """Return initial weights: a truncated normal of deviation `scale`, and what a scorer's parts start as.

    The link starts with w = 1 and b = 0 for inner products. A distance starts with b = 1 and w one over the mean
    distance of random facts, so that w·g + b is 0 on them and 1 at a distance of 0: plausibilities of −30 would find
    the logistic link without a gradient. So would those of other scorers, where they deviate by more than 1: they
    are divided by their deviation, unless they come from tables that all facts share. The entities' rows are written to
    `entity`, if that table is given.
    """
    rng = np.random.Generator(np.random.Philox(seed))
    table = aligned_zeros(n_entities, scorer.entity_width(dim)) if entity is None else entity
    for rows, values in first_rows(rng, scorer.entity_parts, n_entities, dim, scale):
        table[rows] = values
    rest = init_rest(rng, scorer, n_entities, n_relations, dim, scale, lambda ids: table[ids])
    shared = {part.name: part.start.draw(rng, part.shape) for part in scorer.shared_parts(dim)}
    return Parameters(table, *rest, shared)


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
    relation = aligned_zeros(n_relations, scorer.relation_width(dim))
    for rows, values in first_rows(rng, scorer.relation_parts, n_relations, dim, scale):
        relation[rows] = values
    link = np.array([1.0, 0.0], dtype=np.float32)
    if not scorer.inner_product and not scorer.shared_parts(dim):
        ends = rng.integers(n_entities, size=2 * SAMPLE)
        kinds = rng.integers(n_relations, size=SAMPLE)
        drawn = Model(Parameters(entity_rows(ends), relation), scorer, Identity())
        found = drawn.plausibility(np.arange(SAMPLE), kinds, np.arange(SAMPLE, 2 * SAMPLE))
        if scorer.distance:
            distance = -found.mean()
            link[:] = (1 / distance if distance > 0 else 1.0), 1.0
        else:
            link[0] = 1 / max(1.0, found.std())
    return relation, link


def first_rows(
    rng: np.random.Generator, parts: Sequence[Part], rows: int, dim: int, scale: float
) -> Iterator[tuple[slice, Floats]]:
    """Yield the rows that a table of these parts starts with, block by block."""
    width = width_of(parts, dim)
    if all(part.start is None for part in parts):
        yield from normal_rows(rng, rows, width, scale)
        return
    for block in _blocks(rows, width, BLOCK):
        n = block.stop - block.start
        drawn = []
        for part in parts:
            own = width_of([part], dim)
            if part.start is None:
                drawn += [values for _, values in normal_rows(rng, n, own, scale)]
            else:
                drawn.append(part.start.draw(rng, (n, own)))
        yield block, np.concatenate(drawn, axis=1)


def normal_rows(rng: np.random.Generator, rows: int, width: int, scale: float) -> Iterator[tuple[slice, Floats]]:
    """Yield a table drawn from a truncated normal of deviation `scale`, block by block."""
    for block in _blocks(rows, width, BLOCK):
        values = rng.standard_normal((block.stop - block.start, width), dtype=np.float32)
        while (outside := np.abs(values) > BOUND).any():
            values[outside] = rng.standard_normal(int(outside.sum()), dtype=np.float32)
        yield block, values * np.float32(scale)


class Ranking(NamedTuple):
    """The k best answers to each of n queries, best first: entity ids and confidences, both (n, k)."""

    entity: npt.NDArray[np.int64]
    confidence: Floats


class Model:
    """Weights that predict, by id. It reads `parameters` in place, so it follows their training.

    `undirected` says of each relation whether it has no direction: a fact and its mirror are then the same fact, whose
    plausibility is the mean of both where the scorer tells head from tail.
    """

    def __init__(
        self, weights: Parameters | Tables, scorer: Scorer, link: Link, undirected: npt.NDArray[np.bool_] | None = None
    ) -> None:
        self.tables = ArrayTables(weights) if isinstance(weights, Parameters) else weights
        self.scorer = scorer.bound(self.tables.shared)
        self.link = link
        self.undirected = undirected

    @property
    def n_entities(self) -> int:
        """How many entities can be an answer."""
        return self.tables.shape[0]

    def plausibility(self, head: Ids, relation: Ids, tail: Ids) -> Floats:
        """Return g(h, r, t) of each fact."""
        out = np.empty(len(head), dtype=np.float32)
        for rows, plausibility in self._plausibilities(head, relation, tail):
            out[rows] = self.tables.numbers(plausibility)
        return out

    def confidence(self, head: Ids, relation: Ids, tail: Ids) -> Floats:
        """Return f(h, r, t) of each fact; with a bounded link, within [0, 1]."""
        out = np.empty(len(head), dtype=np.float32)
        for rows, plausibility in self._plausibilities(head, relation, tail):
            out[rows] = self.tables.numbers(self._predict(plausibility))
        return out

    def strength(self, head: Ids, relation: Ids, tail: Ids) -> Floats:
        """Return what orders facts as their confidences do, without the ties of a clamped link: g, turned its way."""
        return np.float32(self.sign) * self.plausibility(head, relation, tail)

    @property
    def sign(self) -> float:
        """What plausibilities are multiplied by so that a higher one means a higher confidence."""
        return self.link.ranking_sign(float(self.tables.link[0]))

    def tail_scores(self, head: Ids, relation: Ids) -> Floats:
        """Return for each query (h, r, ?) a score of every entity, (n, n_entities): a higher one ranks higher.

        Scores are plausibilities turned the way of confidence, not confidences, which tie where a link is clamped.
        """
        return self.tables.numbers(self.tables.scores(self.scorer, self._asked_tails(head, relation)))

    def head_scores(self, relation: Ids, tail: Ids) -> Floats:
        """Return for each query (?, r, t) a score of every entity, (n, n_entities), as `tail_scores` does."""
        return self.tables.numbers(self.tables.scores(self.scorer, self._asked_heads(relation, tail)))

    def rank_tails(self, head: Ids, relation: Ids, k: int) -> Ranking:
        """Return the k best tails of each query (h, r, ?); all entities are candidates."""
        return self._rank(len(head), k, lambda rows: self._asked_tails(head[rows], relation[rows]))

    def rank_heads(self, relation: Ids, tail: Ids, k: int) -> Ranking:
        """Return the k best heads of each query (?, r, t); all entities are candidates."""
        return self._rank(len(tail), k, lambda rows: self._asked_heads(relation[rows], tail[rows]))

    def query(self, side: str, given: int, relation: int) -> Floats:
        """Return the vector whose product with an entity's row is that entity's score, for inner products alone."""
        ids = np.array([given]), np.array([relation])
        found = self._tail_query(*ids) if side == "tail" else self._head_query(*ids[::-1])
        return np.asarray(self.tables.numbers(found)[0] * np.float32(self.sign))

    def _plausibilities(self, head: Ids, relation: Ids, tail: Ids) -> Iterator[tuple[slice, Any]]:
        if self.undirected is not None:
            # Rounded products depend on their order: a fact and its mirror are multiplied in the same one.
            turned = self.undirected[relation] & (head > tail)
            head, tail = np.where(turned, tail, head), np.where(turned, head, tail)
        for rows in _blocks(len(head), self.tables.shape[1], self.tables.rows_at_once):
            kind = self.tables.kinds(relation[rows])
            ends = self.tables.rows(head[rows]), self.tables.rows(tail[rows])
            plausibility = self.scorer.plausibility(ends[0], kind, ends[1])
            both = self._told_both_ways(relation[rows])
            if len(both):
                back = self.scorer.plausibility(ends[1][both], kind[both], ends[0][both])
                plausibility[both] = (plausibility[both] + back) / 2
            yield rows, plausibility

    def _predict(self, plausibility: Any) -> Any:
        return self.link.predict(plausibility, self.tables.link[0], self.tables.link[1])

    def _tail_query(self, head: Ids, relation: Ids) -> Any:
        return self.scorer.tail_query(self.tables.rows(head), self.tables.kinds(relation))

    def _head_query(self, relation: Ids, tail: Ids) -> Any:
        return self.scorer.head_query(self.tables.kinds(relation), self.tables.rows(tail))

    def _told_both_ways(self, relation: Ids) -> npt.NDArray[np.int64]:
        """Return which facts or queries have no direction and a scorer that gives them one."""
        if self.undirected is None or self.scorer.symmetric:
            return np.zeros(0, dtype=np.int64)
        return np.flatnonzero(self.undirected[relation])

    def _asked_tails(self, head: Ids, relation: Ids) -> Questions:
        return self._asked(self._tail_query(head, relation), head, relation, self._told_both_ways(relation))

    def _asked_heads(self, relation: Ids, tail: Ids) -> Questions:
        query, both = self._head_query(relation, tail), self._told_both_ways(relation)
        if len(both):  # the same question as that for a tail, so that it gets the same answer to the bit
            query[both] = self._tail_query(tail[both], relation[both])
        return self._asked(query, tail, relation, both)

    def _asked(self, query: Any, given: Ids, relation: Ids, both: npt.NDArray[np.int64]) -> Questions:
        back = self._head_query(relation[both], given[both]) if len(both) else query[:0]
        return Questions(query, both, back, self.sign)

    def _rank(self, n: int, k: int, asked_of: Callable[[slice], Questions]) -> Ranking:
        k = min(k, self.n_entities)
        found = Ranking(np.empty((n, k), dtype=np.int64), np.empty((n, k), dtype=np.float32))
        for rows in _blocks(n, self.n_entities, self.tables.scores_at_once):
            entity, scores = self.tables.best(self.scorer, asked_of(rows), k)
            found.entity[rows] = self.tables.numbers(entity)
            found.confidence[rows] = self.tables.numbers(self._predict(self.sign * scores))
        return found


def as_model(
    parameters: Parameters, config: Config, device: str = "cpu", undirected: npt.NDArray[np.bool_] | None = None
) -> Model:
    """Join weights with the scorer and the link of a config; `undirected` says which relations have no direction."""
    weights: Parameters | Tables = parameters
    if device != "cpu":
        from ukge.models.tensors import TensorTables  # noqa: PLC0415 — PyTorch takes a second to load

        weights = TensorTables.of(parameters, device)
    return Model(weights, scorers.get(config.model.scorer), links.get(config.model.link), undirected)


def _blocks(n: int, width: int, size: int) -> Iterator[slice]:
    step = max(1, size // max(1, width))
    for start in range(0, n, step):
        yield slice(start, min(start + step, n))
