"""Fusion: an extractor's confidence in a candidate fact and the graph's opinion of it, made into one confidence.

Without labels, the two are taken to be independent given whether the fact holds. Both say how the odds that it holds
moved from the same prior π, so the prior must be counted once:

    logit(fused) = logit(graph) + logit(extractor) − logit(π)

With labels, the weights of the two logits and a constant are learnt instead (logistic stacking), with weights that
cannot be negative; with many labels, isotonic regression on folds then corrects what is left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ukge.errors import ConfigError, DataError
from ukge.evidence.regressor import Calibration

Floats = npt.NDArray[np.float64]

PRIOR = 0.5
"""Share of true facts for which the evidence is calibrated: observed facts and negative links in equal parts."""

EDGE = 1e-3
"""Confidences are kept this far from 0 and 1: no single opinion settles a fact."""

FEWEST = 20
"""Labelled candidates that weights are learnt from."""

ENOUGH = 200
"""Labelled candidates from which on the result is calibrated too."""

RIDGE = 1.0
"""Pull of the learnt weights towards those of the rule without labels, in labelled candidates."""

FOLDS = 5

STEPS, SMALL = 50, 1e-9
"""Steps of Newton's method, and a step that is as good as none."""


@dataclass(frozen=True, eq=False)
class Fusion:
    """Weights of the graph's and of the extractor's logit, a constant, and perhaps a calibration."""

    graph: float = 1.0
    extractor: float = 1.0
    constant: float = 0.0
    prior: float = PRIOR
    calibration: Calibration | None = None

    @classmethod
    def by_prior(cls, prior: float = PRIOR) -> Fusion:
        """Return the rule without labels. `prior` is the share of true facts that both opinions start from."""
        if not 0.0 < prior < 1.0:
            raise ConfigError(f"a prior is a number between 0 and 1, not {prior:g}")
        return cls(constant=-float(logit(np.array([prior]))[0]), prior=prior)

    @classmethod
    def fit(cls, graph: Floats, extractor: Floats, label: Floats, *, prior: float = PRIOR, seed: int = 0) -> Fusion:
        """Learn from labelled candidates; a label is 0, 1, or a confidence between them.

        Where the graph has no opinion, `graph` is NaN.
        """
        if len(label) < FEWEST:
            raise DataError(
                f"{len(label)} labelled candidates are too few to learn from",
                hint=f"Give {FEWEST} or more, or none: then the prior rule is used.",
            )
        if label.min() == label.max():
            raise DataError("all labels are equal, so nothing can be learnt from them", hint="Label false facts too.")
        start = cls.by_prior(prior)
        fitted = start._learn(graph, extractor, label)
        if len(label) < ENOUGH:
            return fitted
        fold = np.random.default_rng(seed).permutation(len(label)) % FOLDS
        unseen = np.empty(len(label))
        for number in range(FOLDS):
            held = fold == number
            unseen[held] = start._learn(graph[~held], extractor[~held], label[~held])(graph[held], extractor[held])
        calibration = Calibration.fit(unseen, label)
        return cls(fitted.graph, fitted.extractor, fitted.constant, prior, calibration)

    def __call__(self, graph: Floats, extractor: Floats) -> Floats:
        """Return the fused confidence of each candidate; NaN stands for no opinion of the graph."""
        raw = self._inputs(graph, extractor) @ np.array([self.graph, self.extractor, self.constant])
        fused = sigmoid(raw)
        return fused if self.calibration is None else self.calibration(fused)

    def _inputs(self, graph: Floats, extractor: Floats) -> Floats:
        # Without an opinion of the graph the prior stands in for it: under the rule without labels it cancels out.
        known = np.where(np.isnan(graph), self.prior, graph)
        return np.stack([logit(known), logit(extractor), np.ones(len(known))], axis=1)

    def _learn(self, graph: Floats, extractor: Floats, label: Floats) -> Fusion:
        """Return the weights with the least cross-entropy, by Newton's method; a negative one is set to 0."""
        start = np.array([self.graph, self.extractor, self.constant])
        inputs = self._inputs(graph, extractor)
        free = np.ones(3, dtype=np.bool_)
        for _ in range(3):
            weights = newton(inputs[:, free], label, start[free])
            whole = np.zeros(3)
            whole[free] = weights
            negative = free & (whole < 0) & np.array([True, True, False])
            if not negative.any():
                break
            free &= ~negative
        return Fusion(float(whole[0]), float(whole[1]), float(whole[2]), self.prior)


def logit(confidence: Floats) -> Floats:
    """Return the log-odds of confidences, which are kept off 0 and 1."""
    kept = np.clip(confidence, EDGE, 1.0 - EDGE)
    return np.log(kept) - np.log1p(-kept)


def sigmoid(raw: Floats) -> Floats:
    """Return the confidences of log-odds."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * raw)))


def newton(inputs: Floats, label: Floats, start: Floats, ridge: Floats | float = RIDGE) -> Floats:
    """Return the weights with the least cross-entropy and pull towards `start`; a step that overshoots is halved.

    `ridge` is how strong the pull is, in labelled candidates, for all weights or for each.
    """
    pulls = np.broadcast_to(np.asarray(ridge, np.float64), start.shape)

    def cost(weights: Floats) -> float:
        raw = inputs @ weights
        pull = 0.5 * float(np.sum(pulls * (weights - start) ** 2))
        return float(np.sum(np.logaddexp(0.0, raw) - label * raw)) + pull

    weights = start
    for _ in range(STEPS):
        predicted = sigmoid(inputs @ weights)
        slope = inputs.T @ (predicted - label) + pulls * (weights - start)
        hessian = (inputs * (predicted * (1.0 - predicted))[:, None]).T @ inputs + np.diag(pulls)
        step = np.linalg.solve(hessian, slope)
        while np.abs(step).max() > SMALL and cost(weights - step) > cost(weights):
            step = step / 2
        if np.abs(step).max() <= SMALL:
            break
        weights = weights - step
    return weights
