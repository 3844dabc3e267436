"""How good confidences are where the truth is known: Brier score, log score, calibration error and curve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ukge.evaluation.confidence import Reliability, calibration, error_sample, reliability
from ukge.fusing.voices import Floats

BINS, FEWEST_IN_BIN = 10, 20
"""Bins of the curve at most, and labels in each at least."""

LEAST = 1e-3
"""A confidence costs at most what this far from the truth does, by the log score."""


@dataclass(frozen=True, eq=False)
class Scores:
    """Mean squared error, mean −ln of the chance of what turned out, and calibration error; lower is better."""

    brier: float
    log: float
    calibration: float
    curve: Reliability
    labels: int

    @classmethod
    def of(cls, confidence: Floats, label: Floats) -> Scores:
        """Judge confidences by labels."""
        bins = int(np.clip(len(label) // FEWEST_IN_BIN, 1, BINS))
        error = calibration(confidence, label, bins).ece if len(label) > 1 else float(abs(confidence - label).sum())
        brier = error_sample(confidence, label).point()["mse"]
        return cls(
            brier, float(log_losses(confidence, label).mean()), error, reliability(confidence, label, bins), len(label)
        )

    def is_worse_than(self, other: Scores) -> bool:
        """Return whether it loses by the Brier or by the log score."""
        return self.brier > other.brier or self.log > other.log

    def to_dict(self) -> dict[str, object]:
        """Return the scores as plain values that JSON can hold."""
        curve = [
            {"said": float(said), "held": float(held), "facts": int(facts)}
            for said, held, facts in zip(self.curve.predicted, self.curve.observed, self.curve.facts, strict=True)
        ]
        return {
            "brier": self.brier,
            "log_score": self.log,
            "calibration_error": self.calibration,
            "labels": self.labels,
            "curve": curve,
        }


def log_losses(confidence: Floats, label: Floats) -> Floats:
    """Return of each fact −ln of the chance that was given to what turned out."""
    kept = np.clip(confidence, LEAST, 1.0 - LEAST)
    return -np.asarray(label * np.log(kept) + (1.0 - label) * np.log1p(-kept))
