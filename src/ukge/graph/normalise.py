"""Weights of any range → confidences in [0, 1], by scales that can be composed.

    scale = Clip(0.1, 3.0) | Log() | MinMax(0.1, 1.0)
    scale = parse_scale("clip:0.1,3 log minmax:0.1,1")      # the same, as text
    confidence = normalise(weights, "conceptnet")            # a named recipe

A scale looks at the whole column it is given: `minmax` and `rank` without given bounds depend on the sample, so apply
them once to all weights, never chunk by chunk.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ukge.errors import ConfigError, DataError, as_written
from ukge.graph.columns import NOWHERE, refuse_rows
from ukge.graph.uncertain import UncertainGraph
from ukge.registry import Registry

Weights = npt.NDArray[np.float64]
_EDGE = 1e-9


class Scale(ABC):
    """A map from weights to weights. `a | b` applies `a`, then `b`."""

    def __call__(self, weights: npt.ArrayLike) -> Weights:
        """Return the scaled weights; weights that are not numbers are an error."""
        values = np.ascontiguousarray(weights, dtype=np.float64)
        _refuse(values, np.isnan(values), "weight is missing or not a number", "Mend or remove these rows.")
        return self.apply(values) if len(values) else values

    @abstractmethod
    def apply(self, weights: Weights) -> Weights:
        """Return the scaled weights; `weights` holds at least one number and no NaN."""

    def parts(self) -> tuple[Scale, ...]:
        """Return the single scales this one consists of, in the order of application."""
        return (self,)

    def __or__(self, other: Scale) -> Scale:
        return Chain((*self.parts(), *other.parts()))


@dataclass(frozen=True)
class Chain(Scale):
    """Scales applied one after another."""

    steps: tuple[Scale, ...]

    def parts(self) -> tuple[Scale, ...]:
        """Return the steps."""
        return self.steps

    def apply(self, weights: Weights) -> Weights:
        """Apply every step in order."""
        for step in self.steps:
            weights = step(weights)
        return weights


@dataclass(frozen=True)
class Clip(Scale):
    """Move weights below `lo` to `lo` and weights above `hi` to `hi`."""

    lo: float
    hi: float

    def __post_init__(self) -> None:
        if not self.lo < self.hi:
            raise ConfigError(f"clip needs lo < hi, not {self.lo:g} and {self.hi:g}")

    def apply(self, weights: Weights) -> Weights:
        """Return the weights bounded to [lo, hi]."""
        return np.clip(weights, self.lo, self.hi)


@dataclass(frozen=True)
class Log(Scale):
    """The natural logarithm."""

    def apply(self, weights: Weights) -> Weights:
        """Return log w; a weight of zero or less is an error."""
        _refuse(
            weights,
            weights <= 0.0,
            "the logarithm needs a weight above 0",
            "Bound the weights first, for example clip:0.1,3 log.",
        )
        return np.log(weights)


@dataclass(frozen=True)
class MinMax(Scale):
    """Map [lo, hi] linearly to [a, b]. Without `lo` and `hi` they are the smallest and the largest weight.

    With given bounds the result does not depend on the sample, and a weight outside them is an error.
    """

    a: float = 0.0
    b: float = 1.0
    lo: float | None = None
    hi: float | None = None

    def __post_init__(self) -> None:
        if not self.a < self.b:
            raise ConfigError(f"minmax needs a < b, not {self.a:g} and {self.b:g}")
        if (self.lo is None) != (self.hi is None):
            raise ConfigError("minmax needs both bounds or none", hint="Write minmax:a,b or minmax:a,b,lo,hi.")
        if self.lo is not None and self.hi is not None and not self.lo < self.hi:
            raise ConfigError(f"minmax needs lo < hi, not {self.lo:g} and {self.hi:g}")

    def apply(self, weights: Weights) -> Weights:
        """Return a + (b − a) (w − lo) / (hi − lo)."""
        _refuse(weights, ~np.isfinite(weights), "weight is infinite", "Bound the weights first, for example clip:0,10.")
        lo = float(weights.min()) if self.lo is None else self.lo
        hi = float(weights.max()) if self.hi is None else self.hi
        if lo == hi:
            example = f"minmax:{self.a:g},{self.b:g},0,{abs(hi) or 1:g}"
            raise DataError(
                f"all {len(weights):,} weights are {lo:g}: min–max cannot tell where they lie in their range",
                hint=f"Give the range the weights can have, for example {example}.",
            )
        share = (weights - lo) / (hi - lo)
        _refuse(
            weights,
            (share < -_EDGE) | (share > 1.0 + _EDGE),
            f"weight is outside the given bounds [{lo:g}, {hi:g}]",
            f"Widen the bounds or bound the weights first with clip:{lo:g},{hi:g}.",
        )
        return np.clip(self.a + (self.b - self.a) * share, self.a, self.b)


@dataclass(frozen=True)
class Rank(Scale):
    """Map each weight to its quantile, then to (a, b): of n weights the k-th smallest becomes (k − ½)/n.

    Equal weights share the mean of their ranks. The order is kept, the distances are not.
    """

    a: float = 0.0
    b: float = 1.0

    def __post_init__(self) -> None:
        if not self.a < self.b:
            raise ConfigError(f"rank needs a < b, not {self.a:g} and {self.b:g}")

    def apply(self, weights: Weights) -> Weights:
        """Return the quantiles mapped to (a, b)."""
        _, group, counts = np.unique(weights, return_inverse=True, return_counts=True)
        below = np.cumsum(counts) - counts
        quantile = (below + 0.5 * counts)[group] / len(weights)
        return np.asarray(self.a + (self.b - self.a) * quantile)


@dataclass(frozen=True)
class Odds(Scale):
    """Take a weight w as odds of w to k: w/(w + k). No weight at all is 0, k is ½, and no weight is certain.

    It looks at each weight alone, so that counts of two samples stay comparable.
    """

    k: float = 1.0

    def __post_init__(self) -> None:
        if not 0.0 < self.k < np.inf:
            raise ConfigError(f"odds needs k > 0, not {self.k:g}")

    def apply(self, weights: Weights) -> Weights:
        """Return w/(w + k); a weight below zero is an error."""
        _refuse(weights, weights < 0.0, "odds need a weight of 0 or more", "Bound the weights first: clip:0,1000 odds.")
        return np.asarray(1.0 - self.k / (weights + self.k))


SCALES: Registry[Callable[..., Scale]] = Registry("scale", "ukge.scales")
for _name, _kind in {"clip": Clip, "log": Log, "minmax": MinMax, "rank": Rank, "quantile": Rank, "odds": Odds}.items():
    SCALES.register(_name)(_kind)

CONCEPTNET: Scale = Clip(0.1, 3.0) | Log() | MinMax(0.1, 1.0, float(np.log(0.1)), float(np.log(3.0)))
"""The paper's recipe for ConceptNet: x bounded to [0.1, 3.0], then log x from [log 0.1, log 3.0] to [0.1, 1.0].

