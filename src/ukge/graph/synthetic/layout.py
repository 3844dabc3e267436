"""Who is there: how many entities of each type live in each region, and which ids they have.

The ids of shared types come first, then region by region, within a region type by type. Regions keep a large world as
sparse as a small one: an entity has facts with its own region only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ukge.errors import ConfigError
from ukge.graph.synthetic.schema import SHARED_TYPES, TYPE_SHARES

EVERYWHERE = -1
FEWEST_ENTITIES = 100
_REGION = 1_000
_FACTS_PER_ENTITY = 20


@dataclass(frozen=True, eq=False)
class Layout:
    """`counts[region, type]` entities; shared types are counted in the first row, which stands for no region."""

    counts: npt.NDArray[np.int64]

    @classmethod
    def plan(cls, n_entities: int, n_facts: int) -> Layout:
        """Share out the entities: regions as large as it takes to hold that many facts per entity."""
        if n_entities < FEWEST_ENTITIES:
            raise ConfigError(
                f"{n_entities:,} entities are too few for a world of {len(TYPE_SHARES)} types",
                hint=f"Ask for {FEWEST_ENTITIES} or more.",
            )
        size = max(FEWEST_ENTITIES, _REGION * n_facts / (_FACTS_PER_ENTITY * n_entities))
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
