"""All that can be asked, by name, of the run that is served now. The API and the explorer both ask here.

Confidences, rankings, reasons and completions are the predictor's; here are names, limits, threads, and what goes over
the wire.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc

from ukge._version import __version__
from ukge.asking.complete import Completion, complete
from ukge.asking.drift import refresh_due
from ukge.asking.naming import Kind
from ukge.asking.rank import Query, Ranking
from ukge.errors import InUseError, RunError
from ukge.evidence.doubt import Doubt, Way
from ukge.evidence.doubt_sources import doubt_by_source
from ukge.evidence.explain import top_reasons
from ukge.evidence.holding import LikelyFalse
from ukge.graph.fact import FactArrays
from ukge.graph.nodes import TYPES
from ukge.graph.queries import Places, Side
from ukge.graph.vocabulary import Ids
from ukge.pipeline import add
from ukge.serve import schema
from ukge.serve.names import Match, label
from ukge.serve.problems import NotReadyError, Problem, invalid
from ukge.serve.rulebook import Rulebook
from ukge.serve.settings import Limits
from ukge.serve.snapshot import Live, Snapshot, UnknownNameError
from ukge.serve.work import Deadline, Lazy, Work

T = TypeVar("T")

NEAR_WHILE_WAITING = 16

COUNTS = ("number", "facts", "updated", "repeated", "held_out", "entities", "relations")
"""What is told of an addition."""

PATIENCE = 0.5
"""Share of a request's time that it may wait for what is being prepared."""

SPARE_SECONDS = 0.5
"""Time of a completion that is kept back for the answer itself."""