The bounds are those of the clipped interval, not of the sample, so a weight of 1 always becomes 0.709293243."""

NELL: Scale = MinMax(0.1, 1.0)
"""The paper's recipe for NELL: the weights of the graph at hand, from their own range to [0.1, 1.0]."""


COUNTS: Scale = Odds(1.0)
"""For counts and sums of mentions: one is ½, three are ¾, nine are 0.9."""


@SCALES.register("counts")
def _counts() -> Scale:
    return COUNTS


@SCALES.register("conceptnet")
def _conceptnet() -> Scale:
    return CONCEPTNET


@SCALES.register("nell")
def _nell() -> Scale:
    return NELL


def parse_scale(text: str) -> Scale:
    """Read scales written as `name:number,number …`, applied from left to right."""
    steps = [_parse_step(step) for step in text.replace("|", " ").split()]
    if not steps:
        raise ConfigError("no scale given", hint=f"Known: {', '.join(SCALES.names())}; for example clip:0.1,3 log.")
    return as_scale(steps)


def as_scale(scale: Scale | str | Sequence[Scale | str]) -> Scale:
    """Return one scale for a scale, its text, or a sequence of both."""
    if isinstance(scale, Scale):
        return scale
    if isinstance(scale, str):
        return parse_scale(scale)
    steps = [step for part in scale for step in as_scale(part).parts()]
    return steps[0] if len(steps) == 1 else Chain(tuple(steps))


