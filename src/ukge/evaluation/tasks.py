"""The tasks that protocols are made of: facts or queries, bound to the metrics that judge the answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np

from ukge.evaluation.classification import (
    Classification,
    PrecisionRecall,
    StrongFacts,
    classification_sample,
    precision_recall,
)
from ukge.evaluation.confidence import Calibration, ConfidenceErrors, RankCorrelation, calibration_sample, error_sample
from ukge.evaluation.metric import Bootstrap, Figure, Sample, figures_of, metrics_of
from ukge.evaluation.ranking import (
    LinkMetrics,
    Ndcg,
    RankedFacts,
    Ranks,
    RawAndFiltered,
    link_sample,
    ndcg_sample,
    per_query_ndcg,
    ranks_of,
)
from ukge.graph.queries import SIDES, Answers, AnyIds, Floats, Numbers, Queries, Ranker, Side
from ukge.graph.uncertain import UncertainGraph

BOTH = "both"


class Predictor(Ranker, Protocol):
    """What is evaluated: says how confident it is of facts, and scores all entities for a query, by id."""

    def confidence(self, head: AnyIds, relation: AnyIds, tail: AnyIds) -> Numbers:
        """Return the predicted confidence of each fact."""


@runtime_checkable
class TellsStrong(Protocol):
    """A predictor that tells strong facts itself, because it knows the training facts.

    A classifier fitted to what it says of those would learn that strong facts look far surer than any unseen one does.
    """

    def strong_chance(self, head: AnyIds, relation: AnyIds, tail: AnyIds, tau: float) -> Numbers | None:
        """Return how likely each fact has a confidence above τ; None where no fact told it what is strong."""


@dataclass(frozen=True, slots=True)
class Table:
    """One table of results: `columns` are the metrics to show (all if empty), `brief` whether a terminal shows it.

    `judged_by` are the metrics in which a model must beat what needs no model; none where another table judges it.
    """

    name: str
    title: str
    columns: tuple[str, ...] = ()
    brief: bool = True
    judged_by: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """What is asked: confidence, ranking, classification or links."""
        return self.name.partition("_")[0]


Figures = Mapping[str, tuple[Figure, ...]]
"""Figures by the name of their table."""


Samples = Mapping[str, tuple[Sample, ...]]
"""What figures are drawn from, by the name of their table."""


class Judged(NamedTuple):
    """The figures of a predictor, and what they were drawn from, as far as it can be compared unit by unit."""

    figures: Figures
    samples: Samples


class Task(ABC):
    """What a predictor is asked, and how the answers are judged."""

    tables: tuple[Table, ...]

    @abstractmethod
    def measure(self, predictor: Predictor, bootstrap: Bootstrap) -> Figures:
        """Return the figures of a predictor."""

    def judge(self, predictor: Predictor, bootstrap: Bootstrap) -> Judged:
        """Return the figures, and what two predictors can be compared by."""
        return Judged(self.measure(predictor, bootstrap), {})


class SampledTask(Task):
    """A task whose figures are drawn from samples of the same facts or queries for every predictor."""

    kinds: tuple[type, ...]
    """the classes that declare the metrics of each table"""

    @abstractmethod
    def samples(self, predictor: Predictor) -> Samples:
        """Ask a predictor, and return its answers unit by unit."""

    def measure(self, predictor: Predictor, bootstrap: Bootstrap) -> Figures:
        """Return the figures of a predictor."""
        return self.judge(predictor, bootstrap).figures

    def judge(self, predictor: Predictor, bootstrap: Bootstrap) -> Judged:
        """Return the figures, and what two predictors can be compared by."""
        samples = self.samples(predictor)
        return Judged({name: self._figures(each, bootstrap) for name, each in samples.items()}, samples)

    def _figures(self, samples: tuple[Sample, ...], bootstrap: Bootstrap) -> tuple[Figure, ...]:
        values = {name: value for sample in samples for name, value in sample.point().items()}
        limits = {name: limit for sample in samples for name, limit in sample.intervals(bootstrap).items()}
        return tuple(figure for kind in self.kinds for figure in figures_of(kind, values, limits))


class ConfidenceTask(SampledTask):
    """Predict the confidence of facts: errors, calibration and order."""

    kinds = (ConfidenceErrors, Calibration)

    def __init__(self, facts: UncertainGraph, title: str) -> None:
        self.facts = facts
        self.tables = (Table("confidence", f"Confidence prediction: {title}", judged_by=("mse",)),)

    def predict(self, predictor: Predictor) -> Numbers:
        """Return the predicted confidence of each fact."""
        return predictor.confidence(self.facts.head, self.facts.relation, self.facts.tail)

    def samples(self, predictor: Predictor) -> Samples:
        """Return what MSE, MAE, calibration error and Spearman's correlation are drawn from."""
        predicted, observed = self.predict(predictor), self.facts.confidence
        errors, gaps = error_sample(predicted, observed), calibration_sample(predicted, observed)
        return {"confidence": (errors, gaps, RankCorrelation(predicted, observed))}


