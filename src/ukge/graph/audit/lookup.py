"""Facts grouped by triple: the one look-up behind repeats, twins, symmetry, negatives and baselines."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ukge.graph.keys import Keys

Floats = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ByTriple:
    """Distinct triple keys, sorted, each with the rows that hold it (`order[start : start + count]`)."""

    keys: Keys
    order: Counts
    start: Counts
    count: Counts
    confidence: Floats

    @classmethod
    def of(cls, keys: Keys, confidence: Floats) -> ByTriple:
        """Group the rows of one graph by their triple keys."""
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        first = np.ones(len(ordered), dtype=np.bool_)
        first[1:] = ordered[1:] != ordered[:-1]
        start = np.flatnonzero(first)
        count = np.diff(np.append(start, len(ordered)))
        return cls(ordered[start], order, start, count, confidence[order])

    def __len__(self) -> int:
        return len(self.keys)

    def mean(self) -> Floats:
        """Return the mean confidence of each distinct triple."""
        return self._sums(self.confidence) / self.count

    def mean_square(self) -> Floats:
        """Return the mean squared confidence of each distinct triple."""
        return self._sums(self.confidence**2) / self.count

    def spread(self) -> Floats:
        """Return the highest minus the lowest confidence of each distinct triple."""
        if len(self) == 0:
            return np.zeros(0)
        highest = np.maximum.reduceat(self.confidence, self.start)
        return np.asarray(highest - np.minimum.reduceat(self.confidence, self.start))

    def find(self, keys: Keys) -> Counts:
        """Return for each key its place among the distinct triples, −1 where there is none."""
        if len(self) == 0:
            return np.full(len(keys), -1, dtype=np.int64)
        at = np.searchsorted(self.keys, keys)
        at[at == len(self)] = 0
        return np.where(self.keys[at] == keys, at, -1)

    def _sums(self, values: Floats) -> Floats:
        return np.add.reduceat(values, self.start) if len(self) else np.zeros(0)
