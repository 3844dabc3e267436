"""What stops training and chooses its epoch: metrics on the validation facts. Nothing of the test split is here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from ukge.evaluation.classification import StrongFacts, classification
from ukge.evaluation.confidence import confidence_errors
from ukge.evaluation.ranking import RankedFacts, ndcg, ranks_of
from ukge.evaluation.tasks import Predictor
from ukge.graph.index import FactIndex
from ukge.graph.negatives import negative_links
from ukge.graph.queries import SIDES, Answers, Numbers, Queries
from ukge.graph.uncertain import UncertainGraph, concat
from ukge.registry import Registry

MOST_QUERIES = 2000
MOST_FITTED = 50_000
"""Training facts that a threshold is learnt from at most."""


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

    def of_a_constant(self) -> float | None:
        """Return what one number for everything reaches; None where that says nothing."""
        return None

    def improves(self, value: float, best: float | None) -> bool:
        """Return whether `value` is better than the best so far."""
        if best is None:
            return True
        return value > best if self.higher_is_better else value < best


metrics: Registry[type[Metric]] = Registry("metric", "ukge.metrics")


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

    def of_a_constant(self) -> float:
        """Return the error of the mean confidence."""
        return self.pick(np.full(len(self.facts), self.facts.confidence.mean()))

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


class _Strong(_Errors):
    """How well strong facts are told among validation facts and negative links, as the paper's third table asks."""

    higher_is_better = True
    reads_train = True

    def __init__(self, validation: Validation) -> None:
        super().__init__(validation)
        train, tau = validation.train, validation.tau
        if len(train) > MOST_FITTED:
            rng = np.random.Generator(np.random.Philox(validation.seed))
            train = train[np.sort(rng.choice(len(train), MOST_FITTED, replace=False))]
        known = concat([validation.train, validation.val])
        # Not the links that it is judged by: those would tell the classifier what is asked.
        false = negative_links(known, like=train, kind="paper", seed=validation.seed + 1)
        self.fit_on, self.tau = concat([train, false]), tau

    def measure(self, model: Predictor) -> float:
        """Return the metric of a threshold that is learnt from training facts and as many negative links."""
        seen = model.confidence(self.fit_on.head, self.fit_on.relation, self.fit_on.tail)
        classifier = StrongFacts.fit(seen, self.fit_on.confidence > self.tau)
        predicted = model.confidence(self.facts.head, self.facts.relation, self.facts.tail)
        return self.pick(classifier.predict(predicted).astype(np.float64))

    def of_a_constant(self) -> float:
        """Return what takes no fact to be strong."""
        return self.pick(np.zeros(len(self.facts)))


@metrics.register("f1")
class F1(_Strong):
    """F1 of strong facts among validation facts and as many negative links."""

    def pick(self, predicted: Numbers) -> float:
        """Return F1 of what is taken to be strong."""
        return classification(predicted > 0, self.facts.confidence > self.tau).f1


@metrics.register("accuracy")
class Accuracy(_Strong):
    """Share of validation facts and as many negative links that are told right to be strong or not."""

    def pick(self, predicted: Numbers) -> float:
        """Return the accuracy of what is taken to be strong."""
        return classification(predicted > 0, self.facts.confidence > self.tau).accuracy


@metrics.register("ndcg")
class NdcgMetric(Metric):
    """Mean linear nDCG of up to 2,000 validation queries (h, r, ?); gains are training and validation confidences.

    They are the queries of random validation facts: as in the paper's sets, one with many facts is asked more often.
    """

    higher_is_better = True

    def __init__(self, validation: Validation) -> None:
        super().__init__(validation)
        val = validation.val
        asked = FactIndex(val)
        keys = asked.head.astype(np.int64) * val.n_relations + asked.relation
        drawn = np.random.Generator(np.random.Philox(validation.seed)).permutation(keys)
        _, first = np.unique(drawn, return_index=True)
        head, relation = np.divmod(np.sort(drawn[np.sort(first)[:MOST_QUERIES]]), val.n_relations)
        self.queries = Queries.of("tail", head, relation)
        self.gains = FactIndex(concat([validation.train, val])).answers(self.queries)

    def measure(self, model: Predictor) -> float:
        """Return the mean linear nDCG."""
        queries, gains = self.queries, self.gains
        ranks = ranks_of(model, queries, gains.query, gains.entity, Answers.none(len(queries))).raw
        return ndcg(ranks, gains.confidence, gains.query).linear


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
        known = FactIndex(concat([validation.train, validation.val]))
        self.ranked = [RankedFacts.of(facts, side) for side in SIDES]
        self.known = [known.answers(each.queries) for each in self.ranked]

    def measure(self, model: Predictor) -> float:
        """Return the mean reciprocal rank over both sides."""
        ranks = [facts.ranks(model, known).filtered for facts, known in zip(self.ranked, self.known, strict=True)]
        return float(np.mean(1.0 / np.concatenate(ranks)))
