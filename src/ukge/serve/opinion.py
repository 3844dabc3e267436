"""What the service asks about facts, whoever answers: the model alone, or the evidence that wraps it.

The rest of the service knows nothing else of models. Facts are triples of ids.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from ukge.serve.deadlines import Deadline

Triple = tuple[int, int, int]
Ids = npt.NDArray[np.int64]

COVERAGE = 0.9
"""Share of facts that an interval covers unless another is asked for."""
Floats = npt.NDArray[np.float64]

BoundsFrom = Literal["evidence", "validation", "nothing"]
"""Whether bounds come from evidence, from the model's errors on validation facts, or are not known."""


@dataclass(frozen=True)
class Stated:
    """A fact by ids with a confidence that the graph or a model states."""

    head: int
    relation: int
    tail: int
    confidence: float


@dataclass(frozen=True)
class Reason:
    """Why a fact is believed or not: a sentence, the observed facts behind it, and how much it moves the confidence.

    `contribution` is None where the parts of a confidence cannot be told apart, as for an embedding alone.
    """

    kind: str
    sentence: str
    contribution: float | None = None
    facts: tuple[Stated, ...] = ()
    rule: str | None = None


@dataclass(frozen=True)
class Explanation:
    """The reasons of one confidence. `base` is what the contributions start from, where there are any."""

    confidence: float
    interval: tuple[float, float] | None
    base: float | None
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class Asked:
    """Which unseen facts to look for: of which relations, between entities of their kind or any, how many, how sure."""

    relations: tuple[int, ...]
    limit: int
    minimum: float = 0.0
    fitting: bool = True


@dataclass(frozen=True)
class Completion:
    """The most confident unseen facts, and how many of the candidates were looked at before time was up."""

    facts: tuple[Stated, ...]
    examined: int
    candidates: int


@dataclass(frozen=True)
class Doubt:
    """An observed fact whose stored confidence is contradicted."""

    head: int
    relation: int
    tail: int
    stored: float
    predicted: float


class Opinion(Protocol):
    """Somebody who states how likely facts are."""

    kind: Literal["model", "evidence"]

    @property
    def bounds(self) -> BoundsFrom:
        """What bounds are taken from."""

    def confidence(self, facts: Sequence[Triple]) -> Floats:
        """Return the confidence of each fact, which may be false."""

    def confidence_if_held(self, facts: Sequence[Triple]) -> Floats:
        """Return the confidence of each fact, taken to be one of the graph."""

    def interval(self, facts: Sequence[Triple], coverage: float) -> tuple[Floats, Floats] | None:
        """Return the bounds of each confidence, or None if this opinion has none."""

    def proposed(self, given: int, relation: int, at_tail: bool, limit: int) -> Ids:
        """Return answers to a query that a search by the model may miss, the likeliest first."""

    def explain(self, fact: Triple, deadline: Deadline) -> Explanation:
        """Return the confidence of a fact with its reasons, the weightiest first."""

    def complete(self, asked: Asked, deadline: Deadline) -> Completion:
        """Return the most confident unseen facts."""

    def doubtful(self, limit: int) -> list[Doubt]:
        """Return the observed facts whose stored confidence is contradicted most; takes its time."""