class Service:
    """Answers questions within the limits. An unknown name is an `UnknownNameError`, a wrong request a `Problem`."""

    def __init__(self, live: Live, work: Work, limits: Limits) -> None:
        self.live, self.work, self.limits = live, work, limits
        self._adding = asyncio.Lock()

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

    async def confidence(
        self, facts: Sequence[tuple[str, str, str]], coverage: float = schema.COVERAGE
    ) -> list[schema.PredictedFact]:
        """Return the confidence of each fact, with its bounds where they are known."""
        if len(facts) > self.limits.facts:
            raise invalid([("body.facts", f"at most {self.limits.facts:,} facts, not {len(facts):,}")])
        snapshot = self.snapshot
        ids = snapshot.ids(facts)
        return await self.do(lambda _: _predicted(snapshot, ids, coverage))

    async def add(self, asked: schema.AddRequest, who: str) -> schema.AdditionResponse:
        """Take facts into the run; they are served as soon as they are prepared, while requests go on."""
        if len(asked.facts) > self.limits.facts:
            raise invalid([("body.facts", f"at most {self.limits.facts:,} facts, not {len(asked.facts):,}")])
        facts = [(each.head, each.relation, each.tail, each.confidence) for each in asked.facts]
        path = self.live.path
        async with self._adding:
            try:
                made = await self.do(lambda _: add(path, facts, source=asked.source, who=who, id=asked.id))
            except InUseError:
                detail = "The run is being written by somebody else. Ask again soon."
                raise Problem(503, "busy", detail, headers={"retry-after": "1"}) from None
            except RunError as error:
                raise Problem(503, "not-taken-in", error.what, headers={"retry-after": "30"}) from None
        if made.number:
            self.live.renew_soon()
        counts = {name: getattr(made, name) for name in COUNTS}
        due = await self.do(lambda _: refresh_due(path))
        return schema.AdditionResponse(**counts, refresh=due)

    async def rank(self, query: schema.RankQuery) -> schema.RankResponse:
        """Return the most confident answers to a query."""
        snapshot = self._asked(query.k, "query.k")
        ranking = _ranking(snapshot, query)
        searcher = snapshot.exact if query.exact else snapshot.searcher
        found = await self.work.rank(searcher, ranking.wanted(), Deadline(self.limits.seconds))
        ranked = await self.do(lambda _: ranking.finish(found))
        given = snapshot.entities[ranking.query.given]
        ends = [(given, each.entity) if query.head is not None else (each.entity, given) for each in ranked]
        facts = [(head, query.relation, tail) for head, tail in ends]
        answers = [
            schema.Answer(
                entity=each.entity,
                label=each.label,
                confidence=each.confidence,
                interval=schema.Interval.of(each.low, each.high),
                observed=each.stored,
                source=source,
            )
            for each, source in zip(ranked, snapshot.sources(facts), strict=True)
        ]
        return schema.RankResponse(
            head=given if query.head is not None else None,
            relation=query.relation,
            tail=given if query.head is None else None,
            opinion=snapshot.predictor.judged_by,
            search=schema.Search.model_validate(searcher.describe()),
            answers=answers,
        )

    async def explain(self, head: str, relation: str, tail: str) -> schema.ExplainResponse:
        """Return the confidence of a fact with its reasons."""
        snapshot = self.snapshot
        ids = snapshot.ids([(head, relation, tail)])
        head, tail = (snapshot.entities[int(ids[end][0])] for end in (0, 2))
        await self.found(snapshot.reasons)
        told = await self.do(lambda _: snapshot.predictor.explain(head, relation, tail))
        return schema.ExplainResponse(
            head=head,
            relation=relation,
            tail=tail,
            head_label=told.labels[0],
            tail_label=told.labels[1],
            confidence=told.confidence,
            interval=None if told.interval is None else schema.Interval.of(*told.interval),
            observed=told.observed,
            source=snapshot.sources([(head, relation, tail)])[0],
            opinion=snapshot.predictor.judged_by,
            base=told.base,
            reasons=[schema.ReasonOut.model_validate(each, from_attributes=True) for each in told.reasons],
        )

    async def reasons(self, facts: Sequence[tuple[str, str, str]]) -> list[str | None]:
        """Return the reason of each fact that is told first; None for all where no evidence is fitted."""
        snapshot = self.snapshot
        evidence = snapshot.predictor.evidence
        if evidence is None or not facts:
            return [None] * len(facts)
        await self.found(snapshot.reasons)
        return [each.sentence for each in await self.do(lambda _: top_reasons(evidence, list(facts)))]

    async def complete(
        self,
        relations: Sequence[str],
        k: int,
        min_confidence: float = 0.0,
        *,
        fitting: bool = True,
        types: tuple[str | None, str | None] = (None, None),
    ) -> schema.CompleteResponse:
        """Return the most confident unseen facts, of some relations or of all; those found by then if time runs out.

        `types` are those of the node data that heads and tails must be of.
        """
        snapshot = self._asked(k, "query.k", *relations)
        for wanted in filter(None, types):
            snapshot.type(wanted)
        await self.found(snapshot.reasons)
        found = await self.do(
            lambda deadline: complete(
                snapshot.predictor,
                Completion(
                    list(relations) or None,
                    min_confidence=min_confidence,
                    k=k,
                    typed=fitting,
                    head_type=types[0],
                    tail_type=types[1],
                ),
                enough=lambda: deadline.left < SPARE_SECONDS,
            )
        )
        ids = found.facts.head, found.facts.relation, found.facts.tail
        return schema.CompleteResponse(
            opinion=snapshot.predictor.judged_by,
            examined=found.share,
            facts=await self.do(lambda _: _predicted(snapshot, ids)),
        )

    async def entities(self, search: str, limit: int, *, fuzzy: bool = True) -> schema.EntitiesResponse:
        """Return the entities that fit what was typed; for nothing, those with most facts."""
        snapshot = self._asked(limit)
        return await self.do(lambda _: _entities(snapshot, search, limit, fuzzy))

    async def relations(self, search: str, limit: int) -> schema.RelationsResponse:
        """Return the relations that fit what was typed; for nothing, those with most facts."""
        snapshot = self._asked(limit)
        counts = snapshot.facts_by_relation
        if search.strip():
            names = [match.name for match in snapshot.relation_names.search(search, limit)]
        else:
            names = [snapshot.relations[int(each)] for each in np.argsort(-counts, kind="stable")[:limit]]
        index = snapshot.relations.index
        matches = [schema.RelationMatch(name=name, label=label(name), facts=int(counts[index[name]])) for name in names]
        return schema.RelationsResponse(relations=matches)

    async def entity(
        self, name: str, limit: int, offset: int = 0, *, side: schema.End = "both", relation: str | None = None
    ) -> schema.EntityResponse:
        """Return an entity and its facts, the most confident first."""
        snapshot = self._asked(limit)
        entity = snapshot.entity(name)
        only = None if relation is None else snapshot.relation(relation)
        parts = {"head": snapshot.known.as_head(entity), "tail": snapshot.known.as_tail(entity)}
        facts = _together(snapshot, parts["head"], parts["tail"]) if side == "both" else parts[side]
        if only is not None:
            facts = _taken(facts, facts.relation == only)
        order = np.argsort(-facts.confidence, kind="stable")[offset : offset + limit]
        name = snapshot.entities[entity]
        known = snapshot.nodes.get(name)
        return schema.EntityResponse(
            name=name,
            label=snapshot.label(name),
            category=snapshot.category(name),
            types=[] if known is None else list(known.types),
            description=None if known is None else known.description,
            aliases=[] if known is None else list(known.aliases),
            about={} if known is None else {what: schema.plain(value) for what, value in known.others.items()},
            as_head=len(parts["head"].head),
            as_tail=len(parts["tail"].head),
            offset=offset,
            facts=_observed(snapshot, _taken(facts, order)),
        )

    async def rules(
        self, relation: str | None = None, search: str = "", limit: int = 50, offset: int = 0
    ) -> schema.RulesResponse:
        """Return rules, the best first."""
        book = await self.found(self._asked(limit, "query.limit", relation).rulebook)
        numbers = book.matching(relation, search)
        shown = [_rule(book, number) for number in numbers[offset : offset + limit]]
        return schema.RulesResponse(total=len(numbers), offset=offset, rules=shown)

    async def rule(self, number: int, limit: int = 5) -> schema.RuleResponse:
        """Return one rule with examples."""
        snapshot = self._asked(limit)
        book = await self.found(snapshot.rulebook)
        if not 0 <= number < len(book.scored):
            raise Problem(404, "unknown-rule", f"There is no rule {number}; there are {len(book.scored):,}, from 0 on.")
        examples = await self.do(lambda _: _examples(snapshot, book, number, limit))
        return schema.RuleResponse(rule=_rule(book, number), examples=examples)

    async def doubtful(
        self, relation: str | None = None, limit: int = 50, way: Way = "any", source: str | None = None
    ) -> schema.DoubtfulResponse:
        """Return the observed facts whose stored confidence is contradicted most, in any or in one direction."""
        snapshot = self._asked(limit, "query.limit", relation)
        judged = await self.found(snapshot.doubts)
        shown = await self.do(lambda _: judged.worst(limit, relations=relation, sources=source, way=way))
        facts = [
            schema.DoubtOut(**_names(snapshot, each), stored=each.stored, predicted=each.expected, source=each.source)
            for each in shown
        ]
        return schema.DoubtfulResponse(opinion=snapshot.predictor.judged_by, facts=facts)

    async def likely_false(
        self, relation: str | None = None, limit: int = 50, source: str | None = None
    ) -> schema.LikelyFalseResponse:
        """Return the observed facts that most likely do not hold."""
        snapshot = self._asked(limit, "query.limit", relation)
        holding = await self.found(snapshot.holding)
        shown = await self.do(lambda _: holding.likely_false(limit, relations=relation, sources=source))
        facts = [
            schema.LikelyFalseOut(**_names(snapshot, each), stored=each.stored, chance=each.chance, source=each.source)
            for each in shown
        ]
        return schema.LikelyFalseResponse(false=holding.false, labels=holding.labels, facts=facts)

    async def doubt_by_source(self) -> schema.DoubtBySourceResponse:
        """Return what is doubtful about the facts of each source."""
        snapshot = self.snapshot
        judged, holding = await self.found(snapshot.doubts), await self.found(snapshot.holding)
        told = await self.do(lambda _: doubt_by_source(judged, holding))
        lines = [schema.SourceDoubtOut.model_validate(each, from_attributes=True) for each in told]
        return schema.DoubtBySourceResponse(sources=lines[: self.limits.k])

    def info(self) -> schema.InfoResponse:
        """Return what is served."""
        snapshot = self.snapshot
        result, added = snapshot.manifest.get("result") or {}, snapshot.predictor.added
        return schema.InfoResponse(
            run=snapshot.name,
            model=snapshot.manifest["model"],
            data=snapshot.dataset.name,
            entities=len(snapshot.entities),
            relations=len(snapshot.relations),
            facts=len(snapshot.known),
            strong_above=snapshot.tau,
            opinion=snapshot.predictor.judged_by,
            bounds=snapshot.predictor.bounds_from,
            search=schema.Search.model_validate(snapshot.searcher.describe()),
            epochs=result.get("epochs"),
            metric=result.get("metric"),
            best=result.get("best"),
            added=0 if added is None else len(added.facts),
            addition=None if added is None else added.additions[-1].number,
            version=__version__,
            loaded=self.live.loaded.isoformat(timespec="seconds"),
            reloads=self.live.reloads,
            ready={each.what.removeprefix("the "): each.ready for each in snapshot.lazy},
            limits=self.limits,
        )

    def _asked(self, size: int, where: str = "query.limit", *relations: str | None) -> Snapshot:
        """Return the run that is asked for so many answers; more than allowed, or unknown relations, are refused."""
        if size > self.limits.k:
            raise invalid([(where, f"at most {self.limits.k:,}, not {size:,}")])
        snapshot = self.snapshot
        for name in relations:
            if name is not None:
                snapshot.relation(name)
        return snapshot


