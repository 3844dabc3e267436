"""Reasons: why a fact has the confidence that the evidence gives it, as an exact sum."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ukge.evidence.features import GRAPH
from ukge.evidence.lookup import FactBatch
from ukge.evidence.reasons import OTHER, SMALL, Reason, in_order, subject_of, witness
from ukge.evidence.shap import contributions
from ukge.html.card import card

if TYPE_CHECKING:
    from ukge.evidence.evidence import Evidence
    from ukge.evidence.features import Features
    from ukge.evidence.regressor import Contributions
    from ukge.evidence.trees import Floats, Matrix
    from ukge.graph.given import Facts
    from ukge.graph.queries import Places
    from ukge.graph.vocabulary import Ids

BLOCK = 4096
"""Facts whose contributions are held at once."""

FIRST = ("rule", "repeat", "inverse", "pair", "analogue", "neighbours", "query", "inverse query")
"""Kinds of reasons that rest on facts, in the order in which they are told where none has a weight."""


@dataclass(frozen=True, repr=False)
class Explanation:
    """A confidence taken apart: `base` + the sum of the reasons' contributions is the confidence.

    `base` is what is said of a fact without any evidence, `observed` the confidence that the graph gives it (None
    if it does not hold it). Reasons that name facts come first, then the others; one of kind "other" takes what no
    other stands for. Where no evidence is fitted there is no base, and the reasons are what the graph holds that
    fits, without contributions.
    """

    fact: tuple[str, str, str]
    confidence: float
    interval: tuple[float, float] | None
    base: float | None
    reasons: tuple[Reason, ...]
    coverage: float = 0.9
    observed: float | None = None
    labels: tuple[str | None, str | None] = (None, None)
    """what people call head and tail, where that is not their name"""

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values; labels where there are any."""
        told = asdict(self)
        labels = dict(zip(("head_label", "tail_label"), told.pop("labels"), strict=True))
        told |= labels if any(labels.values()) else {}
        for reason, own in zip(told["reasons"], self.reasons, strict=True):
            reason["facts"] = [{k: v for k, v in fact._asdict().items() if k != "source"} for fact in own.facts]
        interval = None if self.interval is None else list(self.interval)
        return {**told, "fact": list(self.fact), "interval": interval, "reasons": list(told["reasons"])}

    def told_of(self, observed: float | None, labels: Sequence[str | None]) -> Explanation:
        """Return the same with the confidence that the graph gives the fact, and with what its ends are called."""
        return replace(self, observed=observed, labels=(labels[0], labels[1]))

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return the confidence and what the graph says of the fact, then every reason with its share."""
        lines = [(f"{moved:+.3f}" if moved is not None else "  —   ", sentence) for moved, sentence in self._shares()]
        return [*self._verdict(), *(f"{moved}  {sentence}" for moved, sentence in lines)]

    def __repr__(self) -> str:
        return f"Explanation({self._verdict()[0]} {len(self.reasons)} reasons)"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the reasons, each with its share as a bar."""
        return card(" ".join(self._verdict()), shares=self._shares())

    def _verdict(self) -> list[str]:
        within = ""
        if self.interval is not None:
            low, high = self.interval
            within = f", with {self.coverage:.0%} coverage between {low:.2f} and {high:.2f}"
        ends = (self.fact[0], self.labels[0]), (self.fact[2], self.labels[1])
        head, tail = (name if label is None else f"{label} [{name}]" for name, label in ends)
        told = f"({head}, {self.fact[1]}, {tail}): confidence {self.confidence:.2f}{within}."
        known = [] if self.observed is None else [f"The graph holds it with confidence {self.observed:.2f}."]
        return [told, *known]

    def _shares(self) -> list[tuple[float | None, str]]:
        shown = [each for each in self.reasons if each.contribution is None or abs(each.contribution) >= SMALL]
        base = [] if self.base is None else [(self.base, "Without any evidence.")]
        return [*base, *((each.contribution, each.sentence) for each in shown)]


