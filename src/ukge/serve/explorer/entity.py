"""An entity: what the graph holds of it, what is predicted beside it, and its neighbourhood as a picture."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence

from nicegui import PageArguments, ui

from ukge.serve import schema
from ukge.serve.explorer.drawing import NARROW, WIDE, Canvas, Edge, neighbourhood
from ukge.serve.explorer.markup import LEGEND, card, fact_row, text, url, why_url
from ukge.serve.names import label
from ukge.serve.ranking import RankQuery
from ukge.serve.service import Service
from ukge.serve.snapshot import Snapshot

FACTS, PER_RELATION, RELATIONS, GUESSES = 200, 6, 8, 6
EDGES_KNOWN, EDGES_GUESSED = 14, 6
FEW_KNOWN, FEW_GUESSED = 9, 5
GROUPS = 10

Group = tuple[str, bool]
"""A relation, and whether the entity is its head."""


async def build(service: Service, args: PageArguments) -> None:
    """Build the page."""
    name = args.query_parameters.get("name", "")
    told = await service.entity(name, min(FACTS, service.limits.k))
    groups: dict[Group, list[schema.ObservedFact]] = defaultdict(list)
    for fact in told.facts:
        groups[fact.relation, fact.head == name].append(fact)
    counted = Counter({group: len(facts) for group, facts in groups.items()})
    main = [group for group, _ in counted.most_common(RELATIONS)]
    guesses = dict(zip(main, await asyncio.gather(*(_guess(service, name, group) for group in main)), strict=True))
    edges = _edges(name, told.facts, guesses)
    snapshot = service.snapshot
    across = await service.do(lambda _: _across(snapshot, [edge.other for edge in edges if not edge.guess]))
    ui.html(
        _head(told)
        + f'<div class="stack">{card("Around it", _pictures(name, edges, across) + LEGEND)}'
        + f'<section class="card">{_groups(name, groups, counted, guesses)}</section></div>',
        sanitize=False,
    )


async def _guess(service: Service, name: str, group: Group) -> list[schema.Answer]:
    relation, as_head = group
    head, tail = (name, None) if as_head else (None, name)
    query = RankQuery(relation, head, tail, min(GUESSES, service.limits.k), type="fitting", observed="exclude")
    return [each for each in (await service.rank(query)).answers if each.entity != name]


def _head(told: schema.EntityResponse) -> str:
    kind = f'<span class="tag">{text(told.category)}</span>' if told.category else ""
    whole = f'<span class="mono">{text(told.name)}</span>' if told.name != told.label else ""
    return (
        f'<div class="head"><h1>{text(told.label)}</h1>{kind}{whole}<span class="soft">head of {told.as_head:,} facts, '
        f'tail of {told.as_tail:,}</span> <a href="{url("/ask", head=told.name)}">Ask about it</a></div>'
    )


def _groups(
    name: str,
    groups: dict[Group, list[schema.ObservedFact]],
    counted: Counter[Group],
    guesses: dict[Group, list[schema.Answer]],
) -> str:
    """Return, relation by relation, what the graph holds and beside it what is predicted."""
    parts = []
    for group, count in counted.most_common():
        relation, as_head = group
        ends = (text(label(name)), "…") if as_head else ("…", text(label(name)))
        said = f'<span class="soft">— {text(label(relation))} —</span>'
        title = f'<h3 title="{text(relation)}">{ends[0]} {said} {ends[1]}</h3>'
        guessed = _guessed(name, group, guesses.get(group, []))
        parts.append(
            f'<div class="group">{title}<div class="beside"><div><h4>In the graph</h4>'
            f"{_known(name, group, groups[group], count)}</div>{guessed}</div></div>"
        )
    if len(parts) > GROUPS:
        rest = "".join(parts[GROUPS:])
        parts[GROUPS:] = [
            f'<details class="more"><summary>{len(parts) - GROUPS} more relations</summary>{rest}</details>'
        ]
    return "".join(parts) or '<p class="soft">The graph holds no fact of it.</p>'


def _known(name: str, group: Group, facts: list[schema.ObservedFact], count: int) -> str:
    rows = "".join(
        fact_row(fact.tail if group[1] else fact.head, why_url(fact.head, fact.relation, fact.tail), fact.confidence)
        for fact in facts[:PER_RELATION]
    )
    more = ""
    if count > PER_RELATION:
        ask = url("/ask", **{"head" if group[1] else "tail": name}, relation=group[0], seen="only", k=50)
        more = f'<p class="small"><a href="{ask}">{count - PER_RELATION:,} more</a></p>'
    return f'<div class="rows">{rows}</div>{more}'


def _guessed(name: str, group: Group, answers: list[schema.Answer]) -> str:
    rows = "".join(
        fact_row(each.entity, _why(name, group, each.entity), each.confidence, guess=True, bounds=each.interval)
        for each in answers
    )
    return f'<div><h4>Predicted, not in the graph</h4><div class="rows">{rows}</div></div>' if rows else ""


def _why(name: str, group: Group, other: str) -> str:
    return why_url(name, group[0], other) if group[1] else why_url(other, group[0], name)


def _edges(name: str, facts: Sequence[schema.ObservedFact], guesses: dict[Group, list[schema.Answer]]) -> list[Edge]:
    """Return the edges of the picture, the first the most telling: of every relation some, no neighbour twice."""
    known: dict[Group, list[Edge]] = defaultdict(list)
    for fact in facts:
        other = fact.tail if fact.head == name else fact.head
        edge = Edge(fact.head, fact.relation, fact.tail, other, fact.confidence, guess=False)
        known[fact.relation, fact.head == name].append(edge)
    guessed = {
        (relation, as_head): [
            Edge(
                *((name, relation, each.entity) if as_head else (each.entity, relation, name)),
                each.entity,
                each.confidence,
                guess=True,
            )
            for each in answers
        ]
        for (relation, as_head), answers in guesses.items()
    }
    seen = {name}
    return [*_in_turn(known, EDGES_KNOWN, seen), *_in_turn(guessed, EDGES_GUESSED, seen)]


def _in_turn(groups: dict[Group, list[Edge]], limit: int, seen: set[str]) -> list[Edge]:
    """Return the surest edge of each relation, then the second, and so on; to no neighbour that was seen."""
    edges: list[Edge] = []
    lists = [list(group) for _, group in sorted(groups.items(), key=lambda each: -len(each[1]))]
    while any(lists) and len(edges) < limit:
        for waiting in lists:
            edge = next((each for each in waiting if each.other not in seen), None)
            del waiting[: len(waiting) if edge is None else waiting.index(edge) + 1]
            if edge is not None and len(edges) < limit:
                seen.add(edge.other)
                edges.append(edge)
    return edges


def _across(snapshot: Snapshot, names: list[str]) -> dict[tuple[str, str], float]:
    """Return the surest confidence of the facts between each two neighbours that have any."""
    ids = [snapshot.entity(name) for name in names]
    found: dict[tuple[str, str], float] = {}
    for at, one in enumerate(ids):
        facts = snapshot.observed.as_head(one)
        for place, other in enumerate(ids):
            values = facts.confidence[facts.tail == other]
            if place != at and len(values):
                pair = names[min(at, place)], names[max(at, place)]
                found[pair] = max(found.get(pair, 0.0), float(values.max()))
    return found


def _pictures(name: str, edges: list[Edge], across: dict[tuple[str, str], float]) -> str:
    known, guessed = ([edge for edge in edges if edge.guess is kind] for kind in (False, True))
    few = known[:FEW_KNOWN] + guessed[:FEW_GUESSED]

    def drawn(chosen: list[Edge], canvas: Canvas) -> str:
        ordered = sorted(chosen, key=lambda edge: (edge.guess, edge.relation, -edge.confidence))
        return neighbourhood(name, ordered, across, canvas)

    return f'<div class="wide-only">{drawn(edges, WIDE)}</div><div class="narrow-only">{drawn(few, NARROW)}</div>'
