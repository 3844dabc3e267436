"""The confidences of one source calibrated: what they turned out to mean where the truth is known, for all the others.

Three ways are tried on folds, and the best by log score is taken, unless the confidences as they are do better:

    Platt      logit(p) = a · logit(c) + b
    beta       logit(p) = a · ln c − b · ln(1 − c) + d          (Kull, Silva Filho and Flach, 2017)
    isotonic   any rising line (evidence's `Calibration`)
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ukge.errors import DataError
from ukge.evidence.fuse import EDGE, logit, newton, sigmoid
from ukge.evidence.regressor import Calibration
from ukge.fusing.labels import FEWEST
from ukge.fusing.scores import Scores
from ukge.fusing.voices import Floats, Ints
from ukge.storage.files import write_atomically

KIND, VERSION = "ukge calibration", 1
HINT = "Give a file that calibrating kept with ‹out=FILE›."
FOLDS = 5
KEPT, PLATT, BETA, ISOTONIC = "kept", "platt", "beta", "isotonic"
METHODS = (KEPT, PLATT, BETA, ISOTONIC)
"""Ways to calibrate, the simplest first; the first leaves confidences as they are."""


@dataclass(frozen=True, eq=False)
class Calibrator:
    """A way to calibrate with what it learnt, for the claims of `source`, or of any where that is None.

    `scores` tells how each way did on labels that it did not see; a calibrator that was loaded has none.
    """

    method: str
    weights: Floats
    line: Calibration | None = None
    source: str | None = None
    scores: Mapping[str, Scores] = field(default_factory=dict)

    @classmethod
    def fit(
        cls, confidence: Floats, label: Floats, *, fact: Ints | None = None, source: str | None = None, seed: int = 0
    ) -> Calibrator:
        """Learn from confidences whose facts have labels from 0 to 1; rows of one `fact` stay in one fold."""
        if len(label) < FEWEST:
            raise DataError(
                f"{len(label)} labelled claims are too few to learn from", hint=f"Give {FEWEST} or more labels."
            )
        if label.min() == label.max():
            raise DataError("all labels are equal, so nothing can be learnt from them", hint="Label false facts too.")
        group = np.unique(np.arange(len(label)) if fact is None else fact, return_inverse=True)[1]
        fold = (np.random.default_rng(seed).permutation(int(group.max()) + 1) % FOLDS)[group]
        scores = {}
        for method in METHODS:
            said = np.empty(len(label))
            for number in np.unique(fold):
                held = fold == number
                said[held] = _fitted(method, confidence[~held], label[~held], source)(confidence[held])
            scores[method] = Scores.of(said, label)
        best = min(METHODS, key=lambda method: scores[method].log)
        if scores[best].is_worse_than(scores[KEPT]):
            best = KEPT
        made = _fitted(best, confidence, label, source)
        return cls(made.method, made.weights, made.line, source, scores)

    def __call__(self, confidence: Floats) -> Floats:
        """Return what confidences mean."""
        if self.method == KEPT:
            return confidence
        if self.line is not None:
            return self.line(confidence)
        return sigmoid(_inputs(self.method, confidence) @ self.weights)

    def save(self, path: str | Path) -> None:
        """Write it as JSON."""
        line = None if self.line is None else {"x": self.line.x.tolist(), "y": self.line.y.tolist()}
        plain = {
            "kind": KIND,
            "version": VERSION,
            "method": self.method,
            "source": self.source,
            "weights": self.weights.tolist(),
            "line": line,
            "scores": {method: scores.to_dict() for method, scores in self.scores.items()},
        }
        write_atomically(Path(path), (json.dumps(plain, ensure_ascii=False) + "\n").encode())

    @classmethod
    def load(cls, path: str | Path) -> Calibrator:
        """Read what `save` wrote."""
        try:
            plain = json.loads(Path(path).read_bytes())
            if plain["kind"] != KIND or plain["version"] != VERSION:
                raise DataError(f"is no calibration of version {VERSION}", source=str(path), hint=HINT)
            return cls._of(plain)
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror}", source=str(path), hint=HINT) from None
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"is no calibration, or damaged ({error})", source=str(path), hint=HINT) from None

    @classmethod
    def _of(cls, plain: Any) -> Calibrator:
        method, weights, line = plain["method"], np.asarray(plain["weights"], np.float64), None
        if method not in METHODS or weights.shape != ({PLATT: 2, BETA: 3}.get(method, 0),):
            raise ValueError("its weights do not fit")
        if method == ISOTONIC:
            x, y = (np.asarray(plain["line"][name], np.float64) for name in ("x", "y"))
            if x.ndim != 1 or x.shape != y.shape or not len(x) or not (np.diff(x) > 0).all() or not _shares(y):
                raise ValueError("its line does not rise")
            line = Calibration(x, y)
        if not np.isfinite(weights).all():
            raise ValueError("a weight is missing")
        return cls(method, weights, line, None if plain["source"] is None else str(plain["source"]))


def _shares(values: Floats) -> bool:
    return bool((np.diff(values) >= 0).all() and values[0] >= 0.0 and values[-1] <= 1.0)


def _inputs(method: str, confidence: Floats) -> Floats:
    kept, one = np.clip(confidence, EDGE, 1.0 - EDGE), np.ones(len(confidence))
    parts = [logit(confidence), one] if method == PLATT else [np.log(kept), -np.log1p(-kept), one]
    return np.stack(parts, axis=1)


def _fitted(method: str, confidence: Floats, label: Floats, source: str | None) -> Calibrator:
    if method == KEPT:
        return Calibrator(KEPT, np.zeros(0), source=source)
    if method == ISOTONIC:
        return Calibrator(ISOTONIC, np.zeros(0), Calibration.fit(confidence, label), source)
    start = np.array([1.0, 0.0]) if method == PLATT else np.array([1.0, 1.0, 0.0])
    return Calibrator(method, newton(_inputs(method, confidence), label, start), source=source)