def explain_all(
    evidence: Evidence,
    facts: Facts,
    *,
    coverage: float = 0.9,
    assume_holds: bool = False,
    count_itself: bool = False,
) -> Iterator[Explanation]:
    """Yield the explanation of each fact, in order; of many facts, only a block is worked on at once."""
    ids = evidence.ids(facts)
    rows = evidence.features.index.find(*ids)
    graph = evidence.known
    for begin, part, columns, taken, shares in _shared_out(evidence, ids, None if count_itself else rows, assume_holds):
        confidence = evidence.regressor.predict(columns, assume_holds=assume_holds)
        low, high = evidence.interval_of(columns, part.relation, coverage, assume_holds=assume_holds)
        for row, own in enumerate(shares):
            found = witness(evidence.features, part, row, columns).reasons(own)
            known = int(rows[begin + row])
            yield Explanation(
                fact=(
                    graph.entities[int(part.head[row])],
                    graph.relations[int(part.relation[row])],
                    graph.entities[int(part.tail[row])],
                ),
                confidence=float(confidence[row]),
                interval=(float(low[row]), float(high[row])),
                base=taken.base,
                reasons=_whole(found, float(confidence[row]) - taken.base),
                coverage=coverage,
                observed=float(evidence.features.index.triples.mean[known]) if known >= 0 else None,
            )


def explain_unfitted(
    features: Features,
    ids: tuple[Ids, Ids, Ids],
    confidence: float,
    interval: tuple[float, float] | None,
    coverage: float,
) -> Explanation:
    """Return what the graph holds that fits one fact, for the confidence of a model that nothing was fitted over."""
    graph = features.index.graph
    asked = FactBatch.of(*ids, features.index.find(*ids))
    found = witness(features, asked, 0, features.columns(*asked)).reasons({})
    kept = [replace(each, contribution=None) for each in found if each.facts]
    order = [kind for kind in FIRST if any(each.kind == kind for each in kept)]
    reasons = tuple(each for kind in order for each in kept if each.kind == kind)
    names = graph.entities[int(ids[0][0])], graph.relations[int(ids[1][0])], graph.entities[int(ids[2][0])]
    return Explanation(names, confidence, interval, None, reasons, coverage)


def top_reasons(
    evidence: Evidence, facts: Facts, *, assume_holds: bool = False, count_itself: bool = False
) -> list[Reason]:
    """Return for each fact the reason that is told first: the heaviest that names facts, if it counts for something."""
    ids = evidence.ids(facts)
    own = None if count_itself else evidence.features.index.find(*ids)
    return [
        witness(evidence.features, part, row, columns).top(own)
        for _, part, columns, _, shares in _shared_out(evidence, ids, own, assume_holds)
        for row, own in enumerate(shares)
    ]


def _shared_out(
    evidence: Evidence, ids: tuple[Ids, Ids, Ids], own: Places | None, assume_holds: bool
) -> Iterator[tuple[int, FactBatch, Matrix, Contributions, list[dict[str, float]]]]:
    """Yield facts block by block, with their evidence and what each subject of it did to each confidence."""
    asked = FactBatch.of(*ids, own)
    groups = [subject_of(name) for name in evidence.feature_names]
    subjects = sorted(set(groups))
    belongs = np.array([[group == subject for subject in subjects] for group in groups], dtype=np.float64)
    for begin in range(0, len(ids[0]), BLOCK):
        part = asked.block(slice(begin, begin + BLOCK))
        columns = evidence.features.columns(*part)
        taken = evidence.regressor.contributions(columns, evidence.feature_names, assume_holds=assume_holds)
        parts = _handed_on(evidence.features, columns, taken.parts)
        shares = [dict(zip(subjects, row, strict=True)) for row in (parts @ belongs).tolist()]
        yield begin, part, columns, taken, shares


def _handed_on(features: Features, columns: Matrix, parts: Floats) -> Floats:
    """Return contributions where those of what known facts taught are handed on to the columns which it was made of.

    That facts with such evidence have such a confidence is no reason, the evidence is one. Each column gets a share as
    large as the part it has in the expectation.
    """
    if features.expectation is None:
        return parts
    at = len(GRAPH)
    own = np.abs(contributions(features.expectation, columns[:, :at]))
    total = own.sum(axis=1, keepdims=True)
    shares = np.divide(own, total, out=np.zeros_like(own), where=total > 0)
    found = parts.copy()
    found[:, :at] += shares * parts[:, features.learnt].sum(axis=1, keepdims=True)
    found[:, features.learnt] *= total == 0
    return found


def _whole(reasons: list[Reason], moved: float) -> tuple[Reason, ...]:
    """Return the reasons in order; those that did nothing and rest on nothing give way to the remainder."""
    kept = [reason for reason in reasons if reason.facts or reason.weight >= SMALL]
    kept = in_order(kept)
    rest = moved - math.fsum(reason.contribution or 0.0 for reason in kept)
    if rest != 0.0 or not kept:
        kept.append(Reason(OTHER, "Everything else taken together.", rest))
    return tuple(kept)
