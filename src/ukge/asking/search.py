"""The k best entities for a query, by the model: every entity is scored, block by block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from ukge.graph.queries import SIDES, Queries, Side
from ukge.models.model import Model
from ukge.models.tables import best

Ids = npt.NDArray[np.int64]
Check = Callable[[], None]
"""Called now and then; raises when time is up."""

BLOCK_ELEMENTS = 1 << 22
"""Scores that are held at once."""

SMALL_SHARE = 8
"""Candidates fewer than one in so many are scored by themselves; of more, all are scored and the others struck out."""

NOBODY: Ids = np.zeros(0, dtype=np.int64)


class Found(NamedTuple):
    """The best entities of one query, best first, and their scores."""

    entity: Ids
    score: npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Wanted:
    """One query, how many answers, which entities may be answers (None for all) and which may not."""

    side: Side
    given: int
    relation: int
    k: int
    among: Ids | None = None
    without: Ids = field(default_factory=lambda: NOBODY)


class Searcher(Protocol):
    """Finds the best entities of several queries at once."""

    def search(self, wanted: Sequence[Wanted], check: Check = lambda: None) -> list[Found]:
        """Return the answers of each query; fewer than k where there are no more candidates."""

    def describe(self) -> dict[str, object]:
        """Return what kind of search this is, for people who ask the service about itself."""


class ExactSearch:
    """Scores every candidate; queries of one side that wait together share a pass over the entities."""

    def __init__(self, model: Model, block_elements: int = BLOCK_ELEMENTS) -> None:
        self.model = model
        self._block = block_elements

    def describe(self) -> dict[str, object]:
        """Return that the search is exact."""
        return {"kind": "exact", "recall": 1.0}

    def search(self, wanted: Sequence[Wanted], check: Check = lambda: None) -> list[Found]:
        """Return the answers of each query."""
        found: dict[int, Found] = {}
        together: dict[Side, list[int]] = {side: [] for side in SIDES}
        for place, one in enumerate(wanted):
            if one.among is not None and len(one.among) * SMALL_SHARE < self.model.n_entities:
                check()
                found[place] = self.among(one, np.setdiff1d(one.among, one.without))
            else:
                together[one.side].append(place)
        for side, places in together.items():
            step = max(1, self._block // max(self.model.n_entities, 1))
            for start in range(0, len(places), step):
                check()
                block = places[start : start + step]
                found |= zip(block, self._everywhere(side, [wanted[place] for place in block]), strict=True)
        return [found[place] for place in range(len(wanted))]

    def among(self, one: Wanted, candidates: Ids) -> Found:
        """Return the best of some candidates."""
        ends = np.full(len(candidates), one.given), candidates
        head, tail = ends if one.side == "tail" else ends[::-1]
        score = self.model.strength(head, np.full(len(candidates), one.relation), tail)
        at = best(score[None], one.k)[0]
        return Found(candidates[at], score[at])

    def _everywhere(self, side: Side, wanted: Sequence[Wanted]) -> list[Found]:
        given, relation = np.array([(one.given, one.relation) for one in wanted]).T
        scores = np.array(Queries.of(side, given, relation).scores(self.model))
        answers = []
        for one, row in zip(wanted, scores, strict=True):
            if one.among is not None:
                outside = np.ones(len(row), dtype=np.bool_)
                outside[one.among] = False
                row[outside] = -np.inf
            row[one.without] = -np.inf
            at = best(row[None], one.k)[0]
            at = at[np.isfinite(row[at])]
            answers.append(Found(at, row[at]))
        return answers


class Everyone:
    """Finds every entity that may be an answer, in no order, for judges that have no model to ask."""

    def __init__(self, n_entities: int) -> None:
        self._n = n_entities

    def describe(self) -> dict[str, object]:
        """Return that nobody is left out."""
        return {"kind": "exact", "recall": 1.0}

    def search(self, wanted: Sequence[Wanted], check: Check = lambda: None) -> list[Found]:
        """Return all candidates of each query."""
        check()
        found = [np.setdiff1d(np.arange(self._n) if one.among is None else one.among, one.without) for one in wanted]
        return [Found(each, np.zeros(len(each), dtype=np.float32)) for each in found]
