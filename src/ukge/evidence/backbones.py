"""Trained models as evidence: how sure each is of a fact, and how alike its entities are to those of known facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ukge.errors import DataError
from ukge.evidence.kernels import compiler_pays, kernel, prange
from ukge.evidence.lookup import FactBatch, find_rows
from ukge.graph.dataset import Dataset
from ukge.graph.index import FactIndex
from ukge.graph.queries import Places
from ukge.graph.vocabulary import Ids
from ukge.models.links import links
from ukge.models.model import Model
from ukge.models.scorers import scorers
from ukge.models.tables import Parameters
from ukge.runs.directory import Run
from ukge.runs.journal import refuse_if_added
from ukge.runs.learnt import Learnt

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

COMPARISON = 1e-6
"""Seconds that it takes to compare two entities without the compiler."""


@dataclass(frozen=True, eq=False)
class Backbone:
    """One trained model: its name among the evidence, and its weights with what makes confidences of them."""

    name: str
    scorer: str
    link: str
    parameters: Parameters
    learns_confidence: bool = True
    """False for a model that learnt an order: what φ makes of its plausibilities is no confidence."""
    undirected: npt.NDArray[np.bool_] | None = None
    """Which relations have no direction."""

    @classmethod
    def of(cls, learnt: Learnt, name: str) -> Backbone:
        """Take the weights of a trained model."""
        settings, objective = learnt.trained.config.model, learnt.trained.config.objective
        trained = learnt.trained
        return cls(
            name,
            settings.scorer,
            settings.link,
            trained.parameters,
            objective.learns_confidence,
            trained.undirected,
        )

    @cached_property
    def model(self) -> Model:
        """The model, by ids."""
        return Model(self.parameters, scorers.get(self.scorer), links.get(self.link), self.undirected)

    @cached_property
    def directions(self) -> npt.NDArray[np.float32]:
        """The entities' vectors, each of length 1 (a vector of zeros stays one)."""
        return self.directions_of(slice(None))

    def directions_of(self, entities: Ids | slice) -> npt.NDArray[np.float32]:
        """Return the vectors of some entities, each of length 1."""
        entity = self.parameters.entity[entities]
        length = np.sqrt(np.einsum("ij,ij->i", entity, entity))
        return np.ascontiguousarray(entity / np.maximum(length, 1e-12)[:, None], dtype=np.float32)

    def belief(self, head: Ids, relation: Ids, tail: Ids) -> npt.NDArray[np.float32]:
        """Return the plausibility of facts turned the way of confidence: unlike confidences, it ties nowhere."""
        return self.model.strength(head, relation, tail)


class Estimator(Protocol):
    """What an estimator has to offer, trained."""

    model: str

    @property
    def learnt(self) -> Learnt:
        """What it has learnt; an error if it is not trained."""


Models = Estimator | str | Path | Sequence[Estimator | str | Path]
"""Trained estimators or run directories."""


def backbones_of(models: Models, dataset: Dataset) -> tuple[Backbone, ...]:
    """Open trained models or run directories and check that they know the data set's names."""
    found: list[Backbone] = []
    for each in models if isinstance(models, Sequence) and not isinstance(models, str) else [models]:
        if isinstance(each, (str, Path)):
            refuse_if_added(Path(each))
            learnt, label = Learnt.load(Run.open(each)), _label(Path(each).resolve())
        else:
            learnt, label = each.learnt, each.model
        if learnt.names != (dataset.entities, dataset.relations):
            raise DataError(
                f"{label} learnt other names than data set {dataset.name!r} has: their ids would not mean the same",
                hint="Give models and the data set they were trained on.",
            )
        taken = [one.name for one in found]
        name = label if label not in taken else f"{label}-{sum(one.startswith(label) for one in taken) + 1}"
        found.append(Backbone.of(learnt, name))
    return tuple(found)


