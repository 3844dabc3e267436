"""How evidence does beside each kind of negative links: a head may be good on average and fail on one of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from ukge.errors import DataError
from ukge.evidence.settings import EvidenceSettings
from ukge.evidence.trees import Floats
from ukge.graph.dataset import Dataset
from ukge.graph.negatives import KINDS, MIXTURE, negative_links
from ukge.graph.uncertain import UncertainGraph


@dataclass(frozen=True, slots=True)
class KindErrors:
    """Errors on validation facts and on negative links of one kind, in equal parts, none of which the trees saw."""

    mse: float
    mae: float
    ece: float
    """calibration error over bins of equal mass"""
    links: int
    """how many links of the kind there were"""
    told: float | None = None
    """MSE where it is said that the false links are of this kind; None if trees have not learnt from any"""


def errors_by_kind(facts: Floats, observed: Floats, links: Mapping[str, Floats]) -> dict[str, KindErrors]:
    """Return the errors of predicted confidences: of facts, whose own are known, beside those of links by kind.

    However many links there are of a kind, together they weigh as much as the facts.
    """
    return {kind: _errors(facts, observed, predicted) for kind, predicted in links.items()}


def _errors(facts: Floats, observed: Floats, links: Floats) -> KindErrors:
    from ukge.evaluation.confidence import calibration_sample, error_sample  # noqa: PLC0415 — answers compile nothing

    predicted, true = np.concatenate([facts, links]), np.concatenate([observed, np.zeros(len(links))])
    weight = np.concatenate([np.ones(len(facts)), np.full(len(links), len(facts) / len(links))])[None]
    found = error_sample(predicted, true).measure(weight) | calibration_sample(predicted, true).measure(weight)
    return KindErrors(**{name: float(values[0]) for name, values in found.items()}, links=len(links))


def kinds_left_out(
    dataset: Dataset, settings: EvidenceSettings, predict: Callable[[UncertainGraph], Floats]
) -> dict[str, Floats]:
    """Return what is predicted of links of the kinds that the trees did not learn from, as far as there are any."""
    found = {}
    for number, kind in enumerate(KINDS.names()):
        if kind == MIXTURE or settings.negatives.get(kind):
            continue
        try:
            links = negative_links(dataset, like=dataset.val, kind=kind, seed=settings.seed + 1000 * number + 1)
        except DataError:
            continue
        found[kind] = predict(links)
    return found
