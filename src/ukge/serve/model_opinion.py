"""What the model alone says of facts, with the reasons that the graph around them gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import numpy as np

from ukge.graph.vocabulary import Vocabulary
from ukge.serve.bounds import ErrorBounds
from ukge.serve.completion import complete
from ukge.serve.deadlines import Deadline
from ukge.serve.grounding import GroundBody, Grounder
from ukge.serve.names import label
from ukge.serve.observed import Facts, Floats, Ids, Observed
from ukge.serve.opinion import COVERAGE, Asked, BoundsFrom, Completion, Doubt, Explanation, Reason, Stated, Triple
from ukge.serve.rulebook import Rulebook
from ukge.serve.weights import Weights

RULES_SHOWN = 5
ANALOGUES_SHOWN = 3
LEAST_SIMILAR = 0.2
"""Cosine below which an entity is no analogue."""


class ModelOpinion:
    """Confidences of an embedding; reasons are what the graph holds that fits: rules, the same pair, analogues."""

    kind: Literal["model", "evidence"] = "model"

    def __init__(
        self,
        weights: Weights,
        observed: Observed,
        entities: Vocabulary,
        relations: Vocabulary,
        rulebook: Callable[[Deadline], Rulebook],
        bounds: Callable[[], ErrorBounds | None],
    ) -> None:
        self._weights = weights
        self._observed = observed
        self.entities = entities
        self.relations = relations
        self._rulebook = rulebook
        self._bounds = bounds
        self._grounder = Grounder(observed, relations)

    @property
    def bounds(self) -> BoundsFrom:
        """What bounds are taken from."""
        return "nothing" if self._bounds() is None else "validation"

    def confidence(self, facts: Sequence[Triple]) -> Floats:
        """Return the model's confidence of each fact."""
        head, relation, tail = np.array(facts, dtype=np.int64).reshape(-1, 3).T
        return self._weights.confidence(head, relation, tail)

    def confidence_if_held(self, facts: Sequence[Triple]) -> Floats:
        """Return the same: a model has one reading."""
        return self.confidence(facts)

    def interval(self, facts: Sequence[Triple], coverage: float) -> tuple[Floats, Floats] | None:
        """Return bounds as wide as the model's errors on validation facts and negative links."""
        return self.interval_of(self.confidence(facts), coverage)

    def interval_of(self, predicted: Floats, coverage: float) -> tuple[Floats, Floats] | None:
        """Return the bounds of confidences that are at hand."""
        bounds = self._bounds()
        return None if bounds is None else bounds.interval(predicted, coverage)

    def proposed(self, given: int, relation: int, at_tail: bool, limit: int) -> Ids:  # noqa: ARG002
        """Return nobody: the search is the model's own."""
        return np.zeros(0, dtype=np.int64)

    def complete(self, asked: Asked, deadline: Deadline) -> Completion:
        """Return the unseen facts of the highest confidence."""
        return complete(self._weights, self._observed, asked, deadline)

    def doubtful(self, limit: int) -> list[Doubt]:
        """Return the observed facts with the largest gap between stored and predicted confidence."""
        facts = self._observed.all()
        predicted = self._weights.confidence(*facts[:3])
        order = np.argsort(-np.abs(predicted - facts.confidence), kind="stable")[:limit]
        rows = zip(*(column[order].tolist() for column in (*facts, predicted)), strict=True)
        return [Doubt(*row) for row in rows]

    def explain(self, fact: Triple, deadline: Deadline) -> Explanation:
        """Return the model's confidence, and what the graph holds that speaks for or against the fact."""
        reasons = [*self._stored(fact), *self._rules(fact, deadline), *self._pair(fact), *self._analogues(fact)]
        bounds = self.interval([fact], COVERAGE)
        interval = None if bounds is None else (float(bounds[0][0]), float(bounds[1][0]))
        return Explanation(float(self.confidence([fact])[0]), interval, None, tuple(reasons))

    def _stored(self, fact: Triple) -> Iterator[Reason]:
        stored = self._observed.confidence(*fact)
        if stored is not None:
            sentence = f"The graph holds this fact with confidence {stored:.2f}."
            yield Reason("observed", sentence, facts=(Stated(*fact, stored),))

    def _rules(self, fact: Triple, deadline: Deadline) -> Iterator[Reason]:
        book = self._rulebook(deadline)
        bodies = self._grounder.truest(book.about(self.relations[fact[1]]), fact, deadline)
        bodies.sort(key=lambda body: -body.truth * body.rule.weight)
        for body in bodies[:RULES_SHOWN]:
            yield self._rule_reason(body, book.hit_ratio(body.rule))

    def _rule_reason(self, body: GroundBody, hit_ratio: float) -> Reason:
        facts = tuple(Stated(*triple, value) for triple, value in zip(body.facts, body.confidences, strict=True))
        told = " and ".join(self._told(each) for each in facts)
        also = f" So do {body.bodies - 1:,} other bodies of the rule." if body.bodies > 1 else ""
        verb = "imply" if len(facts) > 1 else "implies"
        sentence = f"{told} {verb} it by a rule that is right in {hit_ratio:.0%} of its conclusions.{also}"
        return Reason("rule", sentence[0].upper() + sentence[1:], facts=facts, rule=str(body.rule))

    def _pair(self, fact: Triple) -> Iterator[Reason]:
        head, relation, tail = fact
        same, inverse = self._observed.between(head, tail), self._observed.between(tail, head)
        for facts, what in ((same.take(same.relation != relation), "pair"), (inverse, "inverse")):
            stated = _strongest(facts, RULES_SHOWN)
            if stated:
                also = "also" if what == "pair" else "the other way round"
                told = "; ".join(self._told(each) for each in stated)
                yield Reason(what, f"The two are {also} related: {told}.", facts=stated)

    def _analogues(self, fact: Triple) -> Iterator[Reason]:
        head, relation, tail = fact
        for asked, answers, at_tail in (
            (tail, self._observed.tails(head, relation), True),
            (head, self._observed.heads(relation, tail), False),
        ):
            others = answers.entity != asked
            entity, confidence = answers.entity[others], answers.confidence[others]
            if len(entity) == 0:
                continue
            similar = self._weights.similar(asked, entity)
            order = np.argsort(-similar, kind="stable")[:ANALOGUES_SHOWN]
            order = order[similar[order] >= LEAST_SIMILAR]
            if len(order) == 0:
                continue
            stated = tuple(
                Stated(head, relation, other, value) if at_tail else Stated(other, relation, tail, value)
                for other, value in zip(entity[order].tolist(), confidence[order].tolist(), strict=True)
            )
            alike = ", ".join(
                f"{label(self.entities[other])} ({likeness:.0%} alike)"
                for other, likeness in zip(entity[order].tolist(), similar[order].tolist(), strict=True)
            )
            sentence = (
                f"Entities that the model holds to be like {label(self.entities[asked])} stand here too: {alike}."
            )
            yield Reason("analogue", sentence, facts=stated)

    def _told(self, fact: Stated) -> str:
        head, tail = label(self.entities[fact.head]), label(self.entities[fact.tail])
        return f"{head} — {label(self.relations[fact.relation])} — {tail} ({fact.confidence:.2f})"


def _strongest(facts: Facts, limit: int) -> tuple[Stated, ...]:
    order = np.argsort(-facts.confidence, kind="stable")[:limit]
    return tuple(Stated(*row) for row in zip(*(column[order].tolist() for column in facts), strict=True))