def _label(path: Path) -> str:
    """Return the name of a run directory; of one that is only called by its seed, the directory above tells more."""
    return path.parent.name if path.name.startswith("seed-") else path.name


@kernel(fastmath={"reassoc", "contract"}, error_model="numpy")
def _likeness(directions, i, j):  # type: ignore[no-untyped-def]
    """Return the inner product of two rows, summed up in any order and so exactly that the order does not show."""
    total = 0.0
    for d in range(directions.shape[1]):
        total += np.float64(directions[i, d]) * np.float64(directions[j, d])
    return np.float64(np.float32(total))


@kernel(parallel=True)
def _agree(asked, own, begin, end, rows, fact, answer, confidence, directions, out):  # type: ignore[no-untyped-def]
    for q in prange(len(asked)):
        n = end[q] - begin[q]
        stride = max(1, n // MOST)
        nearest, its_confidence, weight, weighted = np.nan, np.nan, 0.0, 0.0
        for k in range(begin[q], end[q], stride):
            row = rows[k]
            if own[q] >= 0 and fact[row] == own[q]:
                continue
            likeness = _likeness(directions, asked[q], answer[row])
            if np.isnan(nearest) or likeness > nearest:
                nearest, its_confidence = likeness, confidence[row]
            close = max(likeness, 0.0) * max(likeness, 0.0)
            weight += close
            weighted += close * confidence[row]
        out[q, 0] = nearest
        out[q, 1] = its_confidence
        out[q, 2] = weighted / weight if weight > 0.0 else np.nan


def _agree_few(
    asked: Ids, own: Places, known: tuple[npt.NDArray[Any], ...], backbone: Backbone, out: npt.NDArray[np.float32]
) -> None:
    """Do what `_agree` does, step by step for all facts at once; `known` are its arguments from `begin` on."""
    begin, end, rows, fact, answer, confidence = known
    stride = np.maximum(1, (end - begin) // MOST)
    nearest, its_confidence = np.full((2, len(asked)), np.nan)
    weight, weighted = np.zeros((2, len(asked)))
    for step in range(int(((end - begin + stride - 1) // stride).max(initial=0))):
        at = begin + step * stride
        q = np.flatnonzero(at < end)
        q = q[(own[q] < 0) | (fact[rows[at[q]]] != own[q])]
        row = rows[at[q]]
        pairs = (backbone.directions_of(ids).astype(np.float64) for ids in (asked[q], answer[row]))
        likeness = np.einsum("ij,ij->i", *pairs).astype(np.float32).astype(np.float64)
        nearer = np.isnan(nearest[q]) | (likeness > nearest[q])
        nearest[q[nearer]], its_confidence[q[nearer]] = likeness[nearer], confidence[row[nearer]]
        close = np.maximum(likeness, 0.0) * np.maximum(likeness, 0.0)
        weight[q] += close
        weighted[q] += close * confidence[row]
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(weight > 0.0, weighted / weight, np.nan)
    out[:] = np.stack([nearest, its_confidence, mean], axis=1)


def agreement_columns(
    index: FactIndex,
    backbone: Backbone,
    asked: FactBatch,
    out: npt.NDArray[np.float32],
) -> None:
    """Fill the columns `AGREEMENT`: known answers of both queries, compared with the fact's own in embedding space."""
    for column, groups, given, answer, answers in (
        (0, index.by_query, asked.head, asked.tail, index.tail),
        (3, index.by_inverse_query, asked.tail, asked.head, index.head),
    ):
        begin, end = find_rows(groups, index.query_keys(given, asked.relation))
        part = np.empty((len(asked.head), 3), dtype=np.float32)
        known = begin, end, groups.rows, index.fact, answers, index.confidence
        if compiler_pays(COMPARISON * MOST * len(answer)):
            _agree(answer, asked.own, *known, backbone.directions, part)
        else:
            _agree_few(answer, asked.own, known, backbone, part)
        out[:, column : column + 3] = part
