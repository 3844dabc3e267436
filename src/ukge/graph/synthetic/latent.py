"""The hidden side of the world: where every entity stands, and with it the true confidence of every triple.

    f(h, r, t) = max(0, 1 − DOUBT · (u_h + u_t) − SLOPE · Σ d(h, t))

where u is how doubtful an entity is, and d the distance of the two places on an aspect of r, in steps between centres.
It is 0 where the types do not fit, where the ends live in different regions, and where h = t.

1 − f is a sum of distances, so a conclusion is at least as sure as its premises: for r(A, B) ∧ s(B, C) → t(A, C) with
t's aspects shared by r and s, d_t(A, C) ≤ d_r(A, B) + d_s(B, C) gives f_t ≥ max(0, f_r + f_s − 1), which is the
Łukasiewicz body (6). It is also close to what a bilinear scorer can say: on a circle, distance is mostly a cosine.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ukge.graph.columns import Confidences
from ukge.graph.synthetic.layout import EVERYWHERE, Layout
from ukge.graph.synthetic.schema import CENTRES, MORE_CENTRES, RELATIONS, TYPE_SHARES

DOUBT = 0.04
SLOPE = 0.45
JITTER = 0.12
# Keeps the random numbers of this module apart from those of the others.
_STREAM = 1

ASPECTS = sorted({aspect.name for relation in RELATIONS for aspect in relation.aspects})
TYPES = tuple(TYPE_SHARES)

Indices = npt.NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class Latent:
    """The place of every entity on every aspect (counted in centres) and its doubt in [0, 1]."""

    layout: Layout
    place: npt.NDArray[np.float32]
    doubt: npt.NDArray[np.float32]

    @classmethod
    def draw(cls, layout: Layout, seed: int) -> Latent:
        """Place all entities; each type of each region spreads evenly over the centres."""
        rng = np.random.default_rng([seed, _STREAM])
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
