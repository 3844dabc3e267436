"""Telling strong facts from weak ones and from false links: a logistic regression on the predicted confidence."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ukge.errors import DataError
from ukge.evaluation.metric import Means, Measured, metric
from ukge.graph.queries import Floats, Numbers

Flags = npt.NDArray[np.bool_]

INVERSE_PENALTY = 1e4
"""scikit-learn's C. With its default of 1 the penalty would move the threshold of graphs of some thousand facts."""


@dataclass(frozen=True, slots=True)
class Classification:
    """How well strong facts are found; a score that would divide by 0 is 0."""

    f1: float = metric("F1", "higher")
    accuracy: float = metric("accuracy", "higher")
    precision: float = metric("precision", "higher")
    recall: float = metric("recall", "higher")
    facts: int = 0


@dataclass(frozen=True, slots=True)
class StrongFacts:
    """A logistic regression on one number: strong where `slope`·confidence + `offset` is above 0."""

    slope: float
    offset: float

    @classmethod
    def fit(cls, predicted: Numbers, strong: Flags) -> StrongFacts:
        """Fit the classifier to facts whose class is known; training data, never test data."""
        # Loading scikit-learn takes a second that only classification should pay.
        from sklearn.linear_model import LogisticRegression  # noqa: PLC0415

        if strong.all() or not strong.any():
            kind = "strong" if strong.any() else "weak or false"
            raise DataError(
                f"all {len(strong):,} facts to learn from are {kind}: there is nothing to tell apart",
                hint="Choose another τ: ‹tau=...›.",
            )
        model = LogisticRegression(C=INVERSE_PENALTY).fit(_column(predicted), strong)
        return cls(float(model.coef_[0, 0]), float(model.intercept_[0]))

    def predict(self, predicted: Numbers) -> Flags:
        """Return which facts are taken to be strong."""
        return np.asarray(self.slope * np.asarray(predicted, dtype=np.float64) + self.offset > 0.0)


@dataclass(frozen=True, eq=False)
class PrecisionRecall:
    """The precision–recall curve: both at every distinct predicted confidence taken as threshold, rising recall."""

    precision: Floats
    recall: Floats
    threshold: Floats


def classification(found: Flags, strong: Flags) -> Classification:
    """Return the scores of the facts `found` to be strong against those that are."""
    sample = classification_sample(found, strong)
    return Classification(**sample.point(), facts=sample.units)


def classification_sample(found: Flags, strong: Flags) -> Means:
    """Return hits and misses fact by fact, to draw from."""
    return Means([found & strong, found & ~strong, ~found & strong], _combine)


def precision_recall(predicted: Numbers, strong: Flags) -> PrecisionRecall:
    """Return the curve; equal predictions are one threshold."""
    order = np.argsort(-np.asarray(predicted, dtype=np.float64), kind="stable")
    scores, hits = np.asarray(predicted, dtype=np.float64)[order], np.cumsum(strong[order])
    last = np.flatnonzero(np.append(scores[1:] != scores[:-1], True)) if len(scores) else np.zeros(0, dtype=np.int64)
    return PrecisionRecall(hits[last] / (last + 1), hits[last] / max(int(strong.sum()), 1), scores[last])


def _combine(means: Floats) -> Measured:
    hit, false, missed = means[:, 0], means[:, 1], means[:, 2]
    scores = {
        "f1": 2.0 * hit / (2.0 * hit + false + missed),
        "precision": hit / (hit + false),
        "recall": hit / (hit + missed),
    }
    return {"accuracy": 1.0 - false - missed, **{name: np.nan_to_num(score) for name, score in scores.items()}}


def _column(predicted: Numbers) -> Floats:
    return np.asarray(predicted, dtype=np.float64)[:, None]
