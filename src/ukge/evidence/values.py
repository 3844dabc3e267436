"""What is known of the values that confidences take: trees that say in which cell of confidence a fact is.

They learn from the known facts, of which there are many more than validation facts, and see more than other trees do:
the cells of the facts around, and how names are spelt. What they say are columns of evidence for whoever asks for the
median confidence.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ukge.evidence.binning import Binned
from ukge.evidence.cells import Cells, Floats
from ukge.evidence.lookup import FactBatch
from ukge.evidence.settings import EvidenceSettings
from ukge.evidence.spelling import NAMES, Spelling
from ukge.evidence.surroundings import Surroundings
from ukge.evidence.trees import Matrix, Trees, grow
from ukge.graph.index import FactIndex

ABOVE = "above:"
"""How the columns begin that say how likely a confidence is above a value."""


@dataclass(frozen=True, eq=False)
class CellTrees:
    """Trees for each question about the cells: they give the log-odds of a yes."""

    cells: Cells
    trees: tuple[Trees, ...]

    def odds(self, columns: Matrix) -> Floats:
        """Return the log-odds of each question, (n, questions)."""
        return np.stack([each.predict(columns) for each in self.trees], axis=1)

    def predict(self, columns: Matrix) -> Floats:
        """Return the median confidence."""
        return self.cells.median(self.cells.chances(self.odds(columns)))


def cell_fits(
    cells: Cells,
    columns: Binned,
    confidence: Floats,
    settings: EvidenceSettings,
    rising: npt.NDArray[np.int8] | None = None,
) -> list[Callable[[], Trees]]:
    """Return a fit for each question, to the facts that it is about."""
    cell = cells.find(confidence)

    def fit(begin: int, middle: int, end: int) -> Trees:
        asked = np.flatnonzero((cell >= begin) & (cell < end))
        if len(asked) == 0:  # nobody will come to this question; whatever answers it must be trees
            asked = np.arange(len(cell))
        return grow("log_loss", columns.pick(asked), cell[asked] >= middle, settings, rising=rising)

    return [lambda each=each: fit(each.begin, each.middle, each.end) for each in cells.questions]  # type: ignore[misc]


@dataclass(frozen=True, eq=False)
class Around:
    """What the trees see besides the other evidence: the facts around, and the names if they count."""

    surroundings: Surroundings
    spelling: Spelling | None

    @staticmethod
    def width(cells: Cells, *, names: bool) -> int:
        """Return how many columns there are."""
        return Surroundings.width(cells) + names * len(NAMES)

    def columns(self, asked: FactBatch) -> Matrix:
        """Return what there is about facts, without what each of them adds itself."""
        found = self.surroundings.columns(asked)
        if self.spelling is None:
            return found
        return np.concatenate([found, self.spelling.columns(asked.head, asked.tail)], axis=1)

    def knowing(self, index: FactIndex, cells: Cells) -> Around:
        """Return the same names beside other facts."""
        return replace(self, surroundings=Surroundings.of(index, cells))


def around(index: FactIndex, cells: Cells, *, names: bool) -> Around:
    """Gather what the trees see besides the other evidence."""
    return Around(Surroundings.of(index, cells), Spelling.of(index.graph.entities) if names else None)


@dataclass(frozen=True, eq=False)
class KnownValues:
    """Trees over the graph's own evidence, and whether they look at names."""

    found: CellTrees
    names: bool

    @cached_property
    def column_names(self) -> tuple[str, ...]:
        """The columns: the questions, by the confidence that they ask about."""
        cells = self.found.cells
        return tuple(f"{ABOVE}{cells.edge[each.middle - 1]:.6f}" for each in cells.questions)

    def columns(self, graph_columns: Matrix, beside: Matrix) -> Floats:
        """Return the columns of facts."""
        return self.found.odds(np.concatenate([graph_columns, beside], axis=1))
