"""Links φ: from the plausibility g of a fact to its confidence f = φ(w·g + b), with w and b learnt (eq. 2)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ukge.models.arrays import Array, library
from ukge.registry import Registry


class Link(ABC):
    """A monotonic map of w·g + b. `forward` is what the loss sees, `predict` what a caller is told.

    For w > 0 facts stand in the same order by plausibility as by confidence, for w < 0 in the opposite one. The sign
    of w is learnt, so whoever ranks by plausibility multiplies it by `ranking_sign` first.
    """

    bounded: ClassVar[bool] = True
    """Whether predictions lie in [0, 1]."""

    @abstractmethod
    def forward(self, plausibility: Array, weight: Array, bias: Array) -> Array:
        """Return f(l) as the loss takes it."""

    def predict(self, plausibility: Array, weight: Array, bias: Array) -> Array:
        """Return f(l) as a prediction."""
        return self.forward(plausibility, weight, bias)

    def ranking_sign(self, weight: float) -> float:
        """Return what to multiply plausibilities by so that a higher one means a higher confidence."""
        return -1.0 if weight < 0 else 1.0


@dataclass(frozen=True, slots=True)
class Logistic(Link):
    """φ = 1 / (1 + exp(−(w·g + b))) (eq. 3)."""

    def forward(self, plausibility: Array, weight: Array, bias: Array) -> Array:
        """Return 1 / (1 + exp(−(w·g + b)))."""
        return _sigmoid(weight * plausibility + bias)


@dataclass(frozen=True, slots=True)
class Rectifier(Link):
    """φ = min(max(w·g + b, 0), 1) (eq. 4)."""

    def forward(self, plausibility: Array, weight: Array, bias: Array) -> Array:
        """Return w·g + b, not clamped: a clamp would kill the gradient of every fact outside (0, 1)."""
        moved: Array = weight * plausibility + bias
        return moved

    def predict(self, plausibility: Array, weight: Array, bias: Array) -> Array:
        """Return w·g + b clamped to [0, 1], as eq. 4 has it."""
        clamped: Array = library(plausibility).clip(self.forward(plausibility, weight, bias), 0.0, 1.0)
        return clamped


@dataclass(frozen=True, slots=True)
class Identity(Link):
    """φ = g, without w and b and without bounds: for scores that rank but are no confidence."""

    bounded = False

    def forward(self, plausibility: Array, weight: Array, bias: Array) -> Array:  # noqa: ARG002
        """Return g."""
        return plausibility

    def ranking_sign(self, weight: float) -> float:  # noqa: ARG002
        """Return 1: w takes no part."""
        return 1.0


def _sigmoid(x: Array) -> Array:
    """Return the logistic function; NumPy has none, and exp(−x) overflows where x is far below 0."""
    if not isinstance(x, (np.ndarray, np.generic)):
        return x.sigmoid()
    small = np.exp(-abs(x))
    found: Array = np.where(x < 0, small, np.ones_like(x)) / (1.0 + small)
    return found


links: Registry[Link] = Registry("link", "ukge.links", more="ukge.models.published")
links.register("logistic")(Logistic())
links.register("rectifier")(Rectifier())
links.register("identity")(Identity())
