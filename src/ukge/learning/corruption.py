"""What may replace an entity of a fact: any, by degree, or those in its relation's range; observed facts or not."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ukge.graph.keys import triple_keys
from ukge.learning.training_data import TrainingData
from ukge.settings.config import SamplingConfig

ROUNDS = 8
"""How often an observed fact that was drawn for an unseen one is drawn again; what is left then does not count."""

MANY = 1 << 62
"""So far beyond any number of entities that taking a remainder keeps draws uniform."""


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