def _names(snapshot: Snapshot, fact: Doubt | LikelyFalse) -> dict[str, Any]:
    return {
        "head": fact.head,
        "relation": fact.relation,
        "tail": fact.tail,
        "head_label": snapshot.labels.get(fact.head),
        "tail_label": snapshot.labels.get(fact.tail),
    }


def _ranking(snapshot: Snapshot, query: schema.RankQuery) -> Ranking:
    """Return a query by ids."""
    if (query.head is None) == (query.tail is None):
        raise invalid([("query", "give either a head or a tail")])
    relation = snapshot.relation(query.relation)
    given = snapshot.entity(query.head if query.head is not None else str(query.tail))
    side: Side = "tail" if query.head is not None else "head"
    among = _among(snapshot, query, relation, side)
    asked = Query(side, given, relation, query.k, query.observed, among, query.min_confidence, query.coverage)
    return Ranking(snapshot.predictor, asked)


def _among(snapshot: Snapshot, query: schema.RankQuery, relation: int, side: Side) -> Places | None:
    """Return the entities that may be answers, None for all."""
    kinds: list[Places] = []
    kind = Kind.of(query.type)
    if kind.how in ("heads", "tails"):
        snapshot.relation(kind.name)
    elif kind.how == "type":
        snapshot.type(kind.name)
    of_type = snapshot.predictor.naming.candidates(query.type, relation, side, snapshot.kind)
    if of_type is not None:
        kinds.append(of_type)
    if query.prefix:
        starts = pc.starts_with(snapshot.entities.names, query.prefix).to_numpy(zero_copy_only=False)
        kinds.append(np.flatnonzero(starts))
    if not kinds:
        return None
    return kinds[0] if len(kinds) == 1 else np.intersect1d(kinds[0], kinds[1], assume_unique=True)


