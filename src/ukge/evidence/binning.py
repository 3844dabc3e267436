"""Columns as small numbers: the values of each are put into at most 255 bins, which trees are grown over.

Bins are made once for all trees that learn from the same facts, whatever part of them each tree sees. They depend on
what is known of the facts, never on what is to be learnt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

BINS = 255
"""Bins of a column at most."""

MISSING = 255
"""What stands for a value that is not known."""

CODES = 256

CATEGORY = 0
"""The column whose values are categories from 0 to 254; each is a bin of its own."""

MOST = 200_000
"""Rows that bins are made from at most."""

Limits = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Binned:
    """Facts as bins, twice: by column, to part them at a threshold, and by row, to sum up over them.

    Most columns have one value that most facts have (nothing is known, none was found). By row that value is left out:
    its sums are what the other bins leave of the whole, and half of the additions are saved.
    """

    codes: npt.NDArray[np.uint8]
    """(columns, rows): the bin of each value"""
    limits: tuple[Limits, ...]
    """for each column: values up to `limits[i]` are in bin i, or one before it"""
    first: npt.NDArray[np.int64]
    """where the bins of column i stand if those of all columns are counted; the last of each is for missing values"""
    usual: npt.NDArray[np.int64]
    """the bin of each column that is left out by row"""
    missing: npt.NDArray[np.bool_]
    """whether values of a column are missing in any row"""
    start: npt.NDArray[np.int64]
    """the values of row i by row are `entry[start[i]:start[i + 1]]`"""
    entry: npt.NDArray[Any]
    """bins, counted over all columns"""

    @classmethod
    def of(cls, columns: npt.NDArray[np.float32]) -> Binned:
        """Put the values of columns into bins; column 0 holds categories."""
        n, width = columns.shape
        codes = np.empty((width, n), dtype=np.uint8)
        limits = []
        for number in range(width):
            values = columns[:, number]
            unknown = np.isnan(values)
            found = np.arange(BINS - 1.0) if number == CATEGORY else _limits(values[~unknown])
            codes[number] = np.searchsorted(found, values, side="left")
            codes[number, unknown] = MISSING
            limits.append(found)
        return cls._by_row(codes, tuple(limits))

    @classmethod
    def _by_row(cls, codes: npt.NDArray[np.uint8], limits: tuple[Limits, ...]) -> Binned:
        count = np.stack([np.bincount(each, minlength=CODES) for each in codes])
        usual = count.argmax(axis=1)
        told = np.ascontiguousarray((codes != usual[:, None]).T)
        start = np.zeros(codes.shape[1] + 1, dtype=np.int64)
        np.cumsum(told.sum(axis=1), out=start[1:])
        first = np.concatenate([[0], np.cumsum([len(each) + 2 for each in limits])])
        place = np.minimum(first[:-1, None] + np.arange(CODES), first[1:, None] - 1)
        narrow = np.uint16 if first[-1] <= 1 << 16 else np.int32
        entry = np.stack([own[each].astype(narrow) for own, each in zip(place, codes, strict=True)], axis=1)[told]
        return cls(codes, limits, first, usual, count[:, MISSING] > 0, start, entry)

    def __len__(self) -> int:
        return len(self.start) - 1

    def pick(self, rows: npt.NDArray[Any]) -> Binned:
        """Return some of the rows, in the same bins."""
        return self._by_row(np.ascontiguousarray(self.codes[:, rows]), self.limits)


def _limits(known: npt.NDArray[np.float32]) -> Limits:
    """Return what separates the bins of known values: halfway between neighbours if they are few, else quantiles."""
    values = known[:: -(-len(known) // MOST)] if len(known) > MOST else known
    values = np.sort(values).astype(np.float64)
    first = np.flatnonzero(np.diff(values, prepend=-np.inf) > 0)
    if len(first) <= BINS:
        distinct = values[first]
        return (distinct[1:] + distinct[:-1]) / 2
    # the mean of the two values around each quantile where it falls between them
    place = np.arange(1, BINS) * (len(values) / BINS)
    above = np.floor(place).astype(np.int64)
    below = np.ceil(place).astype(np.int64) - 1
    limits: Limits = np.unique((values[below] + values[above]) / 2)
    return limits
