"""What a figure means, and how sure it is: direction, ties, digits, and bootstrap intervals.

For an interval, the units of a test (facts or queries) are drawn again with replacement, many times. A replicate is a
row of weights that says how often each unit was drawn, so a metric that is made of means is one matrix product for a
whole block of replicates. The same seed draws the same units for every predictor: what two predictors differ by is not
blurred by having been judged on different draws.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ukge.errors import ConfigError
from ukge.graph.queries import Floats

MEAN_RANK = "ties share the mean of their ranks"


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. `ties` says what happens to equal predictions where that matters."""

    name: str
    title: str
    higher_is_better: bool
    ties: str = ""
    digits: int = 4

    def text(self, value: float) -> str:
        """Return a value as tables print it."""
        return "–" if math.isnan(value) else f"{value:,.{self.digits}f}"

    def best(self, values: list[float]) -> float:
        """Return the best of some values, NaN if there is none."""
        known = [value for value in values if not math.isnan(value)]
        if not known:
            return math.nan
        return max(known) if self.higher_is_better else min(known)


@dataclass(frozen=True, slots=True)
class Interval:
    """A bootstrap confidence interval."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Figure:
    """A metric, its value, and the interval around it (None where no bootstrap was asked for).

    A `note` says what the value is of, where that is not the same for every predictor.
    """

    metric: Metric
    value: float
    interval: Interval | None = None
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the figure as plain values that JSON can hold; what is not a number becomes None."""
        limits = (math.nan, math.nan) if self.interval is None else (self.interval.low, self.interval.high)
        plain = [None if math.isnan(number) else number for number in (self.value, *limits)]
        return {
            "value": plain[0],
            "low": plain[1],
            "high": plain[2],
            "better": "higher" if self.metric.higher_is_better else "lower",
            **({"note": self.note} if self.note else {}),
        }


def metric(title: str, better: Literal["higher", "lower"], *, ties: str = "", digits: int = 4) -> Any:
    """Declare a field of a result as a metric."""
    return field(metadata={"title": title, "higher": better == "higher", "ties": ties, "digits": digits})


def metrics_of(kind: type) -> tuple[Metric, ...]:
    """Return the metrics that a class of results declares, in order."""
    return tuple(
        Metric(
            each.name, each.metadata["title"], each.metadata["higher"], each.metadata["ties"], each.metadata["digits"]
        )
        for each in fields(kind)
        if "title" in each.metadata
    )


def figures_of(kind: type, values: Mapping[str, float], intervals: Mapping[str, Interval]) -> tuple[Figure, ...]:
    """Return the metrics that a class of results declares, with their values and intervals by name."""
    return tuple(Figure(each, values[each.name], intervals.get(each.name)) for each in metrics_of(kind))


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
        parts = [self.measure(weights) for weights in draws(self.units, bootstrap)]
        tail = 100.0 * (1.0 - bootstrap.level) / 2.0
        limits = {}
        for name in parts[0]:
            values = np.concatenate([part[name] for part in parts])
            known = values[~np.isnan(values)]
            low, high = np.percentile(known, [tail, 100.0 - tail]) if len(known) else (np.nan, np.nan)
            limits[name] = Interval(float(low), float(high))
        return limits


class Means(Sample):
    """Metrics that follow from means over the units: `combine` turns (replicates × columns) means into metrics.

    `swappable` says whether a unit has the same columns for every predictor: then answers can be swapped unit by unit.
    """

    def __init__(
        self, columns: Sequence[npt.ArrayLike], combine: Callable[[Floats], Measured], *, swappable: bool = True
    ) -> None:
        self.columns = np.column_stack([np.asarray(column, dtype=np.float64) for column in columns])
        self.combine = combine
        self.swappable = swappable

    @property
    def units(self) -> int:
        """How many units there are to draw from."""
        return len(self.columns)

    def measure(self, weights: Floats) -> Measured:
        """Return the metrics by name for each row of weights; a ratio without a denominator is NaN."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.combine((weights @ self.columns) / weights.sum(axis=1, keepdims=True))


def draws(units: int, bootstrap: Bootstrap) -> Iterator[Floats]:
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
