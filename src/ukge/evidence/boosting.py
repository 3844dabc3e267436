"""Boosted trees, grown the same way wherever evidence is weighed."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ukge.evidence.settings import EvidenceSettings
from ukge.evidence.trees import Floats, Matrix, Trees

FEWEST_IN_LEAF = 20

# Below so many rows a second thread gains nothing; where another process wants the cores it makes growing several
# times slower, because threads wait for each other at every node.
FEWEST_FOR_THREADS = 8192

Loss = Literal["log_loss", "squared_error", "absolute_error"]


def grow(
    loss: Loss,
    columns: Matrix,
    target: npt.ArrayLike,
    settings: EvidenceSettings,
    *,
    weight: Floats | None = None,
    rising: npt.NDArray[np.int8] | None = None,
) -> Trees:
    """Return trees grown by scikit-learn's histogram boosting with the settings of evidence; column 0 is a category.

    With the loss `log_loss` the target is a class, 0 or 1, and the trees give its log-odds.
    """
    from sklearn import ensemble  # noqa: PLC0415 — loading it takes a second

    kind = ensemble.HistGradientBoostingClassifier if loss == "log_loss" else ensemble.HistGradientBoostingRegressor
    model: Any = kind(
        loss=loss,
        max_iter=settings.iterations,
        learning_rate=settings.learning_rate,
        max_leaf_nodes=settings.leaves,
        min_samples_leaf=FEWEST_IN_LEAF,
        l2_regularization=1.0,
        categorical_features=[0],
        monotonic_cst=rising,
        early_stopping=False,
        random_state=settings.seed,
    )
    with _threads_for(len(columns)):
        return Trees.of(model.fit(_known_columns(columns), target, weight))


def _threads_for(rows: int) -> AbstractContextManager[object]:
    if rows >= FEWEST_FOR_THREADS:
        return nullcontext()
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 — it finds the libraries loaded by now

    limits: AbstractContextManager[object] = threadpool_limits(1, user_api="openmp")
    return limits


def _known_columns(columns: Matrix) -> Matrix:
    """Return columns that scikit-learn can bin: one that is never known is set to 0, so that no tree asks for it."""
    never = np.isnan(columns).all(axis=0)
    if not never.any():
        return columns
    filled = columns.copy()
    filled[:, never] = 0.0
    return filled
