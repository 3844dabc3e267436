"""Which facts, unseen facts and ground rules a batch sees. An epoch's draws depend on the seed and its number alone."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ukge.graph.keys import triple_keys
from ukge.learning.data import TrainingData
from ukge.models.scorers import Scorer
from ukge.registry import Registry
from ukge.settings.config import SamplingConfig

ROUNDS = 8
"""How often an observed fact that was drawn for an unseen one is drawn again; what is left then does not count."""

MANY = 1 << 62
"""So far beyond any number of entities that taking a remainder keeps draws uniform."""


class Facts(NamedTuple):
    """Facts by id, as int64 tensors on one device."""

    head: Tensor
    relation: Tensor
    tail: Tensor


def epoch_order(n_facts: int, seed: int, epoch: int) -> npt.NDArray[np.int64]:
    """Return the order in which an epoch visits the facts."""
    return np.random.Generator(np.random.Philox(key=[seed, epoch])).permutation(n_facts)


def epoch_generator(seed: int, epoch: int, device: torch.device, *more: int) -> torch.Generator:
    """Return the source of an epoch's draws; with more numbers, a source of its own."""
    mixed = np.random.SeedSequence([seed, epoch, *more]).generate_state(1, np.uint64)[0]
    return torch.Generator(device=device).manual_seed(int(mixed))


def rule_count(n_facts: int, rules_per_fact: float) -> int:
    """Return how many ground rules go with a batch of facts: at least one, unless none are wanted."""
    return max(1, round(rules_per_fact * n_facts)) if rules_per_fact > 0 else 0


class EntitySets:
    """Sets of entities numbered by group, as one sorted array of integers, so that look-ups are vectorised."""

    def __init__(self, keys: npt.NDArray[np.int64], n_entities: int, device: torch.device) -> None:
        """Take keys `group * n_entities + entity`, in any order, repeated or not."""
        self._keys = torch.from_numpy(np.unique(keys)).to(device)
        self._n = n_entities

    def contains(self, group: Tensor, entity: Tensor) -> Tensor:
        """Return which entities are in their group; the two broadcast."""
        key = group * self._n + entity
        at = torch.searchsorted(self._keys, key).clamp_(max=len(self._keys) - 1)
        return self._keys[at] == key

    def draw(self, group: Tensor, generator: torch.Generator) -> Tensor:
        """Return one entity of each group, uniformly. No group may be empty."""
        low, size = self._bounds(group)
        draws = torch.randint(MANY, group.shape, generator=generator, device=group.device)
        return self._keys[low + draws % size] % self._n

    def members(self, group: Tensor) -> Tensor:
        """Return for each of b groups which of all entities are in it, (b, n_entities)."""
        low, size = self._bounds(group)
        row = torch.arange(len(group), device=group.device).repeat_interleave(size)
        first = (size.cumsum(0) - size).repeat_interleave(size)
        at = torch.arange(len(row), device=group.device) - first + low.repeat_interleave(size)
        mask = torch.zeros(len(group), self._n, dtype=torch.bool, device=group.device)
        mask[row, self._keys[at] % self._n] = True
        return mask

    def _bounds(self, group: Tensor) -> tuple[Tensor, Tensor]:
        low = torch.searchsorted(self._keys, group * self._n)
        return low, torch.searchsorted(self._keys, (group + 1) * self._n) - low


