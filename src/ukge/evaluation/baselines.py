"""What needs no model, as predictors: constants, relation means and looking the answer up in train.

Their predictions are those of the audit. They stand beside every model, because a figure means little until one knows
what it costs nothing to reach.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from ukge.evaluation.tasks import Predictor
from ukge.graph.audit.baselines import WITH_NEGATIVES, relation_means, relation_medians, twin_confidence
from ukge.graph.index import FactIndex
from ukge.graph.queries import AnyIds, Floats, Numbers, Queries
from ukge.graph.uncertain import UncertainGraph


class ByRelation:
    """One confidence per relation; all entities tie as answers to a query."""

    def __init__(self, by_relation: Floats, n_entities: int) -> None:
        self.by_relation = by_relation
        self._n_entities = n_entities

    @property
    def n_entities(self) -> int:
        """How many entities can be an answer."""
        return self._n_entities

    def confidence(self, head: AnyIds, relation: AnyIds, tail: AnyIds) -> Numbers:  # noqa: ARG002
        """Return the confidence of each fact's relation."""
        return self.by_relation[relation]

    def tail_scores(self, head: AnyIds, relation: AnyIds) -> Numbers:  # noqa: ARG002
        """Return the same score for every entity."""
        return self._level(relation)

    def head_scores(self, relation: AnyIds, tail: AnyIds) -> Numbers:  # noqa: ARG002
        """Return the same score for every entity."""
        return self._level(relation)

    def _level(self, relation: AnyIds) -> npt.NDArray[np.float32]:
        return np.repeat(self.by_relation[relation].astype(np.float32)[:, None], self.n_entities, axis=1)


class TwinLookUp(ByRelation):
    """The confidence that train gives the fact itself, else its inverse, else that of its relation."""

    def __init__(self, train: UncertainGraph, otherwise: Floats) -> None:
        super().__init__(otherwise, train.n_entities)
        self._known = FactIndex(train)

    def confidence(self, head: AnyIds, relation: AnyIds, tail: AnyIds) -> Numbers:
        """Return what train says of each fact or of its inverse."""
        twin = twin_confidence(head, relation, tail, self._known)
        return np.where(np.isnan(twin), self.by_relation[relation], twin)

    def tail_scores(self, head: AnyIds, relation: AnyIds) -> Numbers:
        """Return the confidence of every entity as tail."""
        return self._looked_up(Queries.of("tail", head, relation), Queries.of("head", head, relation))

    def head_scores(self, relation: AnyIds, tail: AnyIds) -> Numbers:
        """Return the confidence of every entity as head."""
        return self._looked_up(Queries.of("head", tail, relation), Queries.of("tail", tail, relation))

    def _looked_up(self, exact: Queries, inverse: Queries) -> Numbers:
        scores = self._level(exact.relation)
        for queries in (inverse, exact):  # the fact itself goes before its inverse
            answers = self._known.answers(queries)
            scores[answers.query, answers.entity] = answers.confidence
        return scores


def baseline_predictors(train: UncertainGraph, positive_share: float = 1.0) -> Mapping[str, Predictor]:
    """Return the trivial baselines fitted to the training facts, by the names that the audit gives them.

    Where only a share of what is asked are facts and the rest negative links, so is what one more constant is fitted
    to: of the training facts' confidences and zeros it takes the mean.
    """
    n_entities, n_relations = train.n_entities, train.n_relations
    means, mean = relation_means(train), float(train.confidence.mean())
    constants = {"constant, mean": mean, "constant, median": float(np.median(train.confidence))}
    if positive_share < 1.0:
        constants[WITH_NEGATIVES] = mean * positive_share
    return {
        **{name: ByRelation(np.full(n_relations, value), n_entities) for name, value in constants.items()},
        "relation mean": ByRelation(means, n_entities),
        "relation median": ByRelation(relation_medians(train), n_entities),
        "twin, else relation mean": TwinLookUp(train, means),
        "twin, else 0": TwinLookUp(train, np.zeros(n_relations)),
    }
