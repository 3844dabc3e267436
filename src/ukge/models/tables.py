"""A model's tables, wherever they lie: rows by id, and how well every entity answers queries.

In arrays of this process, which answer at once; on another device; or in shards over many ranks
(`ukge.distributed.table`). What is asked of them is the same, so everything else about predicting is in `model`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from ukge.models.scorers import Scorer

Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.integer[Any]]
State = dict[str, npt.NDArray[Any]]

SHARED = "shared."
"""Begins the names of tables that all facts share, among those of all tables."""

LINE = 64
"""Bytes of a cache line."""


@dataclass
class Parameters:
    """The weights of a model, as plain arrays that both engines and every predictor share.

    `entity` and `relation` hold one row per name; `link` holds the weight w and the bias b of φ (eq. 3 and 4);
    `shared` holds the tables that all facts share, by name, of scorers that have any.
    """

    entity: Floats
    relation: Floats
    link: Floats = field(default_factory=lambda: np.array([1.0, 0.0], dtype=np.float32))
    shared: dict[str, Floats] = field(default_factory=dict)

    @classmethod
    def of(cls, arrays: Mapping[str, Floats]) -> Parameters:
        """Return what `as_dict` gave."""
        return cls(arrays["entity"], arrays["relation"], arrays["link"], shared_of(arrays))

    def copy(self) -> Parameters:
        """Return parameters that share nothing with these."""
        return Parameters.of({name: array.copy() for name, array in self.as_dict().items()})

    def as_dict(self) -> State:
        """Return the arrays by name."""
        shared = {f"{SHARED}{name}": array for name, array in self.shared.items()}
        return {"entity": self.entity, "relation": self.relation, "link": self.link, **shared}

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(array.nbytes for array in self.as_dict().values())


def shared_of(tables: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of all tables, arrays or tensors, that all facts share."""
    return {name.removeprefix(SHARED): table for name, table in tables.items() if name.startswith(SHARED)}


def aligned_zeros(*shape: int) -> Floats:
    """Return a table of zeros that begins at a cache line; its pages are not touched until somebody writes to them.

    NumPy's own begin 16 bytes after one, so that every second vector load of a row crosses two lines.
    """
    n_bytes = int(np.prod(shape, dtype=np.int64)) * 4
    memory = np.zeros(n_bytes + LINE, dtype=np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start : start + n_bytes].view(np.float32).reshape(shape)


MANY = 1 << 26
"""Differences from which on PyTorch, whose threads share them, has distances done before NumPy."""


class Questions(NamedTuple):
    """Queries that are put to every entity. Those of `both` have no direction: `back` asks them from the other side."""

    query: Any
    both: npt.NDArray[np.int64]
    back: Any
    sign: float
    """What plausibilities are multiplied by so that a higher one means a higher confidence."""


class Tables(ABC):
    """The rows of entities and relations, the link's w and b, and what all facts share: arrays, or tensors."""

    rows_at_once: ClassVar[int] = 1 << 17
    """Elements of the rows that are looked up at once for facts: few enough to stay in a cache."""

    scores_at_once: ClassVar[int] = 1 << 20
    """Elements that a block of scores may hold."""

    relation: Any
    link: Any
    shared: Mapping[str, Any]

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """How many entities there are, and how wide their rows."""

    @abstractmethod
    def rows(self, ids: Ids) -> Any:
        """Return the rows of entities."""

    @abstractmethod
    def kinds(self, ids: Ids) -> Any:
        """Return the rows of relations."""

    @abstractmethod
    def compare_all(self, scorer: Scorer, query: Any) -> Any:
        """Return the plausibility of every entity for each query."""

    @abstractmethod
    def best(self, scorer: Scorer, asked: Questions, k: int) -> tuple[Any, Any]:
        """Return the k best entities of each query, best first, and their scores."""

    @abstractmethod
    def numbers(self, values: Any) -> npt.NDArray[Any]:
        """Return values as an array of this process."""

    def scores(self, scorer: Scorer, asked: Questions) -> Any:
        """Return a score of every entity for each query, a higher one for a higher confidence."""
        plausibility = self.compare_all(scorer, asked.query)
        if len(asked.both):
            plausibility[asked.both] = (plausibility[asked.both] + self.compare_all(scorer, asked.back)) / 2
        return -plausibility if asked.sign < 0 else plausibility


class ArrayTables(Tables):
    """Arrays, read in place."""

    def __init__(self, parameters: Parameters) -> None:
        self.entity, self.relation, self.link = parameters.entity, parameters.relation, parameters.link
        self.shared = parameters.shared

    @property
    def shape(self) -> tuple[int, int]:
        """How many entities there are, and how wide their rows."""
        return self.entity.shape[0], self.entity.shape[1]

    def rows(self, ids: Ids) -> Any:
        """Return the rows of entities."""
        return self.entity[ids]

    def kinds(self, ids: Ids) -> Any:
        """Return the rows of relations."""
        return self.relation[ids]

    def compare_all(self, scorer: Scorer, query: Any) -> Any:
        """Return the plausibility of every entity for each query; by PyTorch where its threads are worth loading it."""
        if scorer.inner_product or query.size * len(self.entity) < MANY:
            return scorer.compare_all(query, self.entity)
        import torch  # noqa: PLC0415 — only what is worth its loading

        # PyTorch has no read-only tensors: such a table is copied.
        tensors = (torch.from_numpy(np.require(rows, requirements="W")) for rows in (query, self.entity))
        shared = {name: torch.from_numpy(np.require(table, requirements="W")) for name, table in self.shared.items()}
        with torch.no_grad():
            return scorer.bound(shared).compare_all(*tensors).numpy()

    def best(self, scorer: Scorer, asked: Questions, k: int) -> tuple[Any, Any]:
        """Return the k best entities of each query and their scores; of equal ones, the first comes first."""
        scores = self.scores(scorer, asked)
        entity = best(scores, k)
        return entity, np.take_along_axis(scores, entity, axis=1)

    def numbers(self, values: Any) -> npt.NDArray[Any]:
        """Return values as they are."""
        return np.asarray(values)


def best(scores: Floats, k: int) -> npt.NDArray[np.int64]:
    """Return the places of the k highest scores of each row, best first; of equal ones, the first comes first."""
    k = min(k, scores.shape[1])
    found = np.empty((len(scores), k), dtype=np.int64)
    if k:
        for row, own in zip(scores, found, strict=True):
            least = np.partition(row, len(row) - k)[len(row) - k]
            place = np.flatnonzero(~(row < least))
            own[:] = place[np.argsort(-row[place], kind="stable")[:k]]
    return found
