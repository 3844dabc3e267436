"""Is the difference between two models more than chance? Tests paired by the facts or queries that both answered.

A run stands for itself, or runs that differ in their seed alone stand together: a unit's part is then its mean over the
seeds. The interval of a difference is that of a paired bootstrap. Its p is that of a permutation test: if two models
are as good as each other, who gave which of a unit's two answers is a coin's toss; so answers are swapped at random,
and p is the share of such draws that differ as much. Among many comparisons some differences look large by chance, so p
is also told as corrected by Holm (1979) over all comparisons that are told together.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ukge.errors import ConfigError, known_names
from ukge.evaluation.evaluate import Evaluation, Row
from ukge.evaluation.metric import BLOCK_BYTES, Bootstrap, Interval, Means, Measured, Metric, draws
from ukge.evaluation.tasks import Table

CLEAR = 0.05
"""A corrected p below this is marked in tables."""

SLACK = 1e-12
"""Draws that differ as much as what is seen may differ from it in the last bits."""


@dataclass(frozen=True, eq=False)
class Contestant:
    """A model as a table tells of it: the rows of its seeds, or the one row that it has."""

    name: str
    rows: tuple[Row, ...]

    def values(self, table: str, metric: str) -> list[float]:
        """Return a figure for every seed."""
        return [row.figure(table, metric).value for row in self.rows]

    def mean(self, table: str, metric: str) -> float:
        """Return the mean of a figure over the seeds."""
        return float(np.mean(self.values(table, metric)))

    def deviation(self, table: str, metric: str) -> float:
        """Return the standard deviation of a figure over the seeds, NaN of one."""
        return float(np.std(self.values(table, metric), ddof=1)) if len(self.rows) > 1 else math.nan

    def pooled(self, table: str) -> Iterator[Means]:
        """Yield the samples of a table that can be swapped unit by unit, each the mean over the seeds."""
        for samples in zip(*(row.samples.get(table, ()) for row in self.rows), strict=True):
            means = [each for each in samples if isinstance(each, Means) and each.swappable]
            if means:
                yield Means(list(np.mean([each.columns for each in means], axis=0).T), means[0].combine)


@dataclass(frozen=True, eq=False)
class Contrast:
    """By how much a model differs from another in one figure, the interval of that, and the chance of as much."""

    table: str
    name: str
    against: str
    metric: Metric
    difference: float
    interval: Interval
    p: float
    corrected: float

    @property
    def clear(self) -> bool:
        """Whether it is more than chance, at the usual level, after the correction."""
        return self.corrected < CLEAR

    def to_dict(self) -> dict[str, object]:
        """Return the contrast as plain values that JSON can hold."""
        return {
            "table": self.table,
            "name": self.name,
            "against": self.against,
            "metric": self.metric.name,
            "difference": self.difference,
            "low": self.interval.low,
            "high": self.interval.high,
            "p": self.p,
            "corrected": self.corrected,
        }


def contestants(evaluation: Evaluation, groups: Mapping[str, Sequence[str]]) -> tuple[Contestant, ...]:
    """Return the models of an evaluation; `groups` has the names of the rows that stand together."""
    return tuple(Contestant(name, tuple(evaluation.row(row) for row in rows)) for name, rows in groups.items())


def contrasts(
    evaluation: Evaluation, models: Sequence[Contestant], against: str | None, bootstrap: Bootstrap
) -> tuple[Contrast, ...]:
    """Compare every model with the one called `against`, or the first, in every table that models are judged by."""
    names = [each.name for each in models]
    if against is not None and against not in names:
        raise ConfigError(f"no model is called '{against}'", hint=known_names(against, names))
    reference = models[0] if against is None else models[names.index(against)]
    found = [
        Contrast(table.name, model.name, reference.name, metric, *tested[metric.name], math.nan)
        for table in evaluation.tables
        if table.judged_by
        for model in models
        if model is not reference
        for one, other in zip(model.pooled(table.name), reference.pooled(table.name), strict=True)
        for tested in [_tested(one, other, bootstrap)]
        for metric in _shown(evaluation, table, tested)
    ]
    corrected = holm([each.p for each in found])
    return tuple(replace(each, corrected=value) for each, value in zip(found, corrected, strict=True))


def holm(chances: Sequence[float]) -> list[float]:
    """Return p values corrected for their number: the k-th smallest of m, from 0, times m − k, never falling."""
    order = np.argsort(chances, kind="stable")
    factors = np.arange(len(chances), 0, -1)
    corrected = np.empty(len(chances))
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(np.asarray(chances)[order] * factors))
    return [float(each) for each in corrected]


class _Tested(NamedTuple):
    difference: float
    interval: Interval
    p: float


def _shown(evaluation: Evaluation, table: Table, known: Container[str]) -> Iterator[Metric]:
    """Yield the metrics that a table shows, of those that are known."""
    for figure in evaluation.rows[0].figures[table.name]:
        if figure.metric.name in known and (not table.columns or figure.metric.name in table.columns):
            yield figure.metric


def _tested(one: Means, other: Means, bootstrap: Bootstrap) -> dict[str, _Tested]:
    """Return the difference of each metric, its interval, and the chance of one as large."""
    if one.units == 0:
        return {}
    mine, theirs = one.point(), other.point()
    drawn = [_less(one.measure(weights), other.measure(weights)) for weights in draws(one.units, bootstrap)]
    swapped = list(_swapped(one, other, bootstrap))
    tail = 100.0 * (1.0 - bootstrap.level) / 2.0
    found = {}
    for name in mine:
        seen = mine[name] - theirs[name]
        low, high = np.nanpercentile(np.concatenate([each[name] for each in drawn]), [tail, 100.0 - tail])
        chance = np.concatenate([each[name] for each in swapped])
        extreme = np.count_nonzero(np.abs(chance) >= abs(seen) - SLACK)
        found[name] = _Tested(seen, Interval(float(low), float(high)), (1 + extreme) / (1 + len(chance)))
    return found


def _less(one: Measured, other: Measured) -> Measured:
    return {name: one[name] - other[name] for name in one}


def _swapped(one: Means, other: Means, bootstrap: Bootstrap) -> Iterator[Measured]:
    """Yield differences of draws in which each unit's two answers have changed places or not, by a coin's toss."""
    rng = np.random.default_rng([bootstrap.seed, 1])
    step = max(1, BLOCK_BYTES // (8 * one.units))
    mine, theirs = one.columns.sum(axis=0), other.columns.sum(axis=0)
    for start in range(0, bootstrap.replicates, step):
        rows = min(step, bootstrap.replicates - start)
        tossed = rng.integers(0, 2, (rows, one.units), dtype=np.uint8).astype(np.float64)
        moved = tossed @ (other.columns - one.columns)
        with np.errstate(divide="ignore", invalid="ignore"):
            yield _less(one.combine((mine + moved) / one.units), one.combine((theirs - moved) / one.units))
