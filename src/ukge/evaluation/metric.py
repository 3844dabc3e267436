"""What a figure means: which way is better, how ties are ranked, how it is printed."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

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
    """A metric, its value, and the interval around it (None where no bootstrap was asked for)."""

    metric: Metric
    value: float
    interval: Interval | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the figure as plain values that JSON can hold; what is not a number becomes None."""
        limits = (math.nan, math.nan) if self.interval is None else (self.interval.low, self.interval.high)
        plain = [None if math.isnan(number) else number for number in (self.value, *limits)]
        return {
            "value": plain[0],
            "low": plain[1],
            "high": plain[2],
            "better": "higher" if self.metric.higher_is_better else "lower",
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
