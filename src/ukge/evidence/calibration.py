"""Calibration as a rising line through few points, fitted by isotonic regression."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Calibration:
    """Predictions `x` and what they turned out to mean, `y`; between the points the line is straight."""

    x: Floats
    y: Floats

    @classmethod
    def fit(cls, predicted: Floats, observed: Floats, weight: Floats | None = None) -> Calibration:
        """Fit the rising step function that has the least squared error."""
        from sklearn.isotonic import IsotonicRegression  # noqa: PLC0415 — loading it takes a second

        fitted = IsotonicRegression(out_of_bounds="clip").fit(predicted, observed, sample_weight=weight)
        return cls(np.asarray(fitted.X_thresholds_, np.float64), np.asarray(fitted.y_thresholds_, np.float64))

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
