"""What the evidence of a run says of facts. All that the service knows of `ukge.evidence` stands in this file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from ukge.errors import RunError
from ukge.graph.queries import Queries
from ukge.serve.deadlines import Deadline
from ukge.serve.model_opinion import ModelOpinion
from ukge.serve.observed import Floats, Ids
from ukge.serve.opinion import COVERAGE, Asked, BoundsFrom, Completion, Doubt, Explanation, Reason, Stated, Triple

if TYPE_CHECKING:
    from ukge.evidence import Evidence
    from ukge.evidence.reasons import Reason as EvidenceReason

FOLDER = "evidence"
WIDER = 5
"""Unseen facts that the model proposes for each that the evidence keeps."""

BLOCK = 20_000


class EvidenceOpinion:
    """Calibrated confidences with bounds; the model proposes, the evidence judges.

    A fact of the graph is judged by the other facts: that it is known would be no reason to believe it.
    """

    kind: Literal["model", "evidence"] = "evidence"

    def __init__(self, evidence: Evidence, model: ModelOpinion) -> None:
        self._evidence = evidence
        self._model = model

    @classmethod
    def of(cls, run: Path, model: ModelOpinion) -> EvidenceOpinion | None:
        """Return the opinion of the evidence that a run keeps, None if it keeps none; of other names it is refused."""
        if not (run / FOLDER).is_dir():
            return None
        from ukge.evidence import Evidence  # noqa: PLC0415 — takes time to load, and most runs have none

        evidence = Evidence.load(run / FOLDER).check()
        if (evidence.entities, evidence.relations) != (model.entities, model.relations):
            raise RunError(
                f"{run / FOLDER} was made for another graph: its names are not those of the run",
                hint="Fit the evidence again, or remove it.",
            )
        return cls(evidence, model)

    @property
    def bounds(self) -> BoundsFrom:
        """What bounds are taken from."""
        return "evidence"

    def confidence(self, facts: Sequence[Triple]) -> Floats:
        """Return the evidence's confidence of each fact."""
        return self._predict(facts, assume_holds=False)

    def confidence_if_held(self, facts: Sequence[Triple]) -> Floats:
        """Return how confident a fact each is, taken to be one."""
        return self._predict(facts, assume_holds=True)

    def interval(self, facts: Sequence[Triple], coverage: float) -> tuple[Floats, Floats] | None:
        """Return the bounds of each confidence."""
        if not facts:
            return np.zeros(0), np.zeros(0)
        head, relation, tail = _columns(facts)
        own = self._evidence.own_facts(head, relation, tail)
        columns = self._evidence.evidence.columns(head, relation, tail, own)
        return self._evidence.interval_of(columns, relation, coverage)

    def proposed(self, given: int, relation: int, at_tail: bool, limit: int) -> Ids:
        """Return the answers for which rules and other relations of the pair speak most."""
        from ukge.evidence.candidates import linked_candidates  # noqa: PLC0415 — loaded with the evidence

        queries = Queries.of("tail" if at_tail else "head", given, relation)
        found = linked_candidates(self._evidence.evidence, queries, limit)[0]
        return np.asarray(found[found >= 0], dtype=np.int64)

    def explain(self, fact: Triple, deadline: Deadline) -> Explanation:
        """Return the evidence's own reasons with their contributions, which add up to the confidence."""
        from ukge.evidence.explain import explain  # noqa: PLC0415 — loaded with the evidence

        deadline.check()
        told = explain(self._evidence, *self._named(fact), coverage=COVERAGE, leave_out=True)
        return Explanation(
            told.confidence, told.interval, told.base, tuple(self._reason(each) for each in told.reasons)
        )

    def complete(self, asked: Asked, deadline: Deadline) -> Completion:
        """Return the unseen facts that the evidence holds likeliest among those that the model proposes."""
        wider = replace(asked, limit=WIDER * asked.limit, minimum=0.0)
        proposed = self._model.complete(wider, deadline)
        if not proposed.facts:
            return proposed
        values = self.confidence([(fact.head, fact.relation, fact.tail) for fact in proposed.facts])
        order = np.argsort(-values, kind="stable")[: asked.limit]
        kept = [(proposed.facts[row], float(values[row])) for row in order if values[row] >= asked.minimum]
        return replace(proposed, facts=tuple(replace(fact, confidence=value) for fact, value in kept))

    def doubtful(self, limit: int) -> list[Doubt]:
        """Return the observed facts whose stored confidence the other facts contradict most."""
        from ukge.evidence.doubt import doubt  # noqa: PLC0415 — loaded with the evidence

        entities, relations = self._evidence.entities.index, self._evidence.relations.index
        return [
            Doubt(entities[each.head], relations[each.relation], entities[each.tail], each.stored, each.expected)
            for each in doubt(self._evidence, k=limit)
        ]

    def _predict(self, facts: Sequence[Triple], *, assume_holds: bool) -> Floats:
        head, relation, tail = _columns(facts)
        predict, own = self._evidence.predict_ids, self._evidence.own_facts(head, relation, tail)
        parts = [
            np.asarray(
                predict(head[rows], relation[rows], tail[rows], assume_holds=assume_holds, own=own[rows]),
                dtype=np.float64,
            )
            for rows in _blocks(len(head))
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    def _named(self, fact: Triple) -> tuple[str, str, str]:
        entities, relations = self._evidence.entities, self._evidence.relations
        return entities[fact[0]], relations[fact[1]], entities[fact[2]]

    def _reason(self, told: EvidenceReason) -> Reason:
        entities, relations = self._evidence.entities.index, self._evidence.relations.index
        facts = tuple(
            Stated(entities[fact.head], relations[fact.relation], entities[fact.tail], fact.confidence)
            for fact in told.facts
        )
        return Reason(told.kind, told.sentence, told.contribution, facts, told.rule)


def _columns(facts: Sequence[Triple]) -> tuple[npt.NDArray[np.int32], ...]:
    head, relation, tail = np.array(facts, dtype=np.int32).reshape(-1, 3).T
    return head, relation, tail


def _blocks(count: int) -> list[slice]:
    return [slice(start, start + BLOCK) for start in range(0, count, BLOCK)]
