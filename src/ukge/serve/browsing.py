"""Questions about the graph itself: its names, facts, rules, faults, and what the service is."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ukge._version import __version__
from ukge.graph.fact import FactArrays
from ukge.serve import schema
from ukge.serve.base import Base, observed_facts, predicted_facts
from ukge.serve.names import Match, category, label
from ukge.serve.problems import Problem
from ukge.serve.rulebook import Rulebook
from ukge.serve.snapshot import Curve, Snapshot

As = Literal["head", "tail", "both"]


class Browsing(Base):
    """Questions that the graph answers."""

    async def entities(self, search: str, limit: int, *, fuzzy: bool = True) -> schema.EntitiesResponse:
        """Return the entities that fit what was typed; for nothing, those with most facts."""
        self.check_size(limit, "query.limit")
        snapshot = self.snapshot
        return await self.do(lambda _: _entities(snapshot, search, limit, fuzzy))

    async def relations(self, search: str, limit: int) -> schema.RelationsResponse:
        """Return the relations that fit what was typed; for nothing, those with most facts."""
        self.check_size(limit, "query.limit")
        snapshot = self.snapshot
        counts = snapshot.facts_by_relation
        if search.strip():
            names = [match.name for match in snapshot.relation_names.search(search, limit)]
        else:
            names = [snapshot.relations[int(each)] for each in np.argsort(-counts, kind="stable")[:limit]]
        index = snapshot.relations.index
        matches = [schema.RelationMatch(name=name, label=label(name), facts=int(counts[index[name]])) for name in names]
        return schema.RelationsResponse(relations=matches)

    async def entity(
        self, name: str, limit: int, offset: int = 0, *, side: As = "both", relation: str | None = None
    ) -> schema.EntityResponse:
        """Return an entity and its facts, the most confident first."""
        self.check_size(limit, "query.limit")
        snapshot = self.snapshot
        entity = snapshot.entity(name)
        only = None if relation is None else snapshot.relation(relation)
        parts = {"head": snapshot.known.as_head(entity), "tail": snapshot.known.as_tail(entity)}
        facts = _together(snapshot, parts["head"], parts["tail"]) if side == "both" else parts[side]
        if only is not None:
            facts = _taken(facts, facts.relation == only)
        order = np.argsort(-facts.confidence, kind="stable")[offset : offset + limit]
        return schema.EntityResponse(
            name=name,
            label=label(name),
            category=category(name),
            as_head=len(parts["head"].head),
            as_tail=len(parts["tail"].head),
            offset=offset,
            facts=observed_facts(snapshot, _taken(facts, order)),
        )

    async def rules(
        self, relation: str | None = None, search: str = "", limit: int = 50, offset: int = 0
    ) -> schema.RulesResponse:
        """Return rules, the best first."""
        self.check_size(limit, "query.limit")
        snapshot = self.snapshot
        if relation is not None:
            snapshot.relation(relation)
        book = await self.found(snapshot.rulebook)
        numbers = book.matching(relation, search)
        shown = [rule_out(book, number) for number in numbers[offset : offset + limit]]
        return schema.RulesResponse(total=len(numbers), offset=offset, rules=shown)

    async def rule(self, number: int, limit: int = 5) -> schema.RuleResponse:
        """Return one rule with examples."""
        self.check_size(limit, "query.limit")
        snapshot = self.snapshot
        book = await self.found(snapshot.rulebook)
        if not 0 <= number < len(book.scored):
            raise Problem(404, "unknown-rule", f"There is no rule {number}; there are {len(book.scored):,}, from 0 on.")
        examples = await self.do(lambda _: _examples(snapshot, book, number, limit))
        return schema.RuleResponse(rule=rule_out(book, number), examples=examples)

    async def doubtful(self, relation: str | None = None, limit: int = 50) -> schema.DoubtfulResponse:
        """Return the observed facts whose stored confidence is contradicted most."""
        self.check_size(limit, "query.limit")
        snapshot = self.snapshot
        if relation is not None:
            snapshot.relation(relation)
        doubts = await self.found(snapshot.doubts)
        shown = [each for each in doubts if relation is None or each.relation == relation][:limit]
        facts = [
            schema.DoubtOut(
                head=each.head, relation=each.relation, tail=each.tail, stored=each.stored, predicted=each.expected
            )
            for each in shown
        ]
        return schema.DoubtfulResponse(opinion=snapshot.predictor.judge.kind, facts=facts)

    async def reliability(self) -> schema.ReliabilityResponse:
        """Return whether confidences mean what they say."""
        quality = await self.found(self.snapshot.quality)
        held, negatives = quality.held, quality.with_negatives
        return schema.ReliabilityResponse(
            part=quality.part,
            **dict(curve_out(held)),
            with_negatives=None if negatives is None else curve_out(negatives),
            negatives="drawn" if quality.drawn else "given",
        )

    async def audit(self) -> schema.AuditResponse:
        """Return the audit of the data."""
        found = await self.found(self.snapshot.audit)
        return schema.AuditResponse.model_validate(found.to_dict())

    def info(self) -> schema.InfoResponse:
        """Return what is served."""
        snapshot, limits = self.snapshot, self.limits
        result = snapshot.manifest.get("result") or {}
        return schema.InfoResponse(
            run=snapshot.name,
            model=snapshot.manifest["model"],
            data=snapshot.dataset.name,
            entities=len(snapshot.entities),
            relations=len(snapshot.relations),
            facts=len(snapshot.known),
            strong_above=snapshot.tau,
            opinion=snapshot.predictor.judge.kind,
            bounds=snapshot.predictor.judge.bounds,
            search=schema.Search.model_validate(snapshot.searcher.describe()),
            epochs=result.get("epochs"),
            metric=result.get("metric"),
            best=result.get("best"),
            version=__version__,
            loaded=self.live.loaded.isoformat(timespec="seconds"),
            reloads=self.live.reloads,
            ready={each.what.removeprefix("the "): each.ready for each in snapshot.lazy},
            limits=schema.LimitsOut(
                body_bytes=limits.body_bytes, facts=limits.facts, k=limits.k, seconds=limits.seconds
            ),
        )


def rule_out(book: Rulebook, number: int) -> schema.RuleOut:
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
        head_mean=finite(measures.head_mean),
    )


def curve_out(curve: Curve) -> schema.Curve:
    """Return a reliability curve with its figures."""
    columns = (curve.bins.predicted.tolist(), curve.bins.observed.tolist(), curve.bins.facts.tolist())
    bins = [schema.Bin(predicted=p, observed=o, facts=n) for p, o, n in zip(*columns, strict=True)]
    figures = curve.figures
    return schema.Curve(facts=figures.facts, ece=figures.ece, spearman=finite(figures.spearman), bins=bins)


def finite(value: float) -> float | None:
    """Return a number, or None for what is none: JSON has no NaN."""
    return value if math.isfinite(value) else None


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
    matches = [
        schema.EntityMatch(
            name=name, label=label(name), category=category(name), facts=int(degree[index[name]]), match=how
        )
        for name, how in found
    ]
    return schema.EntitiesResponse(entities=matches)


def _examples(snapshot: Snapshot, book: Rulebook, number: int, limit: int) -> list[schema.RuleExample]:
    examples = book.examples(number, limit)
    ids = np.array([example.head for example in examples], dtype=np.int32).reshape(-1, 3)
    heads = predicted_facts(snapshot, (ids[:, 0], ids[:, 1], ids[:, 2]))
    told = []
    for example, head in zip(examples, heads, strict=True):
        rows = np.array(example.body)
        train = book.train
        columns = (train.head[rows], train.relation[rows], train.tail[rows], train.confidence[rows])
        body = observed_facts(snapshot, FactArrays(*columns))
        told.append(schema.RuleExample(body=body, truth=example.truth, head=head))
    return told
