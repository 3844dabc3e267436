"""Observed facts whose stored confidence the evidence contradicts.

Trained models have seen the stored confidences and repeat them, errors included, so doubt does not ask them: it asks
what the *other* facts say. The observed facts are cut into parts, and those of a part are judged by the evidence of all
other parts. Leaving out only a fact's own row would not do for facts that trees learn from: a mean without one fact
tells, beside the means without each of the others, what that fact's confidence was.

Trees fitted to the facts of other parts say which confidence is expected; others say how far off that usually is. A
fact is doubtful if its stored confidence is surprising beside both.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ukge.errors import ConfigError, DataError
from ukge.evidence.features import Features, Matrix
from ukge.evidence.head import boosted, known_columns
from ukge.evidence.index import FactIndex
from ukge.evidence.settings import EvidenceSettings
from ukge.evidence.tables import Tables
from ukge.evidence.trees import Floats, Trees
from ukge.graph.uncertain import UncertainGraph
from ukge.logic.engine import using

if TYPE_CHECKING:
    from ukge.evidence.evidence import Evidence

FEWEST = 50
"""Observed facts that doubt needs."""

LEAST_ERROR = 0.01
"""Least expected error: no fact is known so well that any difference is a contradiction."""

PARTS = 20
"""Parts of the observed facts; each is judged by the others."""

SETTINGS = EvidenceSettings(iterations=150, learning_rate=0.08, leaves=31, folds=3)
"""Trees that judge observed facts; there are many, so a few folds are enough."""


@dataclass(frozen=True)
class Doubt:
    """An observed fact, the confidence that the other facts expect of it, and how surprising the stored one is.

    `error` is how far off such an expectation usually is. `surprise` is −ln of the density of the stored confidence
    around the expected one: a fact that is more surprising than another is more likely to be wrong.
    """

    head: str
    relation: str
    tail: str
    stored: float
    expected: float
    error: float
    surprise: float

    @property
    def gap(self) -> float:
        """How far the stored confidence is above the expected one."""
        return self.stored - self.expected

    def __str__(self) -> str:
        way = "high" if self.gap > 0 else "low"
        return (
            f"({self.head}, {self.relation}, {self.tail}): stored {self.stored:.2f} looks too {way}; the other facts "
            f"say {self.expected:.2f} ± {self.error:.2f}."
        )


@dataclass(frozen=True, eq=False)
class Judgement:
    """What the other facts expect of each observed fact, by row of the graph."""

    expected: Floats
    error: Floats
    surprise: Floats


def doubt(
    evidence: Evidence, *, k: int = 100, relations: list[str] | None = None, settings: EvidenceSettings | None = None
) -> list[Doubt]:
    """Return the k observed facts (of some relations) whose stored confidence is contradicted most, worst first."""
    if k < 1:
        raise ConfigError(f"the number of facts is 1 or more, not {k}")
    graph = evidence.known
    judged = judge(evidence.evidence, settings or SETTINGS)
    asked = np.ones(len(graph), dtype=np.bool_)
    if relations is not None:
        asked = np.isin(graph.relation, [graph.relations.id(name) for name in relations])
    worst = np.flatnonzero(asked)
    worst = worst[np.argsort(-judged.surprise[worst], kind="stable")][:k]
    numbers = zip(judged.expected[worst], judged.error[worst], judged.surprise[worst], strict=True)
    return [
        Doubt(fact.head, fact.relation, fact.tail, fact.confidence, float(said), float(error), float(surprise))
        for fact, (said, error, surprise) in zip(graph[worst], numbers, strict=True)
    ]


def judge(features: Features, settings: EvidenceSettings = SETTINGS) -> Judgement:
    """Judge every known fact by the facts of other parts, without the models that learnt it."""
    graph = features.index.graph
    if len(graph) < FEWEST:
        raise DataError(f"{len(graph)} observed facts are too few to doubt one of them", hint=f"It takes {FEWEST}.")
    part = np.random.default_rng(settings.seed).permutation(len(graph)) % PARTS
    columns, fold = _impartial(features, graph, part), part % settings.folds
    stored = graph.confidence.astype(np.float64)
    expected = np.clip(_in_folds(columns, stored, fold, settings), 0.0, 1.0)
    gap = np.abs(stored - expected)
    error = np.maximum(_in_folds(columns, gap, fold, settings), 0.0) + LEAST_ERROR
    return Judgement(expected, error, gap / error + np.log(2.0 * error))


def _impartial(features: Features, graph: UncertainGraph, part: npt.NDArray[np.int64]) -> Matrix:
    """Return the evidence of the other parts about every known fact; what models believe is left out."""
    asked = [at for at, name in enumerate(features.names) if not name.startswith("model:")]
    found = np.empty((len(graph), len(asked)), dtype=np.float32)
    with using("duckdb") as engine:
        for number in range(PARTS):
            held = part == number
            others, own = graph[np.flatnonzero(~held)], graph[np.flatnonzero(held)]
            blind = Features(FactIndex(others), Tables.of(others, engine), features.rules, features.backbones)
            columns = blind.columns(own.head, own.relation, own.tail)
            columns[:, 0] = features.category[own.relation]
            found[held] = columns[:, asked]
    return found


def _in_folds(columns: Matrix, target: Floats, fold: npt.NDArray[np.int64], settings: EvidenceSettings) -> Floats:
    """Return what trees fitted to the other folds predict for each row."""
    found = np.empty(len(target))
    for number in range(settings.folds):
        held = fold == number
        model = boosted("Regressor", "squared_error", None, settings)
        trees = Trees.of(model.fit(known_columns(columns[~held]), target[~held]))
        found[held] = trees.predict(columns[held])
    return found
