"""From log-odds to one confidence: how much the sources, the structure and the graph count, learnt from labels if any.

With labels there are several ways, from simple to rich, and each is judged by labels that it did not see. Taken is the
simplest whose log score is within one standard error of the best one's, unless what was there before does better.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ukge.evidence.fuse import newton, sigmoid
from ukge.fusing.scores import Scores, log_losses
from ukge.fusing.voices import Floats

FOLDS = 5

KEPT, AGREED, WEIGHED, LEARNT = "kept", "agreed", "weighed", "learnt"
WAYS = {
    KEPT: "the mean of each fact's claims, as it was",
    AGREED: "reliabilities from agreement, no labels",
    WEIGHED: "reliabilities from agreement and labels, weights from labels",
    LEARNT: "as before, and a weight for every source from labels",
}
"""How confidences are made."""

TEMPER = 0.85
"""Weight of log-odds without labels: sources and structure are never quite independent (chosen on synthetic claims)."""

PULLS = {"sources": 4.0, "structure": 4.0, "constant": 1.0, "each": 10.0}
"""Pull of the weights towards what they are without labels, in labels."""


@dataclass(frozen=True, eq=False)
class Weights:
    """Weights of log-odds, and of every source's mention of a fact and of its confidence in it."""

    way: str
    sources: float = TEMPER
    structure: float = TEMPER
    constant: float = 0.0
    mention: Floats | None = None
    confidence: Floats | None = None

    def __call__(self, inputs: Inputs) -> Floats:
        """Return the confidence of each fact."""
        if self.way == KEPT:
            return inputs.before
        raw = self.sources * inputs.sources + self.structure * inputs.structure + self.constant
        if self.mention is not None and self.confidence is not None:
            raw = raw + inputs.mention @ self.mention + inputs.confidence @ self.confidence
        return sigmoid(raw)


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a confidence is made of, a row per fact: the log-odds by sources and structure, what each source says."""

    before: Floats
    sources: Floats
    structure: Floats
    mention: Floats
    confidence: Floats

    def pick(self, rows: npt.NDArray[np.int64]) -> Inputs:
        """Return those of some facts."""
        return Inputs(
            self.before[rows], self.sources[rows], self.structure[rows], self.mention[rows], self.confidence[rows]
        )


@dataclass(frozen=True, eq=False)
class Weighing:
    """The weights that were chosen, how the confidences of before and those of every way did on labels not seen."""

    weights: Weights
    scores: Mapping[str, Scores]

    @property
    def before(self) -> Scores:
        """How the claims' own means did."""
        return self.scores[KEPT]

    @property
    def after(self) -> Scores:
        """How the chosen way did."""
        return self.scores[self.weights.way]


Fit = Callable[[Inputs, Floats], Weights]


def weigh(unseen: Inputs, agreed: Inputs, label: Floats, fold: npt.NDArray[np.int64]) -> Weighing:
    """Choose a way by labelled facts and learn its weights from all of them.

    `unseen` are inputs that were made without each fact's own label, `agreed` those made without any label.
    """
    fits: dict[str, Fit] = {WEIGHED: _few, LEARNT: _many}
    held = {KEPT: unseen.before, AGREED: Weights(AGREED)(agreed)}
    for way, fit in fits.items():
        said = np.empty(len(label))
        for number in np.unique(fold):
            rows, rest = np.flatnonzero(fold == number), np.flatnonzero(fold != number)
            said[rows] = fit(unseen.pick(rest), label[rest])(unseen.pick(rows))
        held[way] = said
    scores = {way: Scores.of(said, label) for way, said in held.items()}
    best = _simplest(held, label)
    if scores[best].is_worse_than(scores[KEPT]):
        best = KEPT
    weights = fits[best](unseen, label) if best in fits else Weights(best)
    return Weighing(weights, scores)


def _simplest(held: Mapping[str, Floats], label: Floats) -> str:
    """Return the first way that loses no more against the best one than chance would let it."""
    losses = {way: log_losses(said, label) for way, said in held.items()}
    best = min(losses, key=lambda way: float(losses[way].mean()))
    for way, loss in losses.items():
        behind = loss - losses[best]
        if behind.mean() <= behind.std() / np.sqrt(len(label)):
            return way
    return best


def _few(inputs: Inputs, label: Floats) -> Weights:
    table = np.stack([inputs.sources, inputs.structure, np.ones(len(label))], axis=1)
    pulls = np.array([PULLS["sources"], PULLS["structure"], PULLS["constant"]])
    found = newton(table, label, np.array([TEMPER, TEMPER, 0.0]), pulls)
    return Weights(WEIGHED, float(found[0]), float(found[1]), float(found[2]))


def _many(inputs: Inputs, label: Floats) -> Weights:
    own = inputs.mention.shape[1]
    shared = np.stack([inputs.sources, inputs.structure, np.ones(len(label))], axis=1)
    table = np.concatenate([shared, inputs.mention, inputs.confidence], axis=1)
    start = np.concatenate([[TEMPER, TEMPER, 0.0], np.zeros(2 * own)])
    pulls = [PULLS["sources"], PULLS["structure"], PULLS["constant"]]
    found = newton(table, label, start, np.concatenate([pulls, np.full(2 * own, PULLS["each"])]))
    return Weights(
        LEARNT, float(found[0]), float(found[1]), float(found[2]), found[3 : 3 + own], found[3 + own : 3 + 2 * own]
    )
