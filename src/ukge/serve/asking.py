"""Questions about facts: how likely, which tail or head, why, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ukge.serve import schema
from ukge.serve.base import Base, interval, predicted_facts, stated
from ukge.serve.deadlines import Deadline
from ukge.serve.opinion import COVERAGE, Asked
from ukge.serve.problems import invalid
from ukge.serve.ranking import Ranking, RankQuery


class Asking(Base):
    """Questions that the model, or the evidence, answers."""

    async def confidence(
        self, facts: Sequence[tuple[str, str, str]], coverage: float = COVERAGE
    ) -> list[schema.PredictedFact]:
        """Return the confidence of each fact, with its bounds where they are known."""
        if len(facts) > self.limits.facts:
            raise invalid([("body.facts", f"at most {self.limits.facts:,} facts, not {len(facts):,}")])
        snapshot = self.snapshot
        triples = [snapshot.triple(*fact) for fact in facts]
        return await self.do(lambda _: predicted_facts(snapshot, triples, coverage=coverage))

    async def rank(self, query: RankQuery) -> schema.RankResponse:
        """Return the most confident answers to a query."""
        self.check_size(query.k)
        snapshot = self.snapshot
        ranking = Ranking(snapshot, query)
        searcher = snapshot.exact if query.exact else snapshot.searcher
        found = await self.work.rank(searcher, ranking.wanted(), Deadline(self.limits.seconds))
        if ranking.judged_by_evidence:
            ranked = await self.do(lambda _: ranking.finish(found))
            bounds = await self.do(lambda _: snapshot.opinion.interval(ranked.facts, query.coverage))
        else:
            ranked = ranking.finish(found)
            bounds = snapshot.model.interval_of(np.array(ranked.confidence), query.coverage)
        names = snapshot.entities.decode(np.array(ranked.entity, dtype=np.int64)).to_pylist()
        answers = [
            schema.Answer(entity=name, confidence=value, observed=kept, interval=interval(bounds, row))
            for row, (name, value, kept) in enumerate(zip(names, ranked.confidence, ranked.stored, strict=True))
        ]
        return schema.RankResponse(
            head=query.head,
            relation=query.relation,
            tail=query.tail,
            opinion=snapshot.opinion.kind,
            search=schema.Search.model_validate(searcher.describe()),
            answers=answers,
        )

    async def explain(self, head: str, relation: str, tail: str) -> schema.ExplainResponse:
        """Return the confidence of a fact with its reasons."""
        snapshot = self.snapshot
        triple = snapshot.triple(head, relation, tail)
        if snapshot.opinion is snapshot.model:
            await self.found(snapshot.rulebook)
        told = await self.do(lambda deadline: snapshot.opinion.explain(triple, deadline))
        reasons = [
            schema.ReasonOut(
                kind=reason.kind,
                sentence=reason.sentence,
                contribution=reason.contribution,
                facts=[stated(snapshot, fact) for fact in reason.facts],
                rule=reason.rule,
            )
            for reason in told.reasons
        ]
        return schema.ExplainResponse(
            head=head,
            relation=relation,
            tail=tail,
            confidence=told.confidence,
            interval=None if told.interval is None else schema.Interval(low=told.interval[0], high=told.interval[1]),
            observed=snapshot.observed.confidence(*triple),
            opinion=snapshot.opinion.kind,
            base=told.base,
            reasons=reasons,
        )

    async def complete(
        self, relations: Sequence[str] = (), k: int = 20, min_confidence: float = 0.0, *, fitting: bool = True
    ) -> schema.CompleteResponse:
        """Return the most confident unseen facts of some relations, or of all."""
        self.check_size(k)
        snapshot = self.snapshot
        ids = tuple(dict.fromkeys(snapshot.relation(name) for name in relations)) or tuple(
            range(len(snapshot.relations))
        )
        found = await self.do(
            lambda deadline: snapshot.opinion.complete(Asked(ids, k, min_confidence, fitting), deadline)
        )
        triples = [(fact.head, fact.relation, fact.tail) for fact in found.facts]
        values = [fact.confidence for fact in found.facts]
        return schema.CompleteResponse(
            opinion=snapshot.opinion.kind,
            examined=found.examined,
            candidates=found.candidates,
            facts=await self.do(lambda _: predicted_facts(snapshot, triples, values)),
        )