@overload
def normalise(
    data: UncertainGraph, scale: Scale | str | Sequence[Scale | str], *, per_source: bool = False
) -> UncertainGraph: ...
@overload
def normalise(
    data: npt.ArrayLike,
    scale: Scale | str | Sequence[Scale | str],
    *,
    per_source: bool = False,
    source: Sequence[str | None] | pa.Array | None = None,
) -> Weights: ...


def normalise(data: Any, scale: Any, *, per_source: bool = False, source: Any = None) -> Any:
    """Return the graph, or the array of weights, with its confidences scaled.

    With `per_source` the facts of each source are scaled by themselves, so that a source that gives 0…10 and one that
    gives 0…1 meet on common ground; facts without a source count as one more source. An array of weights takes its
    sources from `source`, a graph has its own.
    """
    chosen = as_scale(scale)
    if isinstance(data, UncertainGraph):
        source = data.source
        values = data.confidence
    else:
        values = np.ascontiguousarray(data, dtype=np.float64)
    scaled = _by_source(values, chosen, source) if per_source else chosen(values)
    return data.with_confidence(scaled) if isinstance(data, UncertainGraph) else scaled


def _by_source(values: Weights, scale: Scale, source: Any) -> Weights:
    if source is None:
        raise DataError(
            "the facts do not say where they came from, so they cannot be scaled per source",
            hint="Name the source column when reading, or leave out per_source.",
        )
    names = source if isinstance(source, pa.Array) else pa.array(source, type=pa.large_string())
    if len(names) != len(values):
        raise DataError(f"{len(names):,} sources do not fit {len(values):,} weights")
    encoded = names.cast(pa.large_string()).dictionary_encode(null_encoding="encode")
    group = encoded.indices.to_numpy(zero_copy_only=False)
    scaled = np.empty_like(values)
    for number, name in enumerate(encoded.dictionary.to_pylist()):
        rows = np.flatnonzero(group == number)
        try:
            scaled[rows] = scale(values[rows])
        except DataError as error:
            label = "without a source" if name is None else f"of source {name!r}"
            problems = [replace(problem, line=int(rows[problem.line or 0])) for problem in error.problems]
            what, hint = error.worded(as_written)
            what = f"facts {label}: {what.splitlines()[0]}"
            raise DataError(what, problems=problems, count=error.count, hint=hint) from None
    return scaled


def _parse_step(text: str) -> Scale:
    name, _, numbers = text.partition(":")
    build = SCALES.get(name)
    try:
        arguments = [float(number) for number in numbers.split(",")] if numbers else []
    except ValueError:
        raise ConfigError(
            f"scale {text!r}: {numbers!r} are not numbers", hint="Write for example clip:0.1,3."
        ) from None
    try:
        return build(*arguments)
    except TypeError:
        raise ConfigError(
            f"scale {text!r}: {len(arguments)} numbers do not fit {name}",
            hint="clip:lo,hi; log; minmax:a,b or minmax:a,b,lo,hi; rank or rank:a,b; odds or odds:k; counts; "
            "conceptnet; nell.",
        ) from None


def _refuse(weights: Weights, wrong: npt.NDArray[np.bool_], what: str, hint: str) -> None:
    rows = np.flatnonzero(wrong)
    told = f"{len(rows):,} of {len(weights):,} weights cannot be scaled"
    refuse_rows(told, rows, lambda row: (what, f"{weights[row]:g}"), "confidence", NOWHERE, hint)
