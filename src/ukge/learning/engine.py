"""What a training engine is, and what it learns from: data and parameters in, epochs run, state out.

All engines minimise the same objective.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from ukge.errors import DataError, RunError
from ukge.logic.ground_rules import GroundRules
from ukge.models.tables import Floats, Parameters, State


@dataclass(frozen=True)
class TrainingData:
    """What an engine learns from: observed facts and ground rules, by id. Nothing of validation or test."""

    head: npt.NDArray[np.int32]
    relation: npt.NDArray[np.int32]
    tail: npt.NDArray[np.int32]
    confidence: Floats
    n_entities: int
    n_relations: int
    rules: GroundRules | None = None
    undirected: npt.NDArray[np.bool_] | None = None
    """which relations have no direction, if any"""

    def __post_init__(self) -> None:
        """Refuse ids outside the tables: compiled code does not look where it goes."""
        for facts in (self, self.rules):
            if facts is not None:
                for name, bound in (
                    ("head", self.n_entities),
                    ("relation", self.n_relations),
                    ("tail", self.n_entities),
                ):
                    _check_ids(getattr(facts, name), bound, name, len(facts.head))

    def __len__(self) -> int:
        return len(self.head)

    def check(self, parameters: Parameters) -> None:
        """Refuse tables with another number of rows than there are entities and relations."""
        rows = len(parameters.entity), len(parameters.relation), parameters.link.shape
        if rows != (self.n_entities, self.n_relations, (2,)):
            raise RunError(
                f"the tables of {rows[0]:,} entities and {rows[1]:,} relations do not fit the data, which has "
                f"{self.n_entities:,} and {self.n_relations:,}",
                hint="Train again.",
            )

    def observed(self) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32], npt.NDArray[np.int32]]:
        """Return every triple that is observed: the facts, and those without a direction read backwards too."""
        if self.undirected is None:
            return self.head, self.relation, self.tail
        turned = self.undirected[self.relation] & (self.head != self.tail)
        return (
            np.concatenate([self.head, self.tail[turned]]),
            np.concatenate([self.relation, self.relation[turned]]),
            np.concatenate([self.tail, self.head[turned]]),
        )


def _check_ids(ids: npt.NDArray[np.int32], bound: int, name: str, n_facts: int) -> None:
    if len(ids) != n_facts:
        raise DataError(f"{len(ids):,} ids of {name}s do not fit {n_facts:,} facts")
    if n_facts and not (ids.min() >= 0 and ids.max() < bound):
        wrong = int(ids.min()) if ids.min() < 0 else int(ids.max())
        raise DataError(f"the {name} {wrong} of a training fact or ground rule is not below {bound:,}")


@dataclass(frozen=True)
class EpochResult:
    """What one epoch cost: the mean of each term of the objective over the epoch's batches."""

    facts: int
    losses: Mapping[str, float]

    @property
    def loss(self) -> float:
        """The whole objective."""
        return float(sum(self.losses.values()))


class Engine(Protocol):
    """Runs epochs over the training data and updates `parameters` in place.

    An epoch is a function of the state, the seed and its number alone, so that a run resumed from a checkpoint goes on
    exactly as one that was never interrupted.
    """

    parameters: Parameters

    def epoch(self, number: int, on_facts: Callable[[int], None] | None = None) -> EpochResult:
        """Run epoch `number` (from 0); `on_facts` is told now and then how many more facts are done."""

    def sync(self) -> None:
        """Bring `parameters` up to date with the engine's own copy, if it has one (another device)."""

    def state(self) -> State:
        """Return everything besides the parameters that the next epoch depends on (the optimiser's moments)."""

    def load_state(self, state: State) -> None:
        """Take up a state that `state` gave."""
