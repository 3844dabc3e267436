"""What every source says of every fact: once, however often it says it. The smallest of many sources share a voice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ukge.graph.claims import Claims
from ukge.graph.uncertain import UncertainGraph

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

MOST_VOICES = 256
"""Sources that are told apart; those with the fewest claims beyond it are taken together."""

OTHERS = "(all other sources)"


@dataclass(frozen=True, eq=False)
class Voices:
    """A row for every fact that a source speaks of: how often it said it, and its mean confidence."""

    names: tuple[str, ...]
    facts: UncertainGraph
    fact: Ints
    voice: Ints
    count: Ints
    confidence: Floats

    @classmethod
    def of(cls, claims: Claims, names: Sequence[str] | None = None) -> Voices:
        """Gather claims by fact and source: the sources `names`, or those of the claims. Claims of others are left out,
        unless `names` knows others taken together."""
        said = list(claims.sources)
        if names is None:
            size = np.bincount(claims.source, minlength=len(said))
            # By number, then by name, so that the order of the claims decides nothing.
            ranked = sorted((at for at in range(len(said)) if size[at]), key=lambda at: (-size[at], said[at]))
            names = [said[at] for at in ranked]
            names = names if len(names) <= MOST_VOICES else [*names[: MOST_VOICES - 1], OTHERS]
        place = {name: at for at, name in enumerate(names)}
        of_source = np.array([place.get(name, place.get(OTHERS, -1)) for name in said], np.int64)
        voice = of_source[claims.source]
        known = voice >= 0
        key = claims.fact[known] * len(names) + voice[known]
        found, row, count = np.unique(key, return_inverse=True, return_counts=True)
        mean = np.bincount(row, claims.confidence[known], minlength=len(found)) / count
        return cls(tuple(names), claims.facts, found // len(names), found % len(names), count, mean)

    def matrix(self, values: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        """Return values of the rows as a table with a row per fact and a column per source, 0 where nothing is said."""
        table = np.zeros((len(self.facts), len(self.names)), values.dtype)
        table[self.fact, self.voice] = values
        return table

    @property
    def says(self) -> Flags:
        """Whether each source (columns) speaks of each fact (rows)."""
        return np.asarray(self.matrix(np.ones(len(self.fact), np.bool_)), np.bool_)

    @property
    def sizes(self) -> Ints:
        """How many facts each source speaks of."""
        return np.bincount(self.voice, minlength=len(self.names))
