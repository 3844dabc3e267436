"""How far predicted confidences are from the observed ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ukge.evaluation.bootstrap import Means
from ukge.evaluation.metric import metric
from ukge.graph.queries import Numbers


@dataclass(frozen=True, slots=True)
class ConfidenceErrors:
    """Mean squared and mean absolute error of confidence prediction; lower is better."""

    mse: float = metric("MSE", "lower", digits=5)
    mae: float = metric("MAE", "lower", digits=5)
    facts: int = 0


def confidence_errors(predicted: Numbers, observed: Numbers) -> ConfidenceErrors:
    """Return MSE and MAE of `predicted` against `observed`."""
    sample = error_sample(predicted, observed)
    return ConfidenceErrors(**sample.point(), facts=sample.units)


def error_sample(predicted: Numbers, observed: Numbers) -> Means:
    """Return the errors fact by fact, to draw from."""
    gap = np.asarray(predicted, dtype=np.float64) - np.asarray(observed, dtype=np.float64)
    return Means([gap**2, np.abs(gap)], lambda means: {"mse": means[:, 0], "mae": means[:, 1]})
