"""Questions about facts: how likely, which tail or head, why, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence

from ukge.asking.complete import complete
from ukge.asking.judges import COVERAGE
from ukge.serve import schema
from ukge.serve.base import Base, interval, predicted_facts
from ukge.serve.deadlines import Deadline
from ukge.serve.problems import invalid
from ukge.serve.rank_query import RankQuery, ranking_of

SPARE_SECONDS = 0.5
"""Time kept back for the answer itself."""


class Asking(Base):
    """Questions that the predictor answers."""

    async def confidence(
        self, facts: Sequence[tuple[str, str, str]], coverage: float = COVERAGE
    ) -> list[schema.PredictedFact]:
        """Return the confidence of each fact, with its bounds where they are known."""
        if len(facts) > self.limits.facts:
            raise invalid([("body.facts", f"at most {self.limits.facts:,} facts, not {len(facts):,}")])
        snapshot = self.snapshot
        ids = snapshot.ids(facts)
        return await self.do(lambda _: predicted_facts(snapshot, ids, coverage))

    async def rank(self, query: RankQuery) -> schema.RankResponse:
        """Return the most confident answers to a query."""
        self.check_size(query.k)
        snapshot = self.snapshot
        ranking = ranking_of(snapshot, query)
        searcher = snapshot.exact if query.exact else snapshot.searcher
        found = await self.work.rank(searcher, ranking.wanted(), Deadline(self.limits.seconds))
        answers = [
            schema.Answer(
                entity=each.entity,
                confidence=each.confidence,
                observed=each.stored,
                interval=interval(each.low, each.high),
            )
            for each in await self.do(lambda _: ranking.finish(found))
        ]
        return schema.RankResponse(
            head=query.head,
            relation=query.relation,
            tail=query.tail,
            opinion=snapshot.predictor.judge.kind,
            search=schema.Search.model_validate(searcher.describe()),
            answers=answers,
        )

    async def explain(self, head: str, relation: str, tail: str) -> schema.ExplainResponse:
        """Return the confidence of a fact with its reasons."""
        snapshot = self.snapshot
        snapshot.ids([(head, relation, tail)])
        await self.found(snapshot.reasons)
        told = await self.do(lambda _: snapshot.predictor.explain(head, relation, tail))
        reasons = [
            schema.ReasonOut(
                kind=reason.kind,
                sentence=reason.sentence,
                contribution=reason.contribution,
                facts=[
                    schema.ObservedFact(
                        head=fact.head, relation=fact.relation, tail=fact.tail, confidence=fact.confidence
                    )
                    for fact in reason.facts
                ],
                rule=reason.rule,
            )
            for reason in told.reasons
        ]
        return schema.ExplainResponse(
            head=head,
            relation=relation,
            tail=tail,
            confidence=told.confidence,
            interval=None if told.interval is None else interval(*told.interval),
            observed=told.observed,
            opinion=snapshot.predictor.judge.kind,
            base=told.base,
            reasons=reasons,
        )

    async def complete(
        self, relations: Sequence[str], k: int, min_confidence: float = 0.0, *, fitting: bool = True
    ) -> schema.CompleteResponse:
        """Return the most confident unseen facts, of some relations or of all; those found by then if time runs out."""
        self.check_size(k)
        snapshot = self.snapshot
        for name in relations:
            snapshot.relation(name)
        await self.found(snapshot.reasons)
        found = await self.do(
            lambda deadline: complete(
                snapshot.predictor,
                relations=list(relations) or None,
                min_confidence=min_confidence,
                k=k,
                typed=fitting,
                enough=lambda: deadline.left < SPARE_SECONDS,
            )
        )
        ids = found.facts.head, found.facts.relation, found.facts.tail
        return schema.CompleteResponse(
            opinion=snapshot.predictor.judge.kind,
            examined=found.share,
            facts=await self.do(lambda _: predicted_facts(snapshot, ids)),
        )
