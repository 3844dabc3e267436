"""Calibration as a rising line through few points, fitted by centred isotonic regression.

Isotonic regression is a step function: all facts of a step would get the same confidence, and a list of the surest ones
would begin with dozens of ties. So a step counts as one point, at the mean of its predictions, and the line goes from
point to point (Oron and Flournoy, 2017); beyond the outermost points it goes on rising, ever so little.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

RISE = 1e-4
"""How far the line rises beyond its outermost points: enough for an order, too little to be seen."""

FAR = 10.0
"""How far beyond the predictions that it was fitted to the line goes on rising, in spans of these."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """Predictions `x` and what they turned out to mean, `y`; between the points the line is straight."""

    x: Floats
    y: Floats

    @classmethod
    def fit(cls, predicted: Floats, observed: Floats, weight: Floats | None = None) -> Calibration:
        """Fit the rising line that is nearest to the rising step function of least squared error."""
        from sklearn.isotonic import IsotonicRegression  # noqa: PLC0415 — loading it takes a second

        weights = np.ones(len(predicted)) if weight is None else weight
        steps = IsotonicRegression(out_of_bounds="clip").fit(predicted, observed, sample_weight=weights)
        height, step = np.unique(steps.predict(predicted), return_inverse=True)
        total = np.bincount(step, weights)
        centre = np.bincount(step, weights * predicted) / np.maximum(total, np.finfo(float).tiny)
        low, high = float(np.min(predicted)), float(np.max(predicted))
        beyond = FAR * max(high - low, 1.0)
        inside = np.clip(height, RISE, 1.0 - RISE)
        ends = (low - beyond, inside[0] - RISE / 2), (high + beyond, inside[-1] + RISE / 2)
        x, y = (np.array([ends[0][at], *points, ends[1][at]]) for at, points in enumerate((centre, inside)))
        kept = np.append(True, np.diff(x) > 0)
        return cls(x[kept], y[kept])

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Calibration:
        """Make a calibration of what `arrays` returned."""
        return cls(arrays["x"], arrays["y"])

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the points by name."""
        return {"x": self.x, "y": self.y}

    def __call__(self, predicted: Floats) -> Floats:
        """Return what predictions mean."""
        return np.interp(predicted, self.x, self.y)
