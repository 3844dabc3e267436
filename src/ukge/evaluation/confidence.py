"""Predicted confidences against observed ones: how far they are, whether they mean what they say, and their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

from ukge.compiled import kernel
from ukge.evaluation.metric import MEAN_RANK, Means, Measured, Sample, metric
from ukge.graph.queries import Floats, Numbers

BINS = 15


@dataclass(frozen=True, slots=True)
class ConfidenceErrors:
    """Mean squared and mean absolute error of confidence prediction; lower is better."""

    mse: float = metric("MSE", "lower", digits=5)
    mae: float = metric("MAE", "lower", digits=5)
    facts: int = 0


def confidence_errors(predicted: Numbers, observed: Numbers) -> ConfidenceErrors:
    """Return MSE and MAE of `predicted` against `observed`."""
    sample = error_sample(predicted, observed)
    return ConfidenceErrors(**sample.point(), facts=sample.units)


def error_sample(predicted: Numbers, observed: Numbers) -> Means:
    """Return the errors fact by fact, to draw from."""
    gap = np.asarray(predicted, dtype=np.float64) - np.asarray(observed, dtype=np.float64)
    return Means([gap**2, np.abs(gap)], lambda means: {"mse": means[:, 0], "mae": means[:, 1]})


@dataclass(frozen=True, slots=True)
class Calibration:
    """Expected calibration error over bins of equal mass, and Spearman's rank correlation."""

    ece: float = metric("ECE", "lower", ties="equal predictions stay in one bin")
    spearman: float = metric("Spearman", "higher", ties=MEAN_RANK)
    facts: int = 0


@dataclass(frozen=True, eq=False)
class Reliability:
    """The reliability curve: mean predicted and mean observed confidence of each bin, and how many facts it holds."""

    predicted: Floats
    observed: Floats
    facts: npt.NDArray[np.int64]


def calibration(predicted: Numbers, observed: Numbers, bins: int = BINS) -> Calibration:
    """Return the calibration error and the rank correlation of `predicted` against `observed`."""
    ece = calibration_sample(predicted, observed, bins).point()["ece"]
    return Calibration(ece, RankCorrelation(predicted, observed).point()["spearman"], len(predicted))


def equal_mass_bins(predicted: Numbers, bins: int = BINS) -> npt.NDArray[np.int64]:
    """Return the bin of each prediction, from 0; equal predictions share a bin, so some bins may stay empty.

    A bin holds about as many facts as any other. Where one value is predicted for many facts, as a clamped link does,
    its bin is larger and its neighbours are smaller.
    """
    values = np.asarray(predicted, dtype=np.float64)
    places = np.searchsorted(np.sort(values), values, side="left")
    numbers: npt.NDArray[np.int64] = places * bins // max(len(values), 1)
    return numbers


def reliability(predicted: Numbers, observed: Numbers, bins: int = BINS) -> Reliability:
    """Return the reliability curve over bins of equal mass; empty bins are left out."""
    place = equal_mass_bins(predicted, bins)
    count = np.bincount(place, minlength=bins)
    used = count > 0
    sums = [np.bincount(place, weights=values, minlength=bins)[used] for values in (predicted, observed)]
    return Reliability(sums[0] / count[used], sums[1] / count[used], count[used])


def calibration_sample(predicted: Numbers, observed: Numbers, bins: int = BINS) -> Means:
    """Return the gaps bin by bin, to draw from.

    The error is Σ_b (n_b / n) |mean predicted − mean observed in b| = Σ_b |mean over all facts of the gaps in b|. The
    bins are those of the facts as they are, in every draw.
    """
    place = equal_mass_bins(predicted, bins)
    gap = np.asarray(predicted, dtype=np.float64) - np.asarray(observed, dtype=np.float64)
    columns = [np.where(place == number, gap, 0.0) for number in range(bins)]
    return Means(columns, lambda means: {"ece": np.abs(means).sum(axis=1)}, swappable=False)


class RankCorrelation(Sample):
    """Spearman's correlation. Every draw is ranked anew, in one pass over an order that is sorted once."""

    def __init__(self, left: Numbers, right: Numbers) -> None:
        self._orders = [_order(values) for values in (left, right)]

    @property
    def units(self) -> int:
        """How many facts there are to draw from."""
        return len(self._orders[0][0])

    def measure(self, weights: Floats) -> Measured:
        """Return the correlation for each row of weights; NaN where either side is constant."""
        out = np.empty(len(weights))
        (left, left_first), (right, right_first) = self._orders
        _spearman(np.ascontiguousarray(weights), left, left_first, right, right_first, out)
        return {"spearman": out}


def _order(values: Numbers) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Return the places in ascending order of value, and which of them begin a new value."""
    numbers = np.asarray(values, dtype=np.float64)
    order = np.argsort(numbers, kind="stable")
    first = np.ones(len(numbers), dtype=np.bool_)
    first[1:] = numbers[order][1:] != numbers[order][:-1]
    return order, first


@kernel(nogil=True)
def _ranks(weights: Any, order: Any, first: Any, out: Any) -> None:
    """Write the rank of each unit in a sample that holds it `weights` times; ties share the mean."""
    n = len(order)
    before, start = 0.0, 0
    while start < n:
        stop, group = start, 0.0
        while stop < n and (stop == start or not first[stop]):
            group += weights[order[stop]]
            stop += 1
        for place in range(start, stop):
            out[order[place]] = before + (group + 1.0) / 2.0
        before += group
        start = stop


@kernel(parallel=True, nogil=True)
def _spearman(weights: Any, left: Any, left_first: Any, right: Any, right_first: Any, out: Any) -> None:
    for row in nb.prange(len(weights)):
        mine = weights[row]
        a, b = np.empty(len(mine)), np.empty(len(mine))
        _ranks(mine, left, left_first, a)
        _ranks(mine, right, right_first, b)
        total = mine.sum()
        middle = (total + 1.0) / 2.0
        ab, aa, bb = 0.0, 0.0, 0.0
        for unit in range(len(mine)):
            x, y = a[unit] - middle, b[unit] - middle
            ab += mine[unit] * x * y
            aa += mine[unit] * x * x
            bb += mine[unit] * y * y
        out[row] = ab / np.sqrt(aa * bb) if aa > 0.0 and bb > 0.0 else np.nan
