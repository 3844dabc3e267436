"""The hidden side of the world: who is there, where everybody stands, how sure every triple is, and what is seen.

    f(h, r, t) = max(0, 1 − DOUBT · (u_h + u_t) − SLOPE · Σ d(h, t))

where u is how doubtful an entity is, and d the distance of the two places on an aspect of r, in steps between centres.
It is 0 where the types do not fit, where the ends live in different regions, and where h = t.

1 − f is a sum of distances, so a conclusion is at least as sure as its premises: for r(A, B) ∧ s(B, C) → t(A, C) with
t's aspects shared by r and s, d_t(A, C) ≤ d_r(A, B) + d_s(B, C) gives f_t ≥ max(0, f_r + f_s − 1), which is the
Łukasiewicz body (6). It is also close to what a bilinear scorer can say: on a circle, distance is mostly a cosine.

The ids of shared types come first, then region by region, within a region type by type. Regions keep a large world as
sparse as a small one: an entity has facts with its own region only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ukge.errors import ConfigError
from ukge.graph.columns import Confidences
from ukge.graph.fact import FactArrays
from ukge.graph.synthetic.schema import CENTRES, MORE_CENTRES, RELATIONS, SHARED_TYPES, TYPE_SHARES
from ukge.storage.memory import free_memory

EVERYWHERE = -1
FEWEST_ENTITIES, MOST_ENTITIES = 100, 2**31 - 1
_REGION = 1_000
_FACTS_PER_ENTITY = 20
# Memory at most: a place on every aspect and a name; the true confidences of a relation within one region.
_BYTES_PER_ENTITY, _BYTES_PER_PAIR = 400, 4

DOUBT = 0.04
SLOPE = 0.45
JITTER = 0.12
# Keep the random numbers of places and of what is seen apart from each other and from those of the names.
_PLACES, _SEEN = 1, 2

ASPECTS = sorted({aspect.name for relation in RELATIONS for aspect in relation.aspects})
TYPES = tuple(TYPE_SHARES)

Indices = npt.NDArray[np.integer]

LEAST_SEEN = 0.05
"""Facts below this true confidence are never observed."""

_SURE = 0.8
_STEEPNESS = 4
_FAINT = 0.02
_LOWEST_OBSERVED = 0.01


@dataclass(frozen=True, eq=False)
class Layout:
    """`counts[region, type]` entities; shared types are counted in the first row, which stands for no region."""

    counts: npt.NDArray[np.int64]

    @classmethod
    def plan(cls, n_entities: int, n_facts: int) -> Layout:
        """Share out the entities: regions as large as it takes to hold that many facts per entity."""
        if not FEWEST_ENTITIES <= n_entities <= MOST_ENTITIES:
            raise ConfigError(
                f"a world of {len(TYPE_SHARES)} types has {FEWEST_ENTITIES} to {MOST_ENTITIES:,} entities, not "
                f"{n_entities:,}"
            )
        size = min(n_entities, max(FEWEST_ENTITIES, _REGION * n_facts / (_FACTS_PER_ENTITY * n_entities)))
        needed, free = _BYTES_PER_ENTITY * n_entities + _BYTES_PER_PAIR * size**2, free_memory()
        if needed > free.bytes:
            raise ConfigError(
                f"a world of {n_entities:,} entities with {n_facts:,} facts takes about {needed / 1e9:,.1f} GB of "
                f"memory, and {free.of} leaves {free.bytes / 1e9:,.1f} GB",
                hint="Ask for fewer entities, or for fewer facts of each.",
            )
        n_regions = max(1, round(n_entities / size))
        total = sum(TYPE_SHARES.values())
        shared = np.array([share if name in SHARED_TYPES else 0 for name, share in TYPE_SHARES.items()])
        own = np.array(list(TYPE_SHARES.values())) - shared
        counts = np.zeros((n_regions + 1, len(TYPE_SHARES)), dtype=np.int64)
        counts[0] = np.maximum(shared * n_entities // (total * n_regions), np.minimum(shared, 2))
        edges = np.arange(n_regions + 1) * (n_entities - counts[0].sum()) // n_regions
        for region, size_here in enumerate(np.diff(edges)):
            cuts = np.cumsum(own) * size_here // own.sum()
            counts[region + 1] = np.diff(cuts, prepend=0)
        return cls(counts)

    @property
    def n_entities(self) -> int:
        """How many entities there are."""
        return int(self.counts.sum())

    @property
    def n_regions(self) -> int:
        """How many regions there are."""
        return len(self.counts) - 1

    @cached_property
    def type_of(self) -> npt.NDArray[np.int8]:
        """The type number of every entity."""
        n_types = self.counts.shape[1]
        return np.repeat(np.tile(np.arange(n_types, dtype=np.int8), len(self.counts)), self.counts.ravel())

    @cached_property
    def region_of(self) -> npt.NDArray[np.int32]:
        """The region of every entity; `EVERYWHERE` for shared types."""
        return np.repeat(np.arange(len(self.counts), dtype=np.int32) - 1, self.counts.sum(axis=1))

    def members(self, kind: int, region: int) -> npt.NDArray[np.int64]:
        """Return the ids of the entities of a type that have facts in a region."""
        name = list(TYPE_SHARES)[kind]
        row = 0 if name in SHARED_TYPES else region + 1
        start = int(self._starts[row, kind])
        return np.arange(start, start + int(self.counts[row, kind]))

    @cached_property
    def _starts(self) -> npt.NDArray[np.int64]:
        return (np.cumsum(self.counts) - self.counts.ravel()).reshape(self.counts.shape)


@dataclass(frozen=True, eq=False)
class Latent:
    """The place of every entity on every aspect (counted in centres) and its doubt in [0, 1]."""

    layout: Layout
    place: npt.NDArray[np.float32]
    doubt: npt.NDArray[np.float32]

    @classmethod
    def draw(cls, layout: Layout, seed: int) -> Latent:
        """Place all entities; each type of each region spreads evenly over the centres."""
        rng = np.random.default_rng([seed, _PLACES])
        group = layout.region_of.astype(np.int64) * len(TYPES) + layout.type_of
        _, group = np.unique(group, return_inverse=True)
        sizes = np.bincount(group)
        place = np.empty((len(ASPECTS), layout.n_entities), dtype=np.float32)
        for aspect, row in zip(ASPECTS, place, strict=True):
            centres = MORE_CENTRES.get(aspect, CENTRES)
            order = np.lexsort((rng.random(layout.n_entities), group))
            nth = np.empty(layout.n_entities, dtype=np.int64)
            nth[order] = np.arange(layout.n_entities) - np.repeat(np.cumsum(sizes) - sizes, sizes)
            centre = nth + rng.integers(0, centres, len(sizes))[group]
            row[:] = (centre + rng.uniform(-JITTER, JITTER, layout.n_entities)) % centres
        return cls(layout, place, rng.random(layout.n_entities, dtype=np.float32))

    def confidence(self, relation: int, head: Indices, tail: Indices) -> Confidences:
        """Return f of one relation for heads and tails that broadcast against each other."""
        kind = RELATIONS[relation]
        cost = DOUBT * (self.doubt[head].astype(np.float64) + self.doubt[tail])
        for aspect in kind.aspects:
            place, around = self.place[ASPECTS.index(aspect.name)], MORE_CENTRES.get(aspect.name, CENTRES)
            apart = np.abs(place[head].astype(np.float64) + aspect.steps - place[tail]) % around
            cost = cost + SLOPE * np.minimum(apart, around - apart)
        possible = self._fits(kind.head_type, head) & self._fits(kind.tail_type, tail) & (head != tail)
        regions = self.layout.region_of[head], self.layout.region_of[tail]
        possible &= (regions[0] == regions[1]) | (regions[0] == EVERYWHERE) | (regions[1] == EVERYWHERE)
        return np.where(possible, np.maximum(0.0, 1.0 - cost), 0.0)

    def confidences(self, head: Indices, relation: Indices, tail: Indices) -> Confidences:
        """Return f of many triples of any relations."""
        head, relation, tail = np.broadcast_arrays(head, relation, tail)
        values = np.zeros(relation.shape)
        for number in np.unique(relation):
            mine = relation == number
            values[mine] = self.confidence(int(number), head[mine], tail[mine])
        return values

    def _fits(self, wanted: str, entity: Indices) -> npt.NDArray[np.bool_]:
        return np.asarray(self.layout.type_of[entity] == TYPES.index(wanted))


def observe(latent: Latent, region: int, n_facts: int, seed: int, noise: float) -> FactArrays:
    """Return `n_facts` facts of a region, drawn without repeats by weight (f / 0.8)⁴, at least 0.02 and at most 1.

    So sure facts are seen more often than weak ones, and most triples have a true confidence of 0 and are never seen.
    Observed confidence = true confidence + normal noise of the given deviation, clipped to [0.01, 1].
    """
    rng = np.random.default_rng([seed, _SEEN, region])
    head, relation, tail, true = _possible(latent, region)
    if n_facts > len(true):
        raise ConfigError(
            f"a world of {latent.layout.n_entities:,} entities holds about "
            f"{len(true) * latent.layout.n_regions:,} facts, fewer than asked",
            hint="Ask for fewer facts or for more entities; about 20 facts per entity is a good number.",
        )
    weight = np.maximum(np.minimum(1.0, true / _SURE) ** _STEEPNESS, _FAINT)
    # The n smallest exponential waiting times are a weighted sample without repeats.
    waiting = rng.standard_exponential(len(true)) / weight
    chosen = np.argpartition(waiting, n_facts - 1)[:n_facts] if n_facts < len(true) else np.arange(len(true))
    chosen = rng.permutation(chosen)
    seen = true[chosen]
    if noise > 0.0:
        seen = np.clip(seen + rng.normal(0.0, noise, n_facts), _LOWEST_OBSERVED, 1.0)
    return FactArrays(head[chosen], relation[chosen], tail[chosen], seen)


def _possible(latent: Latent, region: int) -> FactArrays:
    """Return every triple of a region that may be observed, with its true confidence."""
    columns = []
    for number, kind in enumerate(RELATIONS):
        heads = latent.layout.members(TYPES.index(kind.head_type), region)
        tails = latent.layout.members(TYPES.index(kind.tail_type), region)
        true = latent.confidence(number, heads[:, None], tails[None, :])
        at_head, at_tail = np.nonzero(true >= LEAST_SEEN)
        relation = np.full(len(at_head), number, dtype=np.int32)
        columns.append((heads[at_head], relation, tails[at_tail], true[at_head, at_tail]))
    head, relation, tail, true = (np.concatenate(column) for column in zip(*columns, strict=True))
    return FactArrays(head.astype(np.int32), relation, tail.astype(np.int32), true)
