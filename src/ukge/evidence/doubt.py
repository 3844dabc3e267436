"""Observed facts whose stored confidence the evidence contradicts.

Trained models have seen the stored confidences and repeat them, errors included, so doubt does not ask them: it asks
what the *other* facts say. The observed facts are cut into parts, and those of a part are judged by the evidence of all
other parts (see `ukge.evidence.fitting`).

Trees fitted to the facts of other parts say which confidence is expected, and others how far off that usually is. How
surprising the stored confidence is, trees learn without being told which facts are wrong: they see every fact twice,
with its stored confidence and with a random one, and tell the two apart. Their log-odds are −ln of the density of the
stored confidence given the evidence, whatever its shape: where the inverse fact always has the same confidence, a small
difference is a contradiction, and where confidences scatter, a large one is none. That takes many facts; of fewer, the
density is taken to be Laplace's around the expected confidence, as wide as the usual error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from ukge.errors import ConfigError, DataError
from ukge.evidence.features import Features
from ukge.evidence.fitting import out_of_fold_columns, parts_of_facts
from ukge.evidence.settings import EvidenceSettings
from ukge.evidence.trees import Floats, Matrix, grow
from ukge.graph.selection import Names, mask_of
from ukge.graph.uncertain import UncertainGraph
from ukge.progress.steps import Steps, Tell

FEWEST = 50
"""Observed facts that doubt needs."""

LEAST_ERROR = 0.01
"""Least expected error: no fact is known so well that any difference is a contradiction."""

PARTS = 20
"""Parts of the observed facts; each is judged by the others."""

MANY = 20_000
"""Observed facts that it takes to learn the density of confidences."""

MOST = 100_000
"""Facts that trees learn from; more make no difference worth the time."""

COMPARED = (
    "twin_confidence",
    "inverse_confidence",
    "inverse_lowest",
    "inverse_highest",
    "inverse_unmatched",
    "pair_confidence",
    "implied_confidence",
    "implied_best",
    "query_confidence",
    "inverse_query_confidence",
)
"""Columns with a confidence that a stored one is compared with."""

GATHER, EXPECT, ERRORS, SURPRISE = (
    "gathering what the other facts say",
    "expecting the confidence of every fact",
    "measuring how far off that is",
    "judging how surprising each is",
)
STEPS = {GATHER: 2, EXPECT: 2, ERRORS: 2, SURPRISE: 4}
"""What judging does, with the share of its time that each step takes about."""

SETTINGS = EvidenceSettings(iterations=150, learning_rate=0.08, leaves=31, folds=3)
"""Trees that judge observed facts; there are many, so a few folds are enough."""


Way = Literal["any", "too-high", "too-low"]
WAYS: tuple[Way, ...] = ("any", "too-high", "too-low")
"""Which stored confidences are asked for: those that the other facts contradict, or of these one direction alone."""


@dataclass(frozen=True)
class Doubt:
    """An observed fact, the confidence that the other facts expect of it, and how surprising the stored one is.

    `error` is how far off such an expectation usually is. `surprise` is −ln of the density of the stored confidence
    given what the other facts say: above 0, a random confidence would be likelier than the stored one.
    """

    head: str
    relation: str
    tail: str
    stored: float
    expected: float
    error: float
    surprise: float
    source: str | None = None

    @property
    def gap(self) -> float:
        """How far the stored confidence is above the expected one."""
        return self.stored - self.expected

    def __str__(self) -> str:
        way = "high" if self.gap > 0 else "low"
        return (
            f"({self.head}, {self.relation}, {self.tail}): stored {self.stored:.2f} looks too {way}; the other facts "
            f"say {self.expected:.2f} ± {self.error:.2f}." + ("" if self.source is None else f" Source: {self.source}.")
        )


@dataclass(frozen=True, eq=False)
class Judgement:
    """What the other facts expect of each observed fact, by row of the graph."""

    graph: UncertainGraph
    expected: Floats
    error: Floats
    surprise: Floats

    def worst(
        self, k: int = 100, *, relations: Names | None = None, sources: Names | None = None, way: Way = "any"
    ) -> list[Doubt]:
        """Return the k observed facts (of some relations, from some sources) that are contradicted most, worst first.

        With `way`, only those whose stored confidence is above ("too-high") or below ("too-low") what is expected.
        """
        if k < 1:
            raise ConfigError(f"the number of facts is 1 or more, not {k}")
        if way not in WAYS:
            raise ConfigError(f"unknown direction of doubt {way!r}", hint=f"Known: {', '.join(WAYS)}.")
        rows = asked_rows(self.graph, relations, sources)
        if way != "any":
            above = self.graph.confidence[rows] > self.expected[rows]
            rows = rows[above if way == "too-high" else ~above]
        rows = rows[np.argsort(-self.surprise[rows], kind="stable")][:k]
        numbers = zip(self.expected[rows], self.error[rows], self.surprise[rows], strict=True)
        return [
            Doubt(*fact[:4], float(said), float(error), float(surprise), fact.source)
            for fact, (said, error, surprise) in zip(self.graph[rows], numbers, strict=True)
        ]


def asked_rows(graph: UncertainGraph, relations: Names | None, sources: Names | None) -> npt.NDArray[np.intp]:
    """Return the rows of a graph that have one of the relations and come from one of the sources; None is any."""
    return np.flatnonzero(mask_of(graph, None, relations, None, None, None, None, sources))


def doubt(
    features: Features,
    *,
    k: int = 100,
    relations: Names | None = None,
    sources: Names | None = None,
    way: Way = "any",
    settings: EvidenceSettings | None = None,
    tell: Tell | None = None,
) -> list[Doubt]:
    """Return the k observed facts whose stored confidence is contradicted most, worst first (see `Judgement.worst`)."""
    if k < 1:
        raise ConfigError(f"the number of facts is 1 or more, not {k}")
    asked_rows(features.index.graph, relations, sources)  # a name that is unknown is told before the work
    return judge(features, settings, tell).worst(k, relations=relations, sources=sources, way=way)


def judge(features: Features, settings: EvidenceSettings | None = None, tell: Tell | None = None) -> Judgement:
    """Judge every known fact by the facts of other parts, without the models that learnt it."""
    settings = settings or SETTINGS
    graph = features.index.graph
    if len(graph) < FEWEST:
        raise DataError(f"{len(graph)} observed facts are too few to doubt one of them", hint=f"It takes {FEWEST}.")
    part = parts_of_facts(features.index, PARTS, np.random.default_rng(settings.seed))
    steps = Steps(tell, STEPS)
    steps.begin(GATHER)
    names, columns = out_of_fold_columns(features, part, steps.within)
    fold = part % settings.folds
    stored = graph.confidence.astype(np.float64)
    steps.begin(EXPECT)
    expected = np.clip(_in_folds(columns, stored, fold, settings, steps.within), 0.0, 1.0)
    gap = np.abs(stored - expected)
    steps.begin(ERRORS)
    error = np.maximum(_in_folds(columns, gap, fold, settings, steps.within), 0.0) + LEAST_ERROR
    compared = [*(names.index(name) for name in COMPARED), len(names)]  # the last is the expected confidence
    beside = np.concatenate([columns, np.stack([expected, error], axis=1).astype(np.float32)], axis=1)
    if len(graph) < MANY:
        return Judgement(graph, expected, error, gap / error + np.log(2.0 * error))
    steps.begin(SURPRISE)
    return Judgement(graph, expected, error, _surprise(beside, compared, stored, fold, settings, steps.within))


def _in_folds(
    columns: Matrix,
    target: Floats,
    fold: npt.NDArray[np.int64],
    settings: EvidenceSettings,
    on_share: Callable[[float], None],
) -> Floats:
    """Return what trees fitted to the other folds predict for each row."""
    found = np.empty(len(target))
    for number, (held, others) in enumerate(_folds(fold, settings)):
        on_share(number / settings.folds)
        trees = grow("squared_error", columns[others], target[others], settings)
        found[held] = trees.predict(columns[held])
    return found


def _surprise(
    columns: Matrix,
    compared: list[int],
    stored: Floats,
    fold: npt.NDArray[np.int64],
    settings: EvidenceSettings,
    on_share: Callable[[float], None],
) -> Floats:
    """Return the log-odds that a random confidence would be stored rather than the one that is, given the evidence."""
    random = np.random.default_rng([settings.seed, 1]).random(len(stored))
    found = np.empty(len(stored))
    for number, (held, others) in enumerate(_folds(fold, settings)):
        on_share(number / settings.folds)
        sound = _with_confidence(columns[others], compared, stored[others])
        false = _with_confidence(columns[others], compared, random[others])
        truth = np.repeat([0, 1], len(others))
        trees = grow("log_loss", np.concatenate([sound, false]), truth, settings)
        found[held] = trees.predict(_with_confidence(columns[held], compared, stored[held]))
    return found


def _with_confidence(columns: Matrix, compared: list[int], confidence: Floats) -> Matrix:
    """Return the evidence beside a confidence, and how far that is from what the evidence says.

    The last two columns of the evidence are the expected confidence and its usual error.
    """
    own = confidence[:, None].astype(np.float32)
    away = own - columns[:, compared]
    nearest = np.fmin.reduce(np.abs(away), axis=1, keepdims=True)
    usual = np.abs(away[:, -1:]) / columns[:, -1:]
    return np.concatenate([columns, own, np.abs(away), away[:, -1:], nearest, usual], axis=1)


def _folds(
    fold: npt.NDArray[np.int64], settings: EvidenceSettings
) -> Iterator[tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]]:
    """Yield the rows of each fold, and those of the others to learn from: of very many, so many at random."""
    rng = np.random.default_rng(settings.seed)
    for number in range(settings.folds):
        others = np.flatnonzero(fold != number)
        yield np.flatnonzero(fold == number), np.sort(rng.permutation(others)[:MOST])
