"""The weights of a run, mapped from its file: pages are read when they are needed and shared between processes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ukge.errors import RunError
from ukge.models.links import Link, links
from ukge.models.scorers import Scorer, scorers
from ukge.runs.directory import Run
from ukge.storage import DAMAGED, StoredArrays

Ids = npt.NDArray[np.integer[Any]]
Floats = npt.NDArray[np.float64]

BLOCK = 1 << 16
"""Rows that are looked at together when a table is checked."""


class Weights:
    """Embeddings × scorer × link, by ids. A *score* is a plausibility turned so that a higher one is more confident."""

    def __init__(self, entity: Tensor, relation: Tensor, link_weights: Tensor, scorer: Scorer, link: Link) -> None:
        self.entity, self.relation = entity, relation
        self.scorer, self.link = scorer, link
        self._link_weights = link_weights
        self._sign = link.ranking_sign(float(link_weights[0]))

    @classmethod
    def of(cls, run: Run) -> Weights:
        """Map the weights of a run, and check that they fit its settings and names."""
        file = run.path / "weights.safetensors"
        arrays = StoredArrays(file)
        settings = run.config.model
        scorer, link = scorers.get(settings.scorer), links.get(settings.link)
        entities, relations = run.vocabularies
        expected = {
            "entity": (len(entities), scorer.entity_width(settings.dim)),
            "relation": (len(relations), scorer.relation_width(settings.dim)),
            "link": (2,),
        }
        for name, shape in expected.items():
            found = arrays.get(name)
            if found is None or found.shape != shape or found.dtype != np.float32:
                has = "is missing" if found is None else f"is {found.dtype} {found.shape}"
                raise RunError(f"{file} does not fit the run: '{name}' {has}, expected float32 {shape}", hint=DAMAGED)
            if not all(np.isfinite(found[at : at + BLOCK]).all() for at in range(0, len(found), BLOCK)):
                raise RunError(f"{file} cannot be served: '{name}' holds numbers that are not finite", hint=DAMAGED)
        entity, relation, link_weights = (torch.from_numpy(arrays[name]) for name in expected)
        return cls(entity, relation, link_weights, scorer, link)

    @property
    def n_entities(self) -> int:
        """How many entities there are."""
        return len(self.entity)

    def tail_query(self, head: int, relation: int) -> Tensor:
        """Return the query vector of (h, r, ?), turned so that a higher product means a higher confidence."""
        return self._turned(self.scorer.tail_query(self.entity[head], self.relation[relation]))

    def head_query(self, relation: int, tail: int) -> Tensor:
        """Return the query vector of (?, r, t), turned likewise."""
        return self._turned(self.scorer.head_query(self.relation[relation], self.entity[tail]))

    @torch.no_grad()
    def scores(self, queries: Tensor, candidates: Tensor) -> Tensor:
        """Return the score of each candidate row for each query vector, `(n, w), (m, w) → (n, m)`."""
        if self.scorer.inner_product:
            # One query is faster as a product of the table with a vector than as one of a row with the table.
            return torch.mv(candidates, queries[0])[None] if len(queries) == 1 else queries @ candidates.mT
        return self.scorer.compare_all(queries, candidates) * self._sign

    @torch.no_grad()
    def confidence_of(self, scores: npt.NDArray[np.floating[Any]]) -> Floats:
        """Return the confidences that scores stand for."""
        plausibility = torch.from_numpy(np.asarray(scores, dtype=np.float32)) * self._sign
        predicted = self.link.predict(plausibility, self._link_weights[0], self._link_weights[1])
        return predicted.numpy().astype(np.float64)

    @torch.no_grad()
    def confidence(self, head: Ids, relation: Ids, tail: Ids) -> Floats:
        """Return the confidence of each fact."""
        out = np.empty(len(head))
        for start in range(0, len(head), BLOCK):
            rows = slice(start, start + BLOCK)
            parts = (self.entity[_ids(head[rows])], self.relation[_ids(relation[rows])], self.entity[_ids(tail[rows])])
            plausibility = self.scorer.plausibility(*parts)
            predicted = self.link.predict(plausibility, self._link_weights[0], self._link_weights[1])
            out[rows] = predicted.numpy()
        return out

    @torch.no_grad()
    def similar(self, entity: int, others: Ids) -> Floats:
        """Return the cosine of one entity's row with those of others."""
        rows = self.entity[_ids(others)]
        return torch.cosine_similarity(self.entity[entity][None], rows, dim=1).numpy().astype(np.float64)

    def _turned(self, query: Tensor) -> Tensor:
        return query * self._sign if self.scorer.inner_product else query


def _ids(ids: Ids) -> Tensor:
    return torch.from_numpy(ids.astype(np.int64))
