"""Tasks that ask how far confidences can be trusted: beside every kind of negative links, as distributions, as bounds,
before and after calibration, and as answer sets.

A predictor that brings distributions, bounds and sets of its own (as evidence does) is judged by those. Any other gets
them from its predictions of the validation facts and of negative links like them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ukge.evaluation.answer_sets import (
    FEWEST,
    WITHIN,
    AnswerSets,
    HasAnswerSets,
    SetScores,
    Within,
    scores_of_answers,
)
from ukge.evaluation.confidence import Calibration, ConfidenceErrors, calibration_sample, error_sample
from ukge.evaluation.distribution import (
    LEVELS,
    Distributed,
    DistributionScores,
    IntervalScores,
    Outcomes,
    distribution_sample,
    interval_sample,
)
from ukge.evaluation.metric import Bootstrap, Figure, Means, Metric, Sample, metrics_of
from ukge.evaluation.tasks import Figures, Predictor, Table, Task
from ukge.graph.index import FactIndex
from ukge.graph.queries import AnyIds, Floats, Side
from ukge.graph.uncertain import UncertainGraph, concat

COVERAGES = (0.8, 0.9, 0.95)
SHOWN = 0.9
"""The coverage whose worst covered relations are named."""

WORST = 3
"""Relations that are named."""

BOTH = "both"
FACTS, NEGATIVES = "facts", "negatives"


class ByKind(Task):
    """Errors and calibration of facts and as many negative links of one kind, for each kind."""

    def __init__(self, facts: UncertainGraph, links: Mapping[str, UncertainGraph]) -> None:
        self.facts, self.links = facts, links
        title = f"Confidence prediction by kind of negatives: {len(facts):,} facts with as many links of each kind"
        self.tables = (Table("confidence_kinds", title, tuple(f"{m}_{k}" for k in links for m in ("mse", "ece"))),)

    def measure(self, predictor: Predictor, bootstrap: Bootstrap) -> Figures:
        """Return MSE, MAE and calibration error beside each kind."""
        figures: list[Figure] = []
        facts = _confidence(predictor, self.facts)
        for kind, links in self.links.items():
            predicted = np.concatenate([facts, _confidence(predictor, links)])
            observed = np.concatenate([self.facts.confidence, links.confidence])
            figures += _named(error_sample(predicted, observed), metrics_of(ConfidenceErrors), kind, bootstrap)
            figures += _named(calibration_sample(predicted, observed), metrics_of(Calibration)[:1], kind, bootstrap)
        return {"confidence_kinds": tuple(figures)}


class Distributions(Task):
    """Quantiles and bounds of the confidence, of facts, of negative links and of both; calibration before and after."""

    def __init__(self, test: Mapping[str, UncertainGraph], val: UncertainGraph) -> None:
        self.parts, self.val = test, val
        sizes = " and ".join(f"{len(links):,} {part}" for part, links in test.items())
        levels = ", ".join(f"{100 * each:.0f}" for each in COVERAGES)
        self.tables = (
            Table("distribution", f"Distribution of the confidence: {sizes}"),
            Table("intervals", f"Intervals of {levels} %: {sizes}"),
            Table("calibration", f"Calibration error as it is, and by a rising line fitted to validation: {sizes}"),
        )

    def measure(self, predictor: Predictor, bootstrap: Bootstrap) -> Figures:
        """Return CRPS and log score, coverage and width, and the calibration error before and after."""
        every = concat(list(self.parts.values()))
        ids = every.head, every.relation, every.tail
        predicted = _confidence(predictor, every)
        if isinstance(predictor, Distributed):
            after = predicted  # its calibration is its own, on links that it did not learn from
            quantiles = predictor.confidence_quantiles(*ids, LEVELS.tolist())
            bounds = [predictor.confidence_bounds(*ids, coverage) for coverage in COVERAGES]
        else:
            seen, one = _confidence(predictor, self.val), np.ones(len(predicted))
            after = _calibrated(seen, self.val.confidence, predicted)
            outcomes = Outcomes.of(seen, self.val.confidence)
            quantiles = outcomes.quantiles(predicted, one, LEVELS)
            bounds = [
                (np.minimum(low, predicted), np.maximum(high, predicted))
                for low, high in (outcomes.interval(predicted, one, coverage) for coverage in COVERAGES)
            ]
        scores: list[Figure] = []
        kept: list[Figure] = []
        for part, rows in self._rows().items():
            sample = distribution_sample(quantiles[rows], every.confidence[rows])
            scores += _named(sample, metrics_of(DistributionScores), part, bootstrap)
            for coverage, (low, high) in zip(COVERAGES, bounds, strict=True):
                sample = interval_sample(low[rows], high[rows], every.confidence[rows])
                kept += _named(sample, metrics_of(IntervalScores), f"{100 * coverage:.0f}_{part}", bootstrap)
        ece = metrics_of(Calibration)[0]
        return {
            "distribution": tuple(scores),
            "intervals": tuple(kept),
            "calibration": tuple(
                figure
                for when, values in (("before", predicted), ("after", after))
                for figure in _named(calibration_sample(values, every.confidence), (ece,), when, bootstrap)
            ),
        }

    def _rows(self) -> dict[str, slice]:
        """Return the places of each part among all, and of both together."""
        ends = np.cumsum([0, *(len(each) for each in self.parts.values())]).tolist()
        own = {part: slice(*ends[at : at + 2]) for at, part in enumerate(self.parts)}
        return {**own, BOTH: slice(0, ends[-1])}


class Sets(Task):
    """Answer sets with a promised coverage, for queries of one side: whether it is kept, and how large they are."""

    def __init__(self, test: UncertainGraph, val: UncertainGraph, train: UncertainGraph, side: Side) -> None:
        self.test, self.val, self.known, self.side = test, val, FactIndex(train), side
        levels = ", ".join(f"{100 * each:.0f}" for each in COVERAGES)
        query = "(h, r, ?)" if side == "tail" else "(?, r, t)"
        self.name = f"sets_{side}"
        self.worst = f"sets_{side}_worst"
        self.tables = (
            Table(self.name, f"Answer sets of {levels} % for {query}, without known answers"),
            Table(self.worst, f"Worst covered relations for {query}, {100 * SHOWN:.0f} % kept within each relation"),
        )

    def measure(self, predictor: Predictor, bootstrap: Bootstrap) -> Figures:
        """Return coverage and size, for all relations together and with the coverage kept within each."""
        sets = predictor.answer_sets if isinstance(predictor, HasAnswerSets) else None
        if sets is None:
            sets = AnswerSets.fit(predictor, self.val, self.known)
        every = np.arange(self.known.n_relations)
        asked = [(coverage, within) for within in WITHIN for coverage in COVERAGES]
        least = np.stack([sets.least_score(self.side, every, *each) for each in asked], axis=1)
        found = scores_of_answers(predictor, self.test, self.known, self.side, least)
        figures: list[Figure] = []
        for number, (coverage, within) in enumerate(asked):
            held = found.score >= least[found.relation, number]
            figures += self._figures(held, found.size[:, number], found.relation, coverage, within, bootstrap)
        shown = asked.index((SHOWN, "relation"))
        worst = self._worst(found.score >= least[found.relation, shown], found.size[:, shown], found.relation)
        return {self.name: tuple(figures), self.worst: worst}

    def _worst(self, held: npt.NDArray[np.bool_], size: Floats, relation: AnyIds) -> tuple[Figure, ...]:
        """Return the coverage of the relations that fall short most, with their facts and how large the sets are."""
        count = np.bincount(relation, minlength=1)
        kept = np.bincount(relation, held, minlength=1) / np.maximum(count, 1)
        many = np.flatnonzero(count >= FEWEST)
        worst = many[np.argsort(kept[many], kind="stable")][:WORST].tolist()
        figures = []
        for place in range(WORST):
            metric = Metric(f"worst_{place + 1}", f"{place + 1}. worst", higher_is_better=True)
            if place >= len(worst):
                figures.append(Figure(metric, float("nan")))
                continue
            sizes = size[relation == worst[place]]
            about = f"{count[worst[place]]:,} facts; size {sizes.mean():,.0f}, median {np.median(sizes):,.0f}"
            name = self.test.relations[worst[place]].replace(";", ",")
            figures.append(Figure(metric, float(kept[worst[place]]), note=f"{name}; {about}"))
        return tuple(figures)

    def _figures(
        self,
        held: npt.NDArray[np.bool_],
        size: Floats,
        relation: AnyIds,
        coverage: float,
        within: Within,
        bootstrap: Bootstrap,
    ) -> list[Figure]:
        by_name = {each.name: each for each in metrics_of(SetScores)}
        label = f"{100 * coverage:.0f}" + ("_by_relation" if within == "relation" else "")
        sample = Means([held, size], lambda means: {"coverage": means[:, 0], "size": means[:, 1]})
        figures = _named(sample, (by_name["coverage"], by_name["size"]), label, bootstrap)
        count = np.bincount(relation, minlength=1)
        kept = np.bincount(relation, held, minlength=1)[count >= FEWEST] / count[count >= FEWEST]
        worst = float(kept.min()) if len(kept) else float("nan")
        median = float(np.median(size)) if len(size) else float("nan")
        return [
            *figures,
            Figure(_labelled(by_name["median"], label), median),
            Figure(_labelled(by_name["worst"], label), worst),
        ]


def _confidence(predictor: Predictor, facts: UncertainGraph) -> Floats:
    return np.asarray(predictor.confidence(facts.head, facts.relation, facts.tail), dtype=np.float64)


def _calibrated(seen: Floats, observed: Floats, predicted: Floats) -> Floats:
    """Return predictions by the rising step function that fits other predictions best."""
    from sklearn.isotonic import IsotonicRegression  # noqa: PLC0415 — loading it takes a second

    found: Floats = IsotonicRegression(out_of_bounds="clip").fit(seen, observed).predict(predicted)
    return found


def _labelled(metric: Metric, label: str) -> Metric:
    words = label.replace("_by_relation", " by relation").replace("_", " ")
    return replace(metric, name=f"{metric.name}_{label}", title=f"{metric.title} {words}")


def _named(sample: Sample, metrics: tuple[Metric, ...], label: str, bootstrap: Bootstrap) -> list[Figure]:
    """Return figures of a part, or of a kind, which their names and titles tell."""
    values, limits = sample.point(), sample.intervals(bootstrap)
    return [Figure(_labelled(each, label), values[each.name], limits.get(each.name)) for each in metrics]
