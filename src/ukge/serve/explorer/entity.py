"""An entity: what the graph holds of it, what is predicted beside it, and its neighbourhood as a picture."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup
from nicegui import PageArguments

from ukge.serve import schema
from ukge.serve.explorer.drawing import NARROW, WIDE, Canvas, Edge, neighbourhood
from ukge.serve.explorer.markup import put
from ukge.serve.rank_query import RankQuery
from ukge.serve.service import Service
from ukge.serve.snapshot import Snapshot

FACTS, PER_RELATION, RELATIONS, GUESSES = 200, 6, 8, 6
EDGES_KNOWN, EDGES_GUESSED = 14, 6
FEW_KNOWN, FEW_GUESSED = 9, 5
GROUPS = 10

Group = tuple[str, bool]
"""A relation, and whether the entity is its head."""


class Listed(NamedTuple):
    """What the graph holds with one relation, and what is predicted beside it."""

    relation: str
    as_head: bool
    facts: list[schema.ObservedFact]
    guesses: list[schema.Answer]


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
    wide, narrow = _pictures(name, edges, across)
    listed = [Listed(*group, groups[group], guesses.get(group, [])) for group, _ in counted.most_common()]
    put("entity.html", shown=told, groups=listed, few=PER_RELATION, most=GROUPS, wide=wide, narrow=narrow)


async def _guess(service: Service, name: str, group: Group) -> list[schema.Answer]:
    relation, as_head = group
    head, tail = (name, None) if as_head else (None, name)
    query = RankQuery(relation, head, tail, min(GUESSES, service.limits.k), type="fitting", observed="exclude")
    return [each for each in (await service.rank(query)).answers if each.entity != name]


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
        facts = snapshot.known.as_head(one)
        for place, other in enumerate(ids):
            values = facts.confidence[facts.tail == other]
            if place != at and len(values):
                pair = names[min(at, place)], names[max(at, place)]
                found[pair] = max(found.get(pair, 0.0), float(values.max()))
    return found


def _pictures(name: str, edges: list[Edge], across: dict[tuple[str, str], float]) -> tuple[Markup, Markup]:
    """Return the picture for wide screens and, with fewer neighbours, the one for narrow ones."""
    known, guessed = ([edge for edge in edges if edge.guess is kind] for kind in (False, True))
    few = known[:FEW_KNOWN] + guessed[:FEW_GUESSED]

    def drawn(chosen: list[Edge], canvas: Canvas) -> Markup:
        ordered = sorted(chosen, key=lambda edge: (edge.guess, edge.relation, -edge.confidence))
        return neighbourhood(name, ordered, across, canvas)

    return drawn(edges, WIDE), drawn(few, NARROW)
