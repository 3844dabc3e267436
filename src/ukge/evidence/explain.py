"""Reasons: why a fact has the confidence that the evidence gives it, as an exact sum."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ukge.evidence.batch import FactBatch
from ukge.evidence.reasons import OTHER, Reason, subject_of, witness

if TYPE_CHECKING:
    from ukge.evidence.evidence import Evidence
    from ukge.evidence.head import Contributions
    from ukge.evidence.trees import Matrix
    from ukge.graph.given import Facts
    from ukge.graph.queries import Places
    from ukge.graph.vocabulary import Ids

__all__ = ["Explanation", "Reason", "explain", "explain_all", "top_reasons"]

BLOCK = 4096
"""Facts whose contributions are held at once."""

SMALL = 5e-4
"""A contribution that two printed digits would show as nothing."""


@dataclass(frozen=True, repr=False)
class Explanation:
    """A confidence taken apart: `base` + the sum of the reasons' contributions is the confidence.

    `base` is what is said of a fact without any evidence, `observed` the confidence that the known facts give it (None
    if they do not hold it). Reasons come by falling weight; one of kind "other" takes what no other stands for.
    """

    fact: tuple[str, str, str]
    confidence: float
    interval: tuple[float, float]
    base: float
    reasons: tuple[Reason, ...]
    coverage: float = 0.9
    observed: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain values."""
        told = asdict(self)
        for reason, own in zip(told["reasons"], self.reasons, strict=True):
            reason["facts"] = [{k: v for k, v in fact._asdict().items() if k != "source"} for fact in own.facts]
        return {**told, "fact": list(self.fact), "interval": list(self.interval), "reasons": list(told["reasons"])}

    def __str__(self) -> str:
        return "\n".join([*self._verdict(), *(f"{moved:+.3f}  {sentence}" for moved, sentence in self._shares())])

    def __repr__(self) -> str:
        return f"Explanation({self._verdict()[0]} {len(self.reasons)} reasons)"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the reasons, each with its share as a bar."""
        from ukge.graph.notebook import card, share_table  # noqa: PLC0415 — for notebooks

        return card(" ".join(self._verdict()), share_table(self._shares()))

    def _verdict(self) -> list[str]:
        low, high = self.interval
        told = (
            f"({', '.join(self.fact)}): confidence {self.confidence:.2f}, with {self.coverage:.0%} coverage between "
            f"{low:.2f} and {high:.2f}."
        )
        known = [] if self.observed is None else [f"The known facts hold it with confidence {self.observed:.2f}."]
        return [told, *known]

    def _shares(self) -> list[tuple[float, str]]:
        shown = [reason for reason in self.reasons if abs(reason.contribution) >= SMALL]
        return [(self.base, "Without any evidence."), *((each.contribution, each.sentence) for each in shown)]


def explain(
    evidence: Evidence,
    head: str,
    relation: str,
    tail: str,
    *,
    coverage: float = 0.9,
    assume_holds: bool = False,
    leave_out: bool = False,
) -> Explanation:
    """Return why a fact, by name, has its confidence; the readings are those of `Evidence.predict`."""
    (found,) = explain_all(
        evidence, [(head, relation, tail)], coverage=coverage, assume_holds=assume_holds, leave_out=leave_out
    )
    return found


def explain_all(
    evidence: Evidence,
    facts: Facts,
    *,
    coverage: float = 0.9,
    assume_holds: bool = False,
    leave_out: bool = False,
) -> Iterator[Explanation]:
    """Yield the explanation of each fact, in order; of many facts, only a block is worked on at once."""
    ids = evidence.ids(facts)
    rows = evidence.own_facts(*ids)
    graph = evidence.known
    for begin, part, columns, taken, shares in _shared_out(evidence, ids, rows if leave_out else None, assume_holds):
        confidence = evidence.head.predict(columns, assume_holds=assume_holds)
        low, high = evidence.interval_of(columns, part.relation, coverage, assume_holds=assume_holds)
        for row, own in enumerate(shares):
            found = witness(evidence.evidence, part, row, columns).reasons(own)
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
                observed=float(evidence.evidence.index.triples.mean[known]) if known >= 0 else None,
            )


def top_reasons(evidence: Evidence, facts: Facts, *, assume_holds: bool = False) -> list[Reason]:
    """Return for each fact the reason that moved its confidence most."""
    return [
        witness(evidence.evidence, part, row, columns).top(own)
        for _, part, columns, _, shares in _shared_out(evidence, evidence.ids(facts), None, assume_holds)
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
        columns = evidence.evidence.columns(*part)
        taken = evidence.head.contributions(columns, assume_holds=assume_holds)
        shares = [dict(zip(subjects, row, strict=True)) for row in (taken.parts @ belongs).tolist()]
        yield begin, part, columns, taken, shares


def _whole(reasons: list[Reason], moved: float) -> tuple[Reason, ...]:
    """Return the reasons by falling weight; those that did nothing and rest on nothing give way to the remainder."""
    kept = [reason for reason in reasons if reason.facts or abs(reason.contribution) >= SMALL]
    kept.sort(key=lambda reason: -abs(reason.contribution))
    rest = moved - math.fsum(reason.contribution for reason in kept)
    if rest != 0.0 or not kept:
        kept.append(Reason(OTHER, "Everything else taken together.", rest))
    return tuple(kept)
