"""Cells of confidence: a few values that many facts share, and the stretches between them.

Extractors and voters give out the same few numbers again and again. The best guess by absolute error is the median, and
where confidences are such numbers the median is one of them: a tree that adds up small steps never says it. So a
confidence is told by questions with two answers, each about a run of cells: is it in one of the upper ones? From the
chances of the answers follow those of the cells, and from these the median.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Cell = npt.NDArray[np.intp]

COMMON = 0.01
"""Share of the facts that have one and the same confidence from which on it is a cell of its own."""

WIDEST = 0.07
"""Share of the facts that a stretch between such confidences holds at most, if their values can be parted."""

DIGITS = 6
"""Digits that equal confidences agree in: files round them."""

STEPS = 20
"""Steps in which the confidences of a cell are kept."""


@dataclass(frozen=True)
class Question:
    """Is the confidence in one of the cells from `middle` to `end`, if it is in one of those from `begin` on?"""

    begin: int
    middle: int
    end: int


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells in rising order."""

    edge: Floats
    """what parts neighbouring cells"""
    quantile: Floats
    """(cells, STEPS + 1): from the lowest to the highest confidence of each cell"""
    share: Floats
    """of the facts, in each cell"""

    @classmethod
    def of(cls, confidence: Floats) -> Cells:
        """Find the cells of known confidences."""
        value, count = np.unique(np.round(confidence, DIGITS), return_counts=True)
        common = count >= COMMON * len(confidence)
        # A run of values is what stands between two common ones; each common value is a run of its own.
        run = np.cumsum(common | np.append(False, common[:-1]))
        begun = np.cumsum(count) - count
        size = np.bincount(run, count)
        before = (begun - begun[np.searchsorted(run, run)]) + count / 2
        pieces = np.where(np.bincount(run, common) > 0, 1, np.ceil(size / (WIDEST * len(confidence))))
        piece = np.floor(pieces[run] * before / size[run])
        new = np.append(False, (run[1:] != run[:-1]) | (piece[1:] != piece[:-1]))
        edge = ((value[1:] + value[:-1]) / 2)[new[1:]]
        cell = np.searchsorted(edge, confidence)
        share = np.bincount(cell, minlength=len(edge) + 1) / len(confidence)
        steps = np.linspace(0.0, 1.0, STEPS + 1)
        quantile = np.stack([np.quantile(confidence[cell == each], steps) for each in range(len(share))])
        return cls(edge, quantile, share)

    def __len__(self) -> int:
        return len(self.share)

    def find(self, confidence: Floats) -> Cell:
        """Return the cell of each confidence."""
        return np.searchsorted(self.edge, confidence)

    @cached_property
    def questions(self) -> tuple[Question, ...]:
        """One question less than there are cells: each parts a run of cells into two that weigh much the same.

        So the questions about few facts are short, and most facts are told by two or three.
        """
        found, open_runs = [], [(0, len(self))]
        for begin, end in open_runs:
            if end - begin > 1:
                weight = np.cumsum(self.share[begin:end])
                middle = begin + 1 + int(np.argmin(np.abs(weight[:-1] - weight[-1] / 2)))
                found.append(Question(begin, middle, end))
                open_runs += [(begin, middle), (middle, end)]
        return tuple(found)

    def bands(self) -> Floats:
        """Return the two confidences that part the cells into a lower, a middle and an upper third, or nearly so."""
        reached = np.cumsum(self.share)[:-1]
        if len(reached) < 2:
            return np.append(self.edge, np.inf)[:2] if len(reached) else np.full(2, np.inf)
        low = int(np.argmin(np.abs(reached[:-1] - 1 / 3)))
        high = low + 1 + int(np.argmin(np.abs(reached[low + 1 :] - 2 / 3)))
        return self.edge[[low, high]]

    def chances(self, odds: Floats) -> Floats:
        """Return the chance of each cell, (n, cells), given the log-odds of a yes to each question."""
        found = np.ones((len(odds), len(self)))
        for number, each in enumerate(self.questions):
            upper = 1.0 / (1.0 + np.exp(-odds[:, number, None]))
            found[:, each.begin : each.middle] *= 1.0 - upper
            found[:, each.middle : each.end] *= upper
        return found

    def mean(self, chances: Floats) -> Floats:
        """Return the mean confidence."""
        found: Floats = chances @ self.quantile.mean(axis=1)
        return found

    def median(self, chances: Floats) -> Floats:
        """Return the median confidence: that of the cell in which it is, as far up as the chances say."""
        reached = np.cumsum(chances, axis=1)
        cell = np.minimum((reached < 0.5).sum(axis=1), len(self) - 1)
        row = np.arange(len(chances))
        own = chances[row, cell]
        missing = 0.5 - (reached[row, cell] - own)
        way = STEPS * np.clip(np.divide(missing, own, out=np.zeros_like(own), where=own > 0), 0.0, 1.0)
        step = np.minimum(way.astype(np.intp), STEPS - 1)
        low, high = self.quantile[cell, step], self.quantile[cell, step + 1]
        found: Floats = low + (high - low) * (way - step)
        return found