class ErrorsApart(Task):
    """Errors on several kinds of facts, each for itself."""

    def __init__(
        self,
        parts: Mapping[str, UncertainGraph],
        title: str,
        columns: tuple[str, ...] = (),
        judged_by: tuple[str, ...] = (),
    ) -> None:
        self.parts = parts
        title = f"Confidence prediction, apart: {title}"
        self.tables = (Table("confidence_apart", title, columns, judged_by=judged_by),)

    def measure(self, predictor: Predictor, bootstrap: Bootstrap) -> Figures:
        """Return MSE and MAE of each kind."""
        figures: list[Figure] = []
        for part, facts in self.parts.items():
            predicted = predictor.confidence(facts.head, facts.relation, facts.tail)
            sample = error_sample(predicted, facts.confidence)
            for each in figures_of(ConfidenceErrors, sample.point(), sample.intervals(bootstrap)):
                named = replace(each.metric, name=f"{each.metric.name}_{part}", title=f"{each.metric.title} {part}")
                figures.append(replace(each, metric=named))
        return {"confidence_apart": tuple(figures)}


class RankingTask(SampledTask):
    """Rank all entities as tails of queries (h, r, ?); the gain of a tail is its confidence."""

    kinds = (Ndcg,)

    def __init__(self, queries: Queries, gains: Answers, excluded: Answers, name: str, title: str) -> None:
        self.queries, self.gains, self.excluded = queries, gains, excluded
        self.tables = (Table(name, f"Fact ranking: {title}", judged_by=("linear",)),)

    def ranks(self, ranker: Ranker) -> Ranks:
        """Return the rank of each tail that has a gain, among the entities that are not excluded."""
        return ranks_of(ranker, self.queries, self.gains.query, self.gains.entity, self.excluded).filtered

    def by_query(self, ranker: Ranker) -> tuple[Floats, Floats]:
        """Return for each query that has a gain how many tails it has, and its linear nDCG."""
        gains, query = self.gains.confidence, self.gains.query
        total = np.bincount(query, weights=gains, minlength=len(self.queries))
        sizes = np.diff(self.gains.offsets)[total > 0].astype(np.float64)
        return sizes, per_query_ndcg(self.ranks(ranker), gains, query)

    def samples(self, predictor: Predictor) -> Samples:
        """Return what the mean nDCG is drawn from."""
        return {self.tables[0].name: (ndcg_sample(self.ranks(predictor), self.gains.confidence, self.gains.query),)}


