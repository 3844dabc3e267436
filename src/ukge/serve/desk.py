"""Where people say of facts whether they hold: what to look at next, what was said, and keeping it in the run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ukge.asking.review import ToReview, to_review
from ukge.graph.fact import Fact
from ukge.graph.index import FactIndex
from ukge.runs.labels import Label, Triple, Word, Words, all_words, keep_labels, labelled_table, last_words
from ukge.serve import schema
from ukge.serve.problems import Problem, invalid
from ukge.serve.service import Service
from ukge.serve.snapshot import Snapshot


class Said(NamedTuple):
    """What one person said, beside all: facts spoken of, facts that this person was unsure of, facts decided."""

    yours: int
    unsure: int
    labelled: int


class Desk:
    """Asks the run that is served now, and keeps labels in it. Who may say something is for the guard to judge."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def next_for(self, by: str, limit: int) -> schema.ReviewResponse:
        """Return what `by` should look at next."""
        snapshot = self._service.snapshot
        facts, counted = await self.pile(by.strip(), self._allowed(limit))
        shown = [
            schema.ReviewFact(
                head=each.head,
                relation=each.relation,
                tail=each.tail,
                head_label=snapshot.labels.get(each.head),
                tail_label=snapshot.labels.get(each.tail),
                stored=each.stored,
                chance=each.chance,
                source=each.source,
                why=list(each.why),
            )
            for each in facts
        ]
        return schema.ReviewResponse(yours=counted.yours, labelled=counted.labelled, facts=shown)

    async def pile(self, by: str, limit: int, without: Sequence[Triple] = ()) -> tuple[list[ToReview], Said]:
        """Return the facts that `by` should look at next but for some, and what was said by now."""
        snapshot = self._service.snapshot
        holding = await self._service.found(snapshot.holding)

        def chosen() -> tuple[list[ToReview], Said]:
            said = _said(snapshot)
            index = snapshot.predictor.features().index
            return to_review(holding, index, said, by, limit, without), _counted(said, by)

        return await self._service.do(lambda _: chosen())

    async def counted(self, by: str) -> Said:
        """Return how much was said by now."""
        snapshot = self._service.snapshot
        return await self._service.do(lambda _: _counted(_said(snapshot), by))

    async def keep(self, by: str, words: Sequence[tuple[Triple, Word]]) -> schema.LabelsKept:
        """Keep what somebody says of observed facts; all of it, or nothing and an error."""
        snapshot, most = self._service.snapshot, self._service.limits.facts
        if len(words) > most:
            raise invalid([("body.labels", f"at most {most:,} labels, not {len(words):,}")])
        ids = snapshot.ids([fact for fact, _ in words])
        unknown = [fact for (fact, _), known in zip(words, snapshot.known.known(*ids), strict=True) if not known]
        if unknown:
            fact = " — ".join(each[:60] for each in unknown[0])
            raise Problem(404, "unknown-fact", f"The graph has no fact {fact!r}: labels are for facts that it has.")
        labels = [Label.now(fact, word, by) for fact, word in words]

        def kept() -> int:
            keep_labels(snapshot.run.path, labels)
            return _counted(_said(snapshot), by).labelled

        return schema.LabelsKept(kept=len(labels), labelled=await self._service.do(lambda _: kept()))

    async def labelled(self, limit: int, offset: int) -> schema.LabelsResponse:
        """Return the facts that people decided, in the order in which they were first spoken of."""
        snapshot, most = self._service.snapshot, self._allowed(limit)

        def told() -> schema.LabelsResponse:
            table = labelled_table(_said(snapshot), snapshot.known)
            rows = table.slice(offset, most).to_pylist()
            facts = [schema.LabelledFact(**row) for row in rows]
            return schema.LabelsResponse(total=table.num_rows, offset=offset, facts=facts)

        return await self._service.do(lambda _: told())

    async def stated(self, fact: Triple) -> list[Fact]:
        """Return the rows of a fact, each with its source and the confidence that the source gives it."""
        snapshot = self._service.snapshot
        ids = snapshot.ids([fact])
        return await self._service.do(lambda _: _rows(snapshot.known, ids))

    def _allowed(self, limit: int) -> int:
        if limit > self._service.limits.k:
            raise invalid([("query.limit", f"at most {self._service.limits.k:,}, not {limit:,}")])
        return limit


def _said(snapshot: Snapshot) -> Words:
    return last_words(all_words(snapshot.run.path))


def _counted(said: Words, by: str) -> Said:
    own = [words[by].word for words in said.values() if by in words]
    decided = sum(any(each.word in ("yes", "no") for each in words.values()) for words in said.values())
    return Said(len(own), own.count("unsure"), decided)


def _rows(known: FactIndex, ids: tuple[object, object, object]) -> list[Fact]:
    place = int(known.find(*ids)[0])  # type: ignore[arg-type]
    if place < 0:
        return []
    start, end = known.triples.start[place : place + 2]
    return [known.graph[int(row)] for row in known.triples.rows[start:end]]
