"""What every kind of question shares: the run that is served now, the threads, the limits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from ukge.asking.judges import COVERAGE
from ukge.graph.fact import Fact, FactArrays
from ukge.graph.vocabulary import Ids
from ukge.serve import schema
from ukge.serve.deadlines import Deadline, Lazy, NotReadyError
from ukge.serve.live import Live
from ukge.serve.problems import invalid
from ukge.serve.settings import Limits
from ukge.serve.snapshot import Snapshot, UnknownNameError
from ukge.serve.work import Work

T = TypeVar("T")

NEAR_WHILE_WAITING = 16

PATIENCE = 0.5
"""Share of a request's time that it may wait for what is being prepared."""


class Base:
    """Answers questions within the limits. An unknown name is an `UnknownNameError`, a wrong request a `Problem`."""

    def __init__(self, live: Live, work: Work, limits: Limits) -> None:
        self.live, self.work, self.limits = live, work, limits

    @property
    def snapshot(self) -> Snapshot:
        """The run that is served now."""
        return self.live.current

    async def do(self, work: Callable[[Deadline], T]) -> T:
        """Return what `work` returns, done in a thread, before the time limit."""
        deadline = Deadline(self.limits.seconds)
        return await self.work.do(lambda: work(deadline))

    async def found(self, lazy: Lazy[T]) -> T:
        """Return what is prepared in the background; whoever waits for it keeps no thread from others."""
        lazy.start()
        deadline = Deadline(PATIENCE * self.limits.seconds)
        while not lazy.ready:
            if deadline.left == 0:
                raise NotReadyError(lazy.what)
            await asyncio.sleep(min(0.05, deadline.left))
        return lazy.get()

    async def near(self, unknown: UnknownNameError) -> list[str]:
        """Return names that look like an unknown one; none while others wait, for whom there is more to do."""
        snapshot = self.snapshot
        if self.work.waiting > NEAR_WHILE_WAITING:
            return []
        return await self.do(lambda _: snapshot.near(unknown))

    def check_size(self, asked: int, where: str = "query.k") -> None:
        """Refuse to give more at once than allowed."""
        if asked > self.limits.k:
            raise invalid([(where, f"at most {self.limits.k:,}, not {asked:,}")])


def interval(low: float | None, high: float | None) -> schema.Interval | None:
    """Return bounds, None where there are none."""
    if low is None or high is None or np.isnan(low):
        return None
    return schema.Interval(low=float(low), high=float(high))


def observed_fact(fact: Fact) -> schema.ObservedFact:
    """Return a fact of the graph."""
    return schema.ObservedFact(head=fact.head, relation=fact.relation, tail=fact.tail, confidence=fact.confidence)


def observed_facts(snapshot: Snapshot, facts: FactArrays) -> list[schema.ObservedFact]:
    """Return facts by name."""
    columns = (
        snapshot.entities.decode(facts.head).to_pylist(),
        snapshot.relations.decode(facts.relation).to_pylist(),
        snapshot.entities.decode(facts.tail).to_pylist(),
        facts.confidence.tolist(),
    )
    return [observed_fact(Fact(*row)) for row in zip(*columns, strict=True)]


def predicted_facts(
    snapshot: Snapshot, ids: tuple[Ids, Ids, Ids], coverage: float = COVERAGE
) -> list[schema.PredictedFact]:
    """Return facts by name with their predicted confidences, their bounds and the stored confidences."""
    if len(ids[0]) == 0:
        return []
    judged = snapshot.predictor.judge.judge(*ids, coverage)
    stored = snapshot.known.stored(*ids)
    named = observed_facts(snapshot, FactArrays(*ids, judged.confidence))
    return [
        schema.PredictedFact(
            head=fact.head,
            relation=fact.relation,
            tail=fact.tail,
            confidence=fact.confidence,
            interval=interval(low, high),
            observed=None if np.isnan(held) else float(held),
        )
        for fact, low, high, held in zip(named, judged.low, judged.high, stored, strict=True)
    ]