class ClassificationTask(SampledTask):
    """Find the strong facts among facts and false links, with a classifier fitted to training data.

    A predictor that tells them itself is asked instead: strong is what is more likely so than not.
    """

    kinds = (Classification,)

    def __init__(self, fit_on: UncertainGraph, facts: UncertainGraph, tau: float, title: str) -> None:
        self.fit_on, self.facts, self.tau = fit_on, facts, tau
        self.tables = (Table("classification", f"Strong facts: {title}", judged_by=("f1",)),)

    def samples(self, predictor: Predictor) -> Samples:
        """Return what F1, accuracy, precision and recall are drawn from."""
        chance = self._chance(predictor)
        if chance is None:
            seen = predictor.confidence(self.fit_on.head, self.fit_on.relation, self.fit_on.tail)
            classifier = StrongFacts.fit(seen, self.fit_on.confidence > self.tau)
            found = classifier.predict(self._predict(predictor))
        else:
            found = np.asarray(chance > 0.5)
        return {"classification": (classification_sample(found, self.facts.confidence > self.tau),)}

    def curve(self, predictor: Predictor) -> PrecisionRecall:
        """Return the precision–recall curve over thresholds of the chance, or of the predicted confidence."""
        chance = self._chance(predictor)
        judged = self._predict(predictor) if chance is None else chance
        return precision_recall(judged, self.facts.confidence > self.tau)

    def _chance(self, predictor: Predictor) -> Numbers | None:
        if not isinstance(predictor, TellsStrong):
            return None
        return predictor.strong_chance(self.facts.head, self.facts.relation, self.facts.tail, self.tau)

    def _predict(self, predictor: Predictor) -> Numbers:
        return predictor.confidence(self.facts.head, self.facts.relation, self.facts.tail)


class LinkTask(SampledTask):
    """Rank the true entity of each fact among all; filtered, the other known answers are left out.

    `filtered` says, for the tables, of what; `which` is the name of a part of the test facts, and what it is.
    """

    kinds = (LinkMetrics,)

    def __init__(
        self,
        facts: UncertainGraph,
        known: Mapping[Side, Answers],
        ranked: Mapping[Side, RankedFacts],
        filtered: str,
        columns: tuple[str, ...],
        which: tuple[str, str] = ("", "test facts"),
    ) -> None:
        self.facts, self.known, self.ranked = facts, known, ranked
        self._name = "_".join(each for each in ("links", which[0]) if each)
        self.tables = tuple(
            Table(
                f"{self._name}_{kind}_{side}",
                f"Link prediction, {words}, {_SIDE_TITLES[side]}: {len(facts):,} {which[1]}",
                columns,
                brief=kind == "filtered" or side == BOTH,
                judged_by=("mrr",) if kind == "filtered" and side == self._sides()[0] else (),
            )
            for kind, words in (("filtered", filtered), ("raw", "raw"))
            for side in self._sides()
        )

    def ranks(self, ranker: Ranker) -> dict[Side, RawAndFiltered]:
        """Return the ranks of the facts by side."""
        return {side: each.ranks(ranker, self.known[side]) for side, each in self.ranked.items()}

    def samples(self, predictor: Predictor) -> Samples:
        """Return what the link-prediction metrics are drawn from, raw and filtered, of each side and of both."""
        ranks = self.ranks(predictor)
        samples: dict[str, tuple[Sample, ...]] = {}
        for kind in RawAndFiltered._fields:
            of_side = {side: getattr(each, kind) for side, each in ranks.items()}
            for side in self._sides():
                chosen = list(of_side.values()) if side == BOTH else [of_side[side]]  # type: ignore[index]
                samples[f"{self._name}_{kind}_{side}"] = (link_sample(*chosen, confidence=self.facts.confidence),)
        return samples

    def _sides(self) -> tuple[str, ...]:
        return (BOTH, *SIDES) if len(self.ranked) == len(SIDES) else tuple(self.ranked)


_SIDE_TITLES = {BOTH: "mean of both sides", "tail": "tail side (h, r, ?)", "head": "head side (?, r, t)"}


LINK_COLUMNS = tuple(each.name for each in metrics_of(LinkMetrics) if not each.name.endswith(("_20", "_40")))
"""What tables show of link prediction unless a protocol asks for more."""