def _observed(snapshot: Snapshot, facts: FactArrays) -> list[schema.ObservedFact]:
    """Return facts by name."""
    columns = (
        snapshot.entities.decode(facts.head).to_pylist(),
        snapshot.relations.decode(facts.relation).to_pylist(),
        snapshot.entities.decode(facts.tail).to_pylist(),
        facts.confidence.tolist(),
    )
    sources = snapshot.known.sources(facts.head, facts.relation, facts.tail)
    return [
        schema.ObservedFact(
            head=head,
            relation=relation,
            tail=tail,
            head_label=snapshot.labels.get(head),
            tail_label=snapshot.labels.get(tail),
            confidence=confidence,
            source=source,
        )
        for head, relation, tail, confidence, source in zip(*columns, sources, strict=True)
    ]


def _predicted(
    snapshot: Snapshot, ids: tuple[Ids, Ids, Ids], coverage: float = schema.COVERAGE
) -> list[schema.PredictedFact]:
    """Return facts by name with their predicted confidences, their bounds and the stored confidences."""
    if len(ids[0]) == 0:
        return []
    judged = snapshot.predictor.judge(*ids, coverage)
    stored = snapshot.known.stored(*ids)
    named = _observed(snapshot, FactArrays(*ids, judged.confidence))
    return [
        schema.PredictedFact(
            **dict(fact),
            interval=schema.Interval.of(low, high),
            observed=None if np.isnan(held) else held,
        )
        for fact, low, high, held in zip(named, judged.low, judged.high, stored, strict=True)
    ]


