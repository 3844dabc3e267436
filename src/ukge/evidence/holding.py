"""Does an observed fact hold at all? A chance of its own, whatever confidence is stored with it.

Each fact is judged by the facts of the other parts, without its own confidence and without the models that learnt it.
Trees tell the observed facts from links that are taken to be false. That alone would order facts by how absurd they
look, and in a graph where many facts are false it would learn false facts as true ones. Both are taken into account:

1. A first look at all kinds of links says which half of the facts is to be trusted; links are drawn again like those.
2. It is found how many observed facts may be like each kind of link (see `ukge.evidence.false_facts`). Their sum B is
   the share of facts that do not hold.
3. Trees tell the facts from the links in that mixture. With odds e^z of a fact among them, B · e^(−z) of the facts that
   look so do not hold: learning from positives of which some are false. To weigh facts by their stored confidences, or
   down those that an earlier round found false, was tried: the order became worse, and the chances no chances.

People's labels, if there are some, correct the chances: a line through the log-odds, pulled towards none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from ukge.errors import ConfigError, DataError
from ukge.evidence import doubt
from ukge.evidence.false_facts import FalseLinks, by_name, false_links, shares_of_kinds, told_apart
from ukge.evidence.features import Features
from ukge.evidence.fitting import out_of_fold_columns, parts_of_facts
from ukge.evidence.settings import EvidenceSettings
from ukge.evidence.trees import Floats, Matrix, Trees, side_by_side
from ukge.graph.selection import Names
from ukge.graph.uncertain import UncertainGraph
from ukge.progress.steps import Steps, Tell

MOST = 100_000
"""Facts that trees learn from; more make no difference worth the time."""

SPREAD = 0.3
"""Share of the links that all kinds have alike, so that the order knows a kind that the shares miss. It was chosen on
worlds of seeds 0 and 1: with less, facts of a missed kind are lost; with more, the first of those that fit."""

FIRST_TREES = 60
"""Trees of the first look."""

EDGE = 1e-3
"""No chance is nearer to 0 or 1."""

FEWEST_LABELS = 20
"""Labelled facts that correct the chances, some of which hold and some of which do not."""

PULL = 4.0
"""Pull of the correction towards none, in labelled facts."""

GATHER, FIRST, KINDS, JUDGE = (
    "gathering what the other facts say",
    "a first look at which facts hold",
    "finding what false facts are like",
    "judging whether each fact holds",
)
STEPS = {GATHER: 3, FIRST: 3, KINDS: 5, JUDGE: 5}
"""What judging does, with the share of its time that each step takes about."""


@dataclass(frozen=True, slots=True)
class LikelyFalse:
    """An observed fact with the chance that it holds, whatever confidence is stored with it."""

    head: str
    relation: str
    tail: str
    stored: float
    chance: float
    source: str | None = None

    def __str__(self) -> str:
        said = "" if self.source is None else f" by {self.source}"
        return (
            f"({self.head}, {self.relation}, {self.tail}): holds with a chance of {self.chance:.0%}, by the other "
            f"facts; stored with {self.stored:.2f}{said}."
        )


@dataclass(frozen=True, eq=False)
class Holding:
    """What the other facts say of whether each observed fact holds, by row of the graph."""

    graph: UncertainGraph
    chance: Floats
    odds: Floats
    """log-odds that order the facts as the chances do, without their ties"""
    kinds: Mapping[str, float]
    """the share of facts that may be false and like each kind of negative link"""
    labels: int = 0
    """how many labelled facts corrected the chances"""

    @property
    def false(self) -> float:
        """The share of the facts that do not hold."""
        return float(1.0 - self.chance.mean()) if len(self.chance) else 0.0

    def likely_false(
        self, k: int = 100, *, relations: Names | None = None, sources: Names | None = None
    ) -> list[LikelyFalse]:
        """Return the k facts (of some relations, from some sources) that most likely do not hold, worst first."""
        if k < 1:
            raise ConfigError(f"the number of facts is 1 or more, not {k}")
        rows = doubt.asked_rows(self.graph, relations, sources)
        rows = rows[np.argsort(self.odds[rows], kind="stable")][:k]
        return [
            LikelyFalse(*fact[:4], float(chance), fact.source)
            for fact, chance in zip(self.graph[rows], self.chance[rows], strict=True)
        ]


def judge_holding(
    features: Features,
    settings: EvidenceSettings | None = None,
    tell: Tell | None = None,
    *,
    labels: Floats | None = None,
) -> Holding:
    """Judge for every known fact whether it holds, by the facts of other parts.

    `labels` has for each fact 1 if people say that it holds, 0 if not, or a share between; NaN where nobody says.
    """
    chosen = settings or doubt.SETTINGS
    graph = features.index.graph
    if len(graph) < doubt.FEWEST:
        raise DataError(
            f"{len(graph)} observed facts are too few to doubt one of them", hint=f"It takes {doubt.FEWEST}."
        )
    alone = replace(features, backbones=(), expectation=None, values=None)
    part = parts_of_facts(features.index, doubt.PARTS, np.random.default_rng(chosen.seed))
    steps = Steps(tell, STEPS)
    steps.begin(GATHER)
    _, columns = out_of_fold_columns(alone, part, steps.within)
    steps.begin(FIRST)
    look = replace(chosen, iterations=min(FIRST_TREES, chosen.iterations))
    every = false_links(alone, part, np.ones(len(graph), dtype=np.bool_), chosen, lambda at: steps.within(at / 2))
    odds = _odds(columns, part, every, np.ones(len(every.part)), look, lambda at: steps.within((1 + at) / 2))
    steps.begin(KINDS)
    links = false_links(alone, part, odds >= np.median(odds), chosen, lambda at: steps.within(at / 2))
    shares = shares_of_kinds(columns, part, links, chosen, lambda at: steps.within((1 + at) / 2))
    steps.begin(JUDGE)
    odds = _odds(columns, part, links, links.weight(shares, SPREAD), chosen, steps.within)
    false = np.minimum(1.0, float(shares.sum()) * np.exp(-np.maximum(odds, -50.0)))
    chance = np.clip(1.0 - false, EDGE, 1.0 - EDGE)
    said = np.zeros(0) if labels is None else labels[~np.isnan(labels)]
    counted = len(said) if len(said) >= FEWEST_LABELS and said.min() < 0.5 < said.max() else 0
    if labels is not None and counted:
        chance = corrected(chance, labels)
    return Holding(graph, chance, odds, by_name(links, shares), counted)


def _odds(
    columns: Matrix,
    part: npt.NDArray[np.int64],
    links: FalseLinks,
    weight: Floats,
    settings: EvidenceSettings,
    on_share: Callable[[float], None],
) -> Floats:
    """Return the log-odds of each fact to be one, by trees that saw neither it nor the links of its part."""
    rng = np.random.default_rng([settings.seed, 4])
    fold, link_fold = part % settings.folds, links.part % settings.folds
    seen = [np.sort(rng.permutation(np.flatnonzero(fold != number))[:MOST]) for number in range(settings.folds)]
    false = [np.flatnonzero((link_fold != number) & (weight > 0)) for number in range(settings.folds)]

    def fit(number: int) -> Callable[[], Trees]:
        own, others = seen[number], false[number]
        return lambda: told_apart(columns[own], links.columns[others], np.ones(len(own)), weight[others], settings)

    grown = side_by_side([fit(number) for number in range(settings.folds)], on_share)
    found = np.empty(len(columns))
    for number, trees in enumerate(grown):
        found[fold == number] = trees.predict(columns[fold == number])
    return found


def corrected(chance: Floats, labels: Floats) -> Floats:
    """Return chances through the line of their log-odds that fits the labels best, pulled towards no correction."""
    raw = np.log(chance) - np.log1p(-chance)
    known = ~np.isnan(labels)
    inputs, start = np.stack([raw[known], np.ones(int(known.sum()))], axis=1), np.array([1.0, 0.0])
    line = start
    for _ in range(50):
        said = _sigmoid(inputs @ line)
        slope = inputs.T @ (said - labels[known]) + PULL * (line - start)
        curve = (inputs * np.maximum(said * (1.0 - said), 1e-6)[:, None]).T @ inputs + PULL * np.eye(2)
        step = np.linalg.solve(curve, slope)
        line = line - np.clip(step, -1.0, 1.0)
        if np.abs(step).max() < 1e-9:
            break
    return np.clip(_sigmoid(max(line[0], 0.0) * raw + line[1]), EDGE, 1.0 - EDGE)


def _sigmoid(raw: Floats) -> Floats:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * raw)))