class Side:
    """One side of corruption: what may replace the entity of a fact, given the entity that stays."""

    def __init__(
        self,
        kept: npt.NDArray[np.int32],
        relation: npt.NDArray[np.int32],
        replaced: npt.NDArray[np.int32],
        data: TrainingData,
        config: SamplingConfig,
        device: torch.device,
    ) -> None:
        self._n = data.n_entities
        self._observed = self._range = self._ends = None
        self._by_degree = config.by_degree
        if config.filter_observed:
            keys = triple_keys(kept, relation, replaced, data.n_entities, data.n_relations)
            self._observed = EntitySets(keys, self._n, device)
        if config.in_range:
            self._range = EntitySets(relation.astype(np.int64) * self._n + replaced, self._n, device)
        if config.by_degree:
            self._ends = torch.from_numpy(np.concatenate([data.head, data.tail])).long().to(device)

    def draw(self, relation: Tensor, generator: torch.Generator) -> Tensor:
        """Return one entity for each relation given."""
        if self._range is not None:
            return self._range.draw(relation, generator)
        anyone = torch.randint(self._n, relation.shape, generator=generator, device=relation.device)
        if self._ends is None:
            return anyone
        at = torch.randint(len(self._ends), relation.shape, generator=generator, device=relation.device)
        by_degree = torch.rand(relation.shape, generator=generator, device=relation.device) < self._by_degree
        return torch.where(by_degree, self._ends[at], anyone)

    def draw_each(
        self, kept: Tensor, relation: Tensor, n: int, generator: torch.Generator
    ) -> tuple[Tensor, Tensor | None]:
        """Return n entities for each of b facts and which of them count."""
        shape = (len(kept), n)
        relation = relation.repeat_interleave(n)
        drawn = self.draw(relation, generator)
        if self._observed is None:
            return drawn.view(shape), None
        group = relation * self._n + kept.repeat_interleave(n)
        wrong = self._observed.contains(group, drawn).nonzero().squeeze(1)
        for _ in range(ROUNDS):
            if len(wrong) == 0:
                return drawn.view(shape), None
            drawn[wrong] = self.draw(relation[wrong], generator)
            wrong = wrong[self._observed.contains(group[wrong], drawn[wrong])]
        counts = torch.ones_like(drawn, dtype=torch.bool)
        counts[wrong] = False
        return drawn.view(shape), counts.view(shape)

    def allowed_among(self, kept: Tensor, relation: Tensor, entities: Tensor) -> Tensor | None:
        """Return for each of b facts which of the n entities count, (b, n); None if all do."""
        counts = None
        if self._range is not None:
            counts = self._range.contains(relation[:, None], entities)
        if self._observed is not None:
            unseen = ~self._observed.contains((relation * self._n + kept)[:, None], entities)
            counts = unseen if counts is None else counts & unseen
        return counts

    def allowed_entities(self, kept: Tensor, relation: Tensor, replaced: Tensor) -> Tensor:
        """Return for each of b facts which of all entities count, (b, n_entities); never the fact's own."""
        shape = (len(kept), self._n)
        if self._range is not None:
            counts = self._range.members(relation)
        else:
            counts = torch.ones(shape, dtype=torch.bool, device=kept.device)
        if self._observed is not None:
            counts &= ~self._observed.members(relation * self._n + kept)
        return counts.scatter_(1, replaced[:, None], False)


class Negatives(ABC):
    """The unseen facts of a batch of b facts: m of them for each, by another head or another tail."""

    counts: Tensor | None
    """Which of the (b, m) entries count; None where all do."""

    @property
    @abstractmethod
    def entities(self) -> list[Tensor]:
        """Ids of the entities whose rows `plausibility` needs, one tensor for each of its arguments."""

    @abstractmethod
    def plausibility(self, scorer: Scorer, head_query: Tensor, tail_query: Tensor, *rows: Tensor) -> Tensor:
        """Return g of every unseen fact, (b, m): first those with another head, then those with another tail."""


@dataclass(frozen=True)
class PerFact(Negatives):
    """Each fact has its own `(b, n)` heads and `(b, n)` tails."""

    heads: Tensor
    tails: Tensor
    counts: Tensor | None = None

    @property
    def entities(self) -> list[Tensor]:
        """The heads of all facts, and their tails."""
        return [self.heads.flatten(), self.tails.flatten()]

    def plausibility(self, scorer: Scorer, head_query: Tensor, tail_query: Tensor, *rows: Tensor) -> Tensor:
        """Compare each query with its own candidates."""
        heads, tails = rows
        by_head = scorer.compare(head_query[:, None], heads.view(*self.heads.shape, -1))
        by_tail = scorer.compare(tail_query[:, None], tails.view(*self.tails.shape, -1))
        return torch.cat([by_head, by_tail], dim=1)


