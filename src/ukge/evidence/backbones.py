"""Trained models as evidence: how sure each is of a fact, and how alike its entities are to those of known facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numba as nb
import numpy as np
import numpy.typing as npt

from ukge.engines.base import Parameters
from ukge.engines.compiled import kernel
from ukge.errors import ConfigError, DataError
from ukge.evidence.index import Asked, FactIndex
from ukge.graph.dataset import Dataset
from ukge.graph.vocabulary import Ids
from ukge.links import links
from ukge.model import Model
from ukge.scoring import scorers

if TYPE_CHECKING:
    from ukge.estimator import UKGE

AGREEMENT = (
    "nearest_tail",
    "nearest_tail_confidence",
    "similar_tails_confidence",
    "nearest_head",
    "nearest_head_confidence",
    "similar_heads_confidence",
)

MOST = 16
"""Known answers of a query that are compared; of more, so many at equal distances."""


@dataclass(frozen=True, eq=False)
class Backbone:
    """One trained model: its name among the evidence, and its weights with what makes confidences of them."""

    name: str
    scorer: str
    link: str
    parameters: Parameters
    learns_confidence: bool = True
    """False for a model that learnt an order: what φ makes of its plausibilities is no confidence."""

    @classmethod
    def of(cls, model: UKGE, name: str) -> Backbone:
        """Take the weights of a trained estimator."""
        if model.trained is None:
            raise ConfigError(f"{name} is not trained", hint="Call fit first, or load a run.")
        settings, objective = model.trained.config.model, model.trained.config.objective
        return cls(name, settings.scorer, settings.link, model.trained.parameters, objective.learns_confidence)

    @cached_property
    def model(self) -> Model:
        """The model, by ids."""
        return Model(self.parameters, scorers.get(self.scorer), links.get(self.link))

    @cached_property
    def directions(self) -> npt.NDArray[np.float32]:
        """The entities' vectors, each of length 1 (a vector of zeros stays one)."""
        entity = self.parameters.entity
        length = np.sqrt(np.einsum("ij,ij->i", entity, entity))
        return np.ascontiguousarray(entity / np.maximum(length, 1e-12)[:, None], dtype=np.float32)

    def belief(self, head: Ids, relation: Ids, tail: Ids) -> npt.NDArray[np.float32]:
        """Return the plausibility of facts turned the way of confidence: unlike confidences, it ties nowhere."""
        sign = self.model.link.ranking_sign(float(self.parameters.link[0]))
        return np.asarray(self.model.plausibility(head, relation, tail) * np.float32(sign))


def backbones_of(models: UKGE | str | Path | Sequence[UKGE | str | Path], dataset: Dataset) -> tuple[Backbone, ...]:
    """Open trained models or run directories and check that they know the data set's names."""
    from ukge.estimator import UKGE  # noqa: PLC0415 — it can train; answers need none of that

    given = [models] if isinstance(models, (UKGE, str, Path)) else list(models)
    found: list[Backbone] = []
    for each in given:
        estimator = each if isinstance(each, UKGE) else UKGE.load(each)
        label = estimator.model if isinstance(each, UKGE) else _label(Path(each).resolve())
        if estimator.entities != dataset.entities or estimator.relations != dataset.relations:
            raise DataError(
                f"{label} learnt other names than data set {dataset.name!r} has: their ids would not mean the same",
                hint="Give models and the data set they were trained on.",
            )
        taken = [one.name for one in found]
        name = label if label not in taken else f"{label}-{sum(one.startswith(label) for one in taken) + 1}"
        found.append(Backbone.of(estimator, name))
    return tuple(found)


def _label(path: Path) -> str:
    """Return the name of a run directory; of one that is only called by its seed, the directory above tells more."""
    return path.parent.name if path.name.startswith("seed-") else path.name


@kernel(nogil=True, fastmath={"reassoc", "contract"}, error_model="numpy")
def _likeness(directions, i, j):  # type: ignore[no-untyped-def]
    """Return the inner product of two rows; only the order of its sum is free."""
    total = np.float32(0.0)
    for d in range(directions.shape[1]):
        total += directions[i, d] * directions[j, d]
    return total


@kernel(nogil=True, parallel=True)
def _agree(asked, own, begin, end, rows, answer, confidence, directions, out):  # type: ignore[no-untyped-def]
    for q in nb.prange(len(asked)):
        n = end[q] - begin[q]
        stride = max(1, n // MOST)
        nearest, its_confidence, weight, weighted = np.nan, np.nan, 0.0, 0.0
        for k in range(begin[q], end[q], stride):
            row = rows[k]
            if row == own[q]:
                continue
            likeness = float(_likeness(directions, asked[q], answer[row]))
            if np.isnan(nearest) or likeness > nearest:
                nearest, its_confidence = likeness, confidence[row]
            close = max(likeness, 0.0) ** 2
            weight += close
            weighted += close * confidence[row]
        out[q, 0] = nearest
        out[q, 1] = its_confidence
        out[q, 2] = weighted / weight if weight > 0.0 else np.nan


def agreement_columns(
    index: FactIndex,
    backbone: Backbone,
    asked: Asked,
    out: npt.NDArray[np.float32],
) -> None:
    """Fill the columns `AGREEMENT`: known answers of both queries, compared with the fact's own in embedding space."""
    graph = index.graph
    for column, groups, given, answer, answers in (
        (0, index.by_query, asked.head, asked.tail, graph.tail),
        (3, index.by_inverse_query, asked.tail, asked.head, graph.head),
    ):
        begin, end = groups.find(index.query_keys(given, asked.relation))
        part = np.empty((len(asked.head), 3), dtype=np.float32)
        _agree(
            answer,
            asked.own,
            begin,
            end,
            groups.rows,
            np.ascontiguousarray(answers),
            index.confidence,
            backbone.directions,
            part,
        )
        out[:, column : column + 3] = part
