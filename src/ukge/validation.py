"""What stops training and chooses its epoch: metrics on the validation facts. Nothing of the test split is here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ukge.evaluation.confidence import confidence_errors
from ukge.evaluation.ndcg import ndcg
from ukge.evaluation.predictions import Numbers, Predictor
from ukge.evaluation.ranks import query_blocks, query_ranks, ranks_in
from ukge.graph.negatives import negative_links
from ukge.graph.uncertain import UncertainGraph, concat
from ukge.registry import Registry

MOST_QUERIES = 2000


@dataclass(frozen=True)
class Validation:
    """The training and validation facts, as a metric may see them."""

    train: UncertainGraph
    val: UncertainGraph
    tau: float
    seed: int
    links: UncertainGraph | None = None
    """Negative links like the validation facts, where they are drawn already."""


class Metric(ABC):
    """A number per model; prepared once, measured after every few epochs."""

    higher_is_better: bool = False
    reads_train: bool = True
    """Whether it looks at the training facts, even where negative links are given."""

    def __init__(self, validation: Validation) -> None:
        self.validation = validation

    @abstractmethod
    def measure(self, model: Predictor) -> float:
        """Return the metric of `model`."""

    def improves(self, value: float, best: float | None) -> bool:
        """Return whether `value` is better than the best so far."""
        if best is None:
            return True
        return value > best if self.higher_is_better else value < best


metrics: Registry[type[Metric]] = Registry("metric")


class _Errors(Metric):
    """Errors on validation facts and as many negative links, so that the choice resembles the paper's test set."""

    with_negatives = True
    reads_train = False

    def __init__(self, validation: Validation) -> None:
        super().__init__(validation)
        facts = validation.val
        if self.with_negatives:
            facts = concat([facts, validation_links(validation) if validation.links is None else validation.links])
        self.facts = facts

    def measure(self, model: Predictor) -> float:
        """Return the error of the predicted confidences."""
        predicted = model.confidence(self.facts.head, self.facts.relation, self.facts.tail)
        return self.pick(predicted)

    @abstractmethod
    def pick(self, predicted: Numbers) -> float:
        """Return one of the errors."""


def validation_links(validation: Validation) -> UncertainGraph:
    """Draw as many negative links as there are validation facts, distributed like those of the paper's test sets."""
    known = concat([validation.train, validation.val])
    return negative_links(known, like=validation.val, kind="paper", seed=validation.seed)


@metrics.register("mse")
class Mse(_Errors):
    """Mean squared error on validation facts and as many negative links."""

    def pick(self, predicted: Numbers) -> float:
        """Return the MSE."""
        return confidence_errors(predicted, self.facts.confidence).mse


@metrics.register("mae")
class Mae(_Errors):
    """Mean absolute error on validation facts and as many negative links."""

    def pick(self, predicted: Numbers) -> float:
        """Return the MAE."""
        return confidence_errors(predicted, self.facts.confidence).mae


@metrics.register("mse-positives")
class MsePositives(Mse):
    """Mean squared error on the validation facts alone."""

    with_negatives = False


@metrics.register("ndcg")
class NdcgMetric(Metric):
    """Mean linear nDCG of up to 2,000 validation queries (h, r, ?); gains are training and validation confidences.

    They are the queries of random validation facts: as in the paper's sets, one with many facts is asked more often.
    """

    higher_is_better = True

    def __init__(self, validation: Validation) -> None:
        super().__init__(validation)
        known = concat([validation.train, validation.val])
        val = validation.val
        drawn = np.random.Generator(np.random.Philox(validation.seed)).permutation(_query_keys(val))
        _, first = np.unique(drawn, return_index=True)
        asked = np.sort(drawn[np.sort(first)[:MOST_QUERIES]])
        keys = _query_keys(known)
        place = np.clip(np.searchsorted(asked, keys), 0, len(asked) - 1)
        wanted = np.flatnonzero(asked[place] == keys)
        # A repeated fact counts once, with its last confidence: the same tail cannot stand at two ranks.
        pairs = place[wanted].astype(np.int64) * known.n_entities + known.tail[wanted]
        distinct, last = np.unique(pairs[::-1], return_index=True)
        self.heads = (asked // known.n_relations).astype(np.int32)
        self.relations = (asked % known.n_relations).astype(np.int32)
        self.query = distinct // known.n_entities
        self.tail = distinct % known.n_entities
        self.gain = known.confidence[wanted][::-1][last]

    def measure(self, model: Predictor) -> float:
        """Return the mean linear nDCG."""

        def score(block: slice) -> Numbers:
            return model.tail_scores(self.heads[block], self.relations[block])

        ranks = query_ranks(score, len(self.heads), model.n_entities, self.query, self.tail)
        return ndcg(ranks, self.gain, self.query).linear


@metrics.register("mrr")
class Mrr(Metric):
    """Filtered mean reciprocal rank of the strong validation facts, head and tail side (at most 2,000 facts)."""

    higher_is_better = True

    def __init__(self, validation: Validation) -> None:
        super().__init__(validation)
        strong = validation.val[validation.val.confidence > validation.tau]
        facts = strong if len(strong) else validation.val
        if len(facts) > MOST_QUERIES:
            rng = np.random.Generator(np.random.Philox(validation.seed))
            facts = facts[np.sort(rng.choice(len(facts), MOST_QUERIES, replace=False))]
        self.facts = facts
        known = concat([validation.train, validation.val])
        n = known.n_entities
        self.tails = _known_answers(facts.relation, facts.head, known.relation, known.head, known.tail, n)
        self.heads = _known_answers(facts.relation, facts.tail, known.relation, known.tail, known.head, n)

    def measure(self, model: Predictor) -> float:
        """Return the mean reciprocal rank over both sides."""
        facts = self.facts
        reciprocal = 0.0
        for block in query_blocks(len(facts), model.n_entities):
            head, relation, tail = facts.head[block], facts.relation[block], facts.tail[block]
            rows = np.arange(len(head))
            for scores, own, (offsets, known) in (
                (model.tail_scores(head, relation), tail, self.tails),
                (model.head_scores(relation, tail), head, self.heads),
            ):
                first, last = offsets[block.start], offsets[block.stop]
                skip = offsets[block.start : block.stop + 1] - first
                reciprocal += float(np.sum(1.0 / ranks_in(scores, rows, own, skip, known[first:last])))
        return reciprocal / (2 * len(facts))


def _query_keys(graph: UncertainGraph) -> npt.NDArray[np.int64]:
    return graph.head.astype(np.int64) * graph.n_relations + graph.relation


def _known_answers(
    relation: npt.NDArray[np.int32],
    entity: npt.NDArray[np.int32],
    known_relation: npt.NDArray[np.int32],
    known_entity: npt.NDArray[np.int32],
    answer: npt.NDArray[np.int32],
    n_entities: int,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return for each query the distinct known answers, as offsets and entities."""
    keys = known_relation.astype(np.int64) * n_entities + known_entity
    order = np.lexsort((answer, keys))
    keys, answers = keys[order], answer[order]
    fresh = np.ones(len(keys), dtype=np.bool_)
    fresh[1:] = (keys[1:] != keys[:-1]) | (answers[1:] != answers[:-1])
    keys, answers = keys[fresh], answers[fresh]
    asked = relation.astype(np.int64) * n_entities + entity
    first, last = np.searchsorted(keys, asked, side="left"), np.searchsorted(keys, asked, side="right")
    offsets = np.concatenate([[0], np.cumsum(last - first)])
    within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], last - first)
    return offsets, answers[np.repeat(first, last - first) + within]