def _rule(book: Rulebook, number: int) -> schema.RuleOut:
    """Return a rule with its figures."""
    rule, measures = book.scored[number].rule, book.scored[number].measures
    return schema.RuleOut(
        number=number,
        rule=str(rule),
        weight=rule.weight,
        hit_ratio=measures.hit_ratio,
        support=measures.support,
        implied=measures.implied,
        confidence=measures.confidence,
        head_coverage=measures.head_coverage,
        head_mean=schema.finite(measures.head_mean),
    )


def _taken(facts: FactArrays, rows: npt.NDArray[Any]) -> FactArrays:
    return FactArrays(*(column[rows] for column in facts))


def _together(snapshot: Snapshot, as_head: FactArrays, as_tail: FactArrays) -> FactArrays:
    """Return the facts from both ends, each once: both have that of an entity with itself, or without a direction."""
    undirected = snapshot.known.graph.undirected_relations
    others = _taken(as_tail, (as_tail.head != as_tail.tail) & ~undirected[as_tail.relation])
    return FactArrays(*(np.concatenate(columns) for columns in zip(as_head, others, strict=True)))


def _entities(snapshot: Snapshot, search: str, limit: int, fuzzy: bool) -> schema.EntitiesResponse:
    degree = snapshot.known.degree
    if search.strip():
        found = snapshot.entity_names.search(search, limit, fuzzy=fuzzy)
    else:
        names = snapshot.entities.decode(np.argsort(-degree, kind="stable")[:limit]).to_pylist()
        found = [Match(name, "prefix") for name in names]
    index = snapshot.entities.index
    names = [match.name for match in found]
    types = dict(zip(names, snapshot.nodes.aligned(names, TYPES).to_pylist(), strict=True))
    matches = [
        schema.EntityMatch(
            name=name,
            label=snapshot.label(name),
            category=snapshot.category(name),
            types=types.get(name) or [],
            alias=alias,
            facts=int(degree[index[name]]),
            match=how,
        )
        for name, how, alias in found
    ]
    return schema.EntitiesResponse(entities=matches)


def _examples(snapshot: Snapshot, book: Rulebook, number: int, limit: int) -> list[schema.RuleExample]:
    examples = book.examples(number, limit)
    ids = np.array([example.head for example in examples], dtype=np.int32).reshape(-1, 3)
    heads = _predicted(snapshot, (ids[:, 0], ids[:, 1], ids[:, 2]))
    train = book.train
    told = []
    for example, head in zip(examples, heads, strict=True):
        rows = np.array(example.body)
        body = FactArrays(train.head[rows], train.relation[rows], train.tail[rows], train.confidence[rows])
        told.append(schema.RuleExample(body=_observed(snapshot, body), truth=example.truth, head=head))
    return told
