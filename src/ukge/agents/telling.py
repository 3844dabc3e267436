"""What the tools do: each puts a question to the service and tells the answer, as data and in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ukge.agents import answers, questions, wording
from ukge.agents.answers import Provenance, Told
from ukge.progress.safe_console import one_line
from ukge.serve import schema
from ukge.serve.problems import short
from ukge.serve.service import Service

SMALL = 0.005
"""A share that a text need not tell; the data has them all."""

MOST_USED = 50
"""Relations that a description names."""


class Answer(NamedTuple):
    """An answer as data, and the lines that tell its parts in words."""

    told: Told
    lines: Sequence[str] = ()

    @property
    def text(self) -> str:
        """The answer as a model reads it."""
        return wording.listed(self.told.sentence, self.lines, self.told.provenance)


def provenance(service: Service) -> Provenance:
    """Return who answers now."""
    info = service.info()
    return Provenance(
        run=info.run,
        model=info.model,
        data=info.data,
        judged_by=info.opinion,
        bounds_from=info.bounds,
        loaded=info.loaded,
    )


async def describe(service: Service, _: questions.Describe, who: Provenance) -> Answer:
    """Tell what the graph holds."""
    info, limits = service.info(), service.limits
    most = (await service.relations("", min(MOST_USED, limits.k))).relations
    sentence = (
        f"The graph {wording.quoted(info.data)} holds {wording.counted(info.facts, 'fact')} between "
        f"{wording.counted(info.entities, 'entity', 'entities')} by {wording.counted(info.relations, 'relation')}; "
        f"each fact has a confidence from 0 to 1, and above {info.strong_above:g} it counts as strong."
    )
    told = answers.Described(
        sentence=sentence,
        provenance=who,
        entities=info.entities,
        relations=info.relations,
        facts=info.facts,
        most_used=most,
        limits={"answers": limits.k, "facts": limits.facts, "seconds": limits.seconds},
    )
    return Answer(told, [f"{wording.quoted(each.name)}: {wording.counted(each.facts, 'fact')}" for each in most])


async def search(service: Service, asked: questions.Search, who: Provenance) -> Answer:
    """Find names."""
    found: dict[str, Any]
    if asked.what == "entities":
        found = {"entities": (await service.entities(asked.text, asked.limit)).entities}
    else:
        found = {"relations": (await service.relations(asked.text, asked.limit)).relations}
    matches: list[schema.RelationMatch] = found[asked.what]
    what = f"for {wording.quoted(asked.text)}" if asked.text.strip() else "with most facts"
    sentence = f"{wording.counted(len(matches), asked.what.removesuffix('s'), asked.what)} {what}."
    if asked.what == "entities":
        sentence = f"{wording.counted(len(matches), 'entity', 'entities')} {what}."
    told = answers.Found(sentence=sentence, provenance=who, **found)
    return Answer(told, [_match(service, each) for each in matches])


async def ask(service: Service, asked: questions.Ask, who: Provenance) -> Answer:
    """Rank the missing end of a query."""
    found = await service.rank(asked)
    labels = service.snapshot.labels
    facts = [
        schema.PredictedFact(
            head=found.head or each.entity,
            relation=found.relation,
            tail=found.tail or each.entity,
            head_label=labels.get(found.head or each.entity),
            tail_label=labels.get(found.tail or each.entity),
            confidence=each.confidence,
            interval=each.interval,
            observed=each.observed,
            source=each.source,
        )
        for each in found.answers
    ]
    told = await _with_reasons(service, facts, asked.coverage)
    given = (
        f"{wording.quoted(asked.head)} — {wording.quoted(asked.relation)} — ?"
        if asked.head is not None
        else (f"? — {wording.quoted(asked.relation)} — {wording.quoted(asked.tail or '')}")
    )
    sentence = f"No answer to {given} meets the conditions."
    if told:
        best = wording.called(found.answers[0].entity, found.answers[0].label)
        sentence = f"The best of {wording.counted(len(told), 'answer')} to {given} is {best}."
    ranked = answers.Ranked(
        sentence=sentence,
        provenance=who,
        coverage=asked.coverage,
        facts=told,
        search=found.search,
    )
    return Answer(ranked, _lines(told))


async def confidence(service: Service, asked: questions.Confidence, who: Provenance) -> Answer:
    """Judge facts."""
    named = [(each.head, each.relation, each.tail) for each in asked.facts]
    told = await _with_reasons(service, await service.confidence(named, asked.coverage), asked.coverage)
    held = sum(each.status == "observed" for each in told)
    first = f"{wording.counted(len(told), 'fact')}, of which the graph holds {held:,}."
    sentence = told[0].sentence if len(told) == 1 else first
    judged = answers.Facts(sentence=sentence, provenance=who, coverage=asked.coverage, facts=told)
    return Answer(judged, _lines(told, without=sentence))


async def explain(service: Service, asked: questions.Explain, who: Provenance) -> Answer:
    """Tell why a fact has its confidence."""
    found = await service.explain(asked.head, asked.relation, asked.tail)
    fact = _fact(service, found, schema.COVERAGE, found.reasons[0].sentence if found.reasons else None)
    told = answers.Explained(sentence=fact.sentence, provenance=who, fact=fact, base=found.base, reasons=found.reasons)
    start = [] if found.base is None else [f"{wording.number(found.base)} without any evidence"]
    heavy = [each for each in found.reasons if each.contribution is None or abs(each.contribution) >= SMALL]
    return Answer(told, [*start, *(_reason(each) for each in heavy)])


async def neighbours(service: Service, asked: questions.Neighbours, who: Provenance) -> Answer:
    """Tell the facts of an entity."""
    found = await service.entity(asked.name, asked.limit, asked.offset, side=asked.side, relation=asked.relation)
    what = f" It is said to be: {one_line(short(found.description))}" if found.description else ""
    who_it_is = f"{wording.called(found.name, service.snapshot.labels.get(found.name))}{_of(found.types)}"
    sentence = (
        f"{who_it_is} is the head of {wording.counted(found.as_head, 'fact')} and the tail of {found.as_tail:,}; "
        f"{wording.counted(len(found.facts), 'is', 'are')} told here, the most confident first.{what}"
    )
    told = answers.Around(
        sentence=sentence,
        provenance=who,
        name=found.name,
        types=found.types,
        description=found.description,
        aliases=found.aliases,
        as_head=found.as_head,
        as_tail=found.as_tail,
        offset=found.offset,
        facts=found.facts,
    )
    return Answer(told, [wording.stored(each) for each in found.facts])


async def doubt(service: Service, asked: questions.Doubt, who: Provenance) -> Answer:
    """Tell which facts are contradicted."""
    found = (await service.doubtful(asked.relation, asked.limit)).facts
    among = "" if asked.relation is None else f" of {wording.quoted(asked.relation)}"
    sentence = f"No fact{among} is contradicted by the others."
    if found:
        sentence = f"The {wording.counted(len(found), 'fact')}{among} that the other facts contradict most."
    told = answers.Doubted(sentence=sentence, provenance=who, facts=found)
    return Answer(told, [wording.doubted(each) for each in found])


async def rules(service: Service, asked: questions.Rules, who: Provenance) -> Answer:
    """Tell rules, or one of them with examples."""
    if asked.number is not None:
        one = await service.rule(asked.number)
        sentence = f"Rule {wording.ruled(one.rule)}."
        examples = [
            f"because of {'; '.join(wording.stored(each) for each in example.body)}: "
            f"{wording.judged(example.head, who.judged_by, schema.COVERAGE)}"
            for example in one.examples
        ]
        told = answers.Ruled(sentence=sentence, provenance=who, total=1, rules=[one.rule], examples=one.examples)
        return Answer(told, examples)
    found = await service.rules(asked.relation, asked.search, asked.limit, asked.offset)
    sentence = "No rule that is mined from the graph fits."
    if found.total:
        sentence = f"{wording.counted(found.total, 'rule')}; {len(found.rules):,} of them, the best first."
    told = answers.Ruled(sentence=sentence, provenance=who, total=found.total, rules=found.rules)
    return Answer(told, [wording.ruled(each) for each in found.rules])


async def complete(service: Service, asked: questions.Complete, who: Provenance) -> Answer:
    """Tell which facts are missing."""
    types, fitting = (asked.head_type, asked.tail_type), asked.type == "fitting"
    found = await service.complete(asked.relations, asked.k, asked.min_confidence, fitting=fitting, types=types)
    told = await _with_reasons(service, found.facts, schema.COVERAGE)
    sentence = f"No fact that the graph does not hold is at least {asked.min_confidence:g} confident."
    if told:
        sentence = f"{wording.counted(len(told), 'fact')} that the graph does not hold, the most confident first."
    if found.examined < 1:
        sentence += f" Time ran out: {100 * found.examined:.0f} % of the entities were looked at."
    completed = answers.Completed(
        sentence=sentence,
        provenance=who,
        coverage=schema.COVERAGE,
        examined=found.examined,
        facts=told,
    )
    return Answer(completed, _lines(told))


def _fact(service: Service, fact: schema.PredictedFact, coverage: float, reason: str | None) -> answers.Fact:
    names = schema.PredictedFact.model_fields
    return answers.Fact(
        **{name: getattr(fact, name) for name in names},
        status="predicted" if fact.observed is None else "observed",
        sentence=wording.judged(fact, service.snapshot.predictor.judged_by, coverage),
        reason=reason,
    )


async def _with_reasons(service: Service, facts: Sequence[schema.PredictedFact], coverage: float) -> list[answers.Fact]:
    reasons = await service.reasons([(each.head, each.relation, each.tail) for each in facts])
    return [_fact(service, each, coverage, reason) for each, reason in zip(facts, reasons, strict=True)]


def _lines(facts: Iterable[answers.Fact], without: str = "") -> list[str]:
    """Return the sentence of each fact with its reason; what was said already is left out."""
    told = []
    for fact in facts:
        sentence = "" if fact.sentence == without else fact.sentence
        reason = "" if fact.reason is None else f"Reason: {one_line(fact.reason)}"
        told.append(f"{sentence} {reason}".strip())
    return [each for each in told if each]


def _match(service: Service, match: schema.RelationMatch) -> str:
    name, more = wording.quoted(match.name), ""
    if isinstance(match, schema.EntityMatch):
        name, more = wording.called(match.name, service.snapshot.labels.get(match.name)), _of(match.types)
    return f"{name}{more}: {wording.counted(match.facts, 'fact')}"


def _of(types: Sequence[str]) -> str:
    """Return of which types an entity is."""
    return f", a {one_line(short(' and '.join(types)))}," if types else ""


def _reason(reason: schema.ReasonOut) -> str:
    share = "" if reason.contribution is None else f"{reason.contribution:+.2f} "
    return f"{share}{one_line(reason.sentence)}"
