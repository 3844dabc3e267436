"""How far predicted confidences are from the observed ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class ConfidenceErrors:
    """Mean squared and mean absolute error of confidence prediction; lower is better."""

    mse: float
    mae: float
    facts: int


def confidence_errors(
    predicted: npt.NDArray[np.floating[Any]], observed: npt.NDArray[np.floating[Any]]
) -> ConfidenceErrors:
    """Return MSE and MAE of `predicted` against `observed`."""
    gap = np.asarray(predicted, dtype=np.float64) - np.asarray(observed, dtype=np.float64)
    return ConfidenceErrors(mse=float(np.mean(gap**2)), mae=float(np.mean(np.abs(gap))), facts=len(gap))
