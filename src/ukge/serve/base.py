"""What every kind of question shares: the run that is served now, the threads, the limits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from ukge.serve import schema
from ukge.serve.deadlines import Deadline, Later, NotReadyError
from ukge.serve.live import Live
from ukge.serve.observed import Facts
from ukge.serve.opinion import COVERAGE, Floats, Stated, Triple
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

    async def found(self, later: Later[T]) -> T:
        """Return what is prepared in the background; whoever waits for it keeps no thread from others."""
        later.start()
        deadline = Deadline(PATIENCE * self.limits.seconds)
        while not later.ready:
            if deadline.left == 0:
                raise NotReadyError(later.what)
            await asyncio.sleep(min(0.05, deadline.left))
        return later.get()

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


def interval(bounds: tuple[Floats, Floats] | None, row: int) -> schema.Interval | None:
    """Return one of many intervals, None where there are none."""
    return None if bounds is None else schema.Interval(low=float(bounds[0][row]), high=float(bounds[1][row]))


def stated(snapshot: Snapshot, fact: Stated) -> schema.ObservedFact:
    """Return a fact by name."""
    return schema.ObservedFact(
        head=snapshot.entities[fact.head],
        relation=snapshot.relations[fact.relation],
        tail=snapshot.entities[fact.tail],
        confidence=fact.confidence,
    )


def observed_facts(snapshot: Snapshot, facts: Facts) -> list[schema.ObservedFact]:
    """Return facts by name."""
    columns = (
        snapshot.entities.decode(facts.head).to_pylist(),
        snapshot.relations.decode(facts.relation).to_pylist(),
        snapshot.entities.decode(facts.tail).to_pylist(),
        facts.confidence.tolist(),
    )
    return [
        schema.ObservedFact(head=head, relation=relation, tail=tail, confidence=confidence)
        for head, relation, tail, confidence in zip(*columns, strict=True)
    ]


def predicted_facts(
    snapshot: Snapshot, triples: Sequence[Triple], values: Sequence[float] | None = None, coverage: float = COVERAGE
) -> list[schema.PredictedFact]:
    """Return facts by name with their predicted confidences (or `values`), their bounds and the stored confidences."""
    if not triples:
        return []
    confidences = snapshot.opinion.confidence(triples).tolist() if values is None else values
    bounds = snapshot.opinion.interval(triples, coverage)
    return [
        schema.PredictedFact(
            head=snapshot.entities[triple[0]],
            relation=snapshot.relations[triple[1]],
            tail=snapshot.entities[triple[2]],
            confidence=confidence,
            interval=interval(bounds, row),
            observed=snapshot.observed.confidence(*triple),
        )
        for row, (triple, confidence) in enumerate(zip(triples, confidences, strict=True))
    ]