@dataclass(frozen=True)
class PerBatch(Negatives):
    """All facts share `(n,)` heads and `(n,)` tails; where these are the same, their rows are looked up once."""

    heads: Tensor
    tails: Tensor
    counts: Tensor | None = None

    @property
    def entities(self) -> list[Tensor]:
        """The heads and the tails."""
        return [self.heads] if self.heads is self.tails else [self.heads, self.tails]

    def plausibility(self, scorer: Scorer, head_query: Tensor, tail_query: Tensor, *rows: Tensor) -> Tensor:
        """Compare every query with every candidate of its side."""
        heads, tails = rows[0], rows[-1]
        return torch.cat([scorer.compare_all(head_query, heads), scorer.compare_all(tail_query, tails)], dim=1)


class Sampler(ABC):
    """Draws the unseen facts of a batch from the training data."""

    draws: ClassVar[bool] = True
    """Whether there are unseen facts at all."""

    def __init__(self, data: TrainingData, config: SamplingConfig, device: torch.device) -> None:
        self.n_entities = data.n_entities
        self.negatives = config.negatives
        head, relation, tail = data.observed()
        self.heads = Side(tail, relation, head, data, config, device)
        self.tails = Side(head, relation, tail, data, config, device)

    @abstractmethod
    def sample(self, facts: Facts, generator: torch.Generator) -> Negatives | None:
        """Return the unseen facts for a batch of observed ones, or None if there are to be none."""


samplers: Registry[Callable[[TrainingData, SamplingConfig, torch.device], Sampler]] = Registry(
    "sampler", "ukge.samplers"
)


@samplers.register("independent")
class Independent(Sampler):
    """Each fact gets its own corrupted heads and its own corrupted tails, as in the paper."""

    def sample(self, facts: Facts, generator: torch.Generator) -> Negatives:
        """Return `negatives` heads and `negatives` tails per fact."""
        heads, heads_count = self.heads.draw_each(facts.tail, facts.relation, self.negatives, generator)
        tails, tails_count = self.tails.draw_each(facts.head, facts.relation, self.negatives, generator)
        return PerFact(heads, tails, _joined(heads_count, tails_count, heads.shape))


@samplers.register("shared")
class Shared(Sampler):
    """All facts of a batch share one set of heads and one of tails, so that scoring is a matrix product.

    What is filtered or out of a fact's range is masked. With `in_range`, candidates come from the ranges of the batch's
    own relations.
    """

    def sample(self, facts: Facts, generator: torch.Generator) -> Negatives:
        """Return `negatives` heads and `negatives` tails for the whole batch."""
        pick = torch.randint(len(facts.head), (2, self.negatives), generator=generator, device=facts.head.device)
        heads = self.heads.draw(facts.relation[pick[0]], generator)
        tails = self.tails.draw(facts.relation[pick[1]], generator)
        heads_count = self.heads.allowed_among(facts.tail, facts.relation, heads)
        tails_count = self.tails.allowed_among(facts.head, facts.relation, tails)
        return PerBatch(heads, tails, _joined(heads_count, tails_count, (len(facts.head), self.negatives)))


@samplers.register("exhaustive")
class Exhaustive(Sampler):
    """Every entity but the fact's own is its corrupted head and its corrupted tail (1-vs-all).

    A batch holds two plausibilities per fact and entity.
    """

    def sample(self, facts: Facts, generator: torch.Generator) -> Negatives:  # noqa: ARG002
        """Return all entities on both sides."""
        heads = self.heads.allowed_entities(facts.tail, facts.relation, facts.head)
        tails = self.tails.allowed_entities(facts.head, facts.relation, facts.tail)
        everyone = torch.arange(self.n_entities, device=facts.head.device)
        return PerBatch(everyone, everyone, torch.cat([heads, tails], dim=1))


@samplers.register("none")
class Nothing(Sampler):
    """No unseen facts at all (UKGE n−)."""

    draws = False

    def sample(self, facts: Facts, generator: torch.Generator) -> None:
        """Return nothing."""


def _joined(heads: Tensor | None, tails: Tensor | None, shape: tuple[int, ...]) -> Tensor | None:
    given = heads if heads is not None else tails
    if given is None:
        return None
    all_count = torch.ones(shape, dtype=torch.bool, device=given.device)
    return torch.cat([all_count if heads is None else heads, all_count if tails is None else tails], dim=1)
