"""What needs no model at all: constants, relation means and looking the answer up in train."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ukge.graph.dataset import Dataset
from ukge.graph.index import FactIndex
from ukge.graph.queries import AnyIds, Floats
from ukge.graph.uncertain import UncertainGraph

CONSTANT = "constant"
"""How the names of the constants begin."""

WITH_NEGATIVES = f"{CONSTANT}, with negatives"
"""The constant for facts and negative links together: the mean of both."""


@dataclass(frozen=True, slots=True)
class Errors:
    """Mean squared and mean absolute error of predicted confidences."""

    mse: float
    mae: float


@dataclass(frozen=True, slots=True)
class Baseline:
    """A trivial prediction, the parts it was fitted on, and its errors.

    `positives` are its errors on the test facts, `with_negatives` those on the test facts and the negative links
    together (None where the data set has no negative links).
    """

    name: str
    fitted_on: str
    positives: Errors
    with_negatives: Errors | None


def trivial_baselines(dataset: Dataset, known: FactIndex) -> tuple[Baseline, ...]:
    """Measure the trivial baselines on the test facts; `known` are the facts of train."""
    train, test = dataset.train, dataset.test
    if len(train) == 0 or len(test) == 0:
        return ()
    asked = test if dataset.negatives is None else dataset.test_with_negatives()
    before = np.concatenate([train.confidence, dataset.val.confidence])
    relation_mean = relation_means(train)
    twin = twin_confidence(asked.head, asked.relation, asked.tail, known)
    predictions: list[tuple[str, str, Floats]] = [
        ("constant, mean", "train", np.full(len(asked), train.confidence.mean())),
        ("constant, median", "train", np.full(len(asked), np.median(train.confidence))),
        ("constant, mean", "train+val", np.full(len(asked), before.mean())),
        ("constant, median", "train+val", np.full(len(asked), np.median(before))),
        ("relation mean", "train", relation_mean[asked.relation]),
        ("relation median", "train", relation_medians(train)[asked.relation]),
        ("twin, else relation mean", "train", np.where(np.isnan(twin), relation_mean[asked.relation], twin)),
        ("twin, else 0", "train", np.nan_to_num(twin)),
    ]
    if dataset.negatives is not None:
        together = train.confidence.mean() * len(test) / len(asked)
        predictions.insert(4, (WITH_NEGATIVES, "train", np.full(len(asked), together)))
    return tuple(_measured(name, on, predicted, asked.confidence, dataset) for name, on, predicted in predictions)


def _measured(name: str, fitted_on: str, predicted: Floats, truth: Floats, dataset: Dataset) -> Baseline:
    n = len(dataset.test)
    together = None if dataset.negatives is None else _errors(predicted, truth)
    return Baseline(name, fitted_on, _errors(predicted[:n], truth[:n]), together)


def _errors(predicted: Floats, truth: Floats) -> Errors:
    off = predicted - truth
    return Errors(float((off**2).mean()), float(np.abs(off).mean()))


def twin_confidence(head: AnyIds, relation: AnyIds, tail: AnyIds, known: FactIndex) -> Floats:
    """Return the confidence train gives each triple itself, else its inverse, else NaN."""
    exact = known.stored(head, relation, tail)
    return np.where(np.isnan(exact), known.stored(tail, relation, head), exact)


def relation_means(train: UncertainGraph) -> Floats:
    """Return the mean confidence of each relation; one that train does not have gets the mean of all facts."""
    n = train.n_relations
    count = np.bincount(train.relation, minlength=n)
    total = np.bincount(train.relation, weights=train.confidence, minlength=n)
    return np.where(count > 0, total / np.maximum(count, 1), train.confidence.mean())


def relation_medians(train: UncertainGraph) -> Floats:
    """Return the median confidence of each relation; one that train does not have gets the median of all facts."""
    n = train.n_relations
    ordered = train.confidence[np.lexsort((train.confidence, train.relation))]
    count: npt.NDArray[np.int64] = np.bincount(train.relation, minlength=n)
    start = np.cumsum(count) - count
    seen = count > 0
    medians = np.full(n, np.median(train.confidence))
    low, high = start[seen] + (count[seen] - 1) // 2, start[seen] + count[seen] // 2
    medians[seen] = (ordered[low] + ordered[high]) / 2
    return medians
