"""Bootstrap confidence intervals: the units of a test (facts or queries) drawn again with replacement, many at a time.

A replicate is a row of weights that says how often each unit was drawn, so a metric that is made of means is one matrix
product for a whole block of replicates. The same seed draws the same units for every predictor: what two predictors
differ by is not blurred by having been judged on different draws.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ukge.errors import ConfigError
from ukge.evaluation.metric import Interval
from ukge.graph.queries import Floats

Measured = dict[str, Floats]
BLOCK_BYTES = 16 << 20
KEPT_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """How intervals are made; with 0 replicates there are none."""

    replicates: int = 1000
    level: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if self.replicates < 0 or not 0.0 < self.level < 1.0:
            raise ConfigError(
                f"{self.replicates} replicates at level {self.level:g} make no interval",
                hint="Take 0 replicates or more (1,000 are usual), and a level between 0 and 1.",
            )


class Sample(ABC):
    """The units of one test, as a metric sees them."""

    @property
    @abstractmethod
    def units(self) -> int:
        """How many units there are to draw from."""

    @abstractmethod
    def measure(self, weights: Floats) -> Measured:
        """Return the metrics by name for each row of `weights` (replicates × units)."""

    def point(self) -> dict[str, float]:
        """Return the metrics of the units as they are."""
        return {name: float(values[0]) for name, values in self.measure(np.ones((1, self.units))).items()}

    def intervals(self, bootstrap: Bootstrap) -> dict[str, Interval]:
        """Return the percentile interval of each metric; none without replicates or without units."""
        if bootstrap.replicates == 0 or self.units == 0:
            return {}
        parts = [self.measure(weights) for weights in _draws(self.units, bootstrap)]
        tail = 100.0 * (1.0 - bootstrap.level) / 2.0
        limits = {}
        for name in parts[0]:
            values = np.concatenate([part[name] for part in parts])
            known = values[~np.isnan(values)]
            low, high = np.percentile(known, [tail, 100.0 - tail]) if len(known) else (np.nan, np.nan)
            limits[name] = Interval(float(low), float(high))
        return limits


class Means(Sample):
    """Metrics that follow from means over the units: `combine` turns (replicates × columns) means into metrics."""

    def __init__(self, columns: Sequence[npt.ArrayLike], combine: Callable[[Floats], Measured]) -> None:
        self.columns = np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])
        self.combine = combine

    @property
    def units(self) -> int:
        """How many units there are to draw from."""
        return len(self.columns)

    def measure(self, weights: Floats) -> Measured:
        """Return the metrics by name for each row of weights; a ratio without a denominator is NaN."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.combine((weights @ self.columns) / weights.sum(axis=1, keepdims=True))


def _draws(units: int, bootstrap: Bootstrap) -> Iterator[Floats]:
    """Yield blocks of weights. They are drawn once and kept where that is cheap, since many metrics need the same."""
    kept = _kept(units, bootstrap) if units * bootstrap.replicates <= KEPT_BYTES else _counts(units, bootstrap)
    for block in kept:
        yield block.astype(np.float64)


@lru_cache(maxsize=4)
def _kept(units: int, bootstrap: Bootstrap) -> tuple[npt.NDArray[np.unsignedinteger], ...]:
    return tuple(_counts(units, bootstrap))


def _counts(units: int, bootstrap: Bootstrap) -> Iterator[npt.NDArray[np.unsignedinteger]]:
    rng = np.random.default_rng(bootstrap.seed)
    step = max(1, BLOCK_BYTES // (8 * units))
    for start in range(0, bootstrap.replicates, step):
        rows = min(step, bootstrap.replicates - start)
        drawn = np.stack([np.bincount(rng.integers(0, units, units), minlength=units) for _ in range(rows)])
        # A unit is drawn about once; that one is drawn 256 times is as good as impossible, but would not be noticed.
        yield drawn.astype(np.uint8 if drawn.max() < 256 else np.uint32)
