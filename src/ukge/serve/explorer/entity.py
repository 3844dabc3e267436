"""An entity: what the graph holds of it, what is predicted beside it, and its neighbourhood as a picture."""

from __future__ import annotations

import asyncio
import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup
from nicegui import PageArguments

from ukge.asking.neighbourhood import Edge, Group, across, in_turn
from ukge.serve import schema
from ukge.serve.explorer.parts import markup, put
from ukge.serve.service import Service

FACTS, PER_RELATION, RELATIONS, GUESSES = 200, 6, 8, 6
EDGES_KNOWN, EDGES_GUESSED = 14, 6
FEW_KNOWN, FEW_GUESSED = 9, 5
GROUPS = 10


class Listed(NamedTuple):
    """What the graph holds with one relation, and what is predicted beside it."""

    relation: str
    as_head: bool
    facts: list[schema.ObservedFact]
    guesses: list[schema.Answer]


@dataclass(frozen=True)
class Canvas:
    """How large the picture is, and how much a name may take of it."""

    width: int
    height: int
    name: int
    relation: int
    kind: str

    @property
    def radii(self) -> tuple[float, float]:
        """Half the axes of the ellipse that the neighbours stand on."""
        letter = 10.6 if self.kind == "narrow" else 7.4
        return self.width / 2 - letter * self.name - 14, self.height / 2 - 44


WIDE, NARROW = Canvas(1060, 560, 24, 28, "wide"), Canvas(430, 640, 11, 12, "narrow")


async def build(service: Service, args: PageArguments) -> None:
    """Build the page."""
    name = args.query_parameters.get("name", "")
    told = await service.entity(name, min(FACTS, service.limits.k))
    name = told.name
    groups: dict[Group, list[schema.ObservedFact]] = defaultdict(list)
    for fact in told.facts:
        groups[fact.relation, fact.head == name].append(fact)
    counted = Counter({group: len(facts) for group, facts in groups.items()})
    main = [group for group, _ in counted.most_common(RELATIONS)]
    guesses = dict(zip(main, await asyncio.gather(*(_guess(service, name, group) for group in main)), strict=True))
    edges = _edges(name, told.facts, guesses)
    snapshot = service.snapshot
    linked = await service.do(lambda _: across(snapshot.predictor, [edge.other for edge in edges if not edge.guess]))
    wide, narrow = _pictures(name, edges, linked)
    listed = [Listed(*group, groups[group], guesses.get(group, [])) for group, _ in counted.most_common()]
    put("entity.html", shown=told, groups=listed, few=PER_RELATION, most=GROUPS, wide=wide, narrow=narrow)


async def _guess(service: Service, name: str, group: Group) -> list[schema.Answer]:
    relation, as_head = group
    head, tail = (name, None) if as_head else (None, name)
    query = schema.RankQuery(
        relation=relation,
        head=head,
        tail=tail,
        k=min(GUESSES, service.limits.k),
        type="fitting",
        observed="exclude",
    )
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
    return [*in_turn(known, EDGES_KNOWN, seen), *in_turn(guessed, EDGES_GUESSED, seen)]


def _pictures(name: str, edges: list[Edge], across: dict[tuple[str, str], float]) -> tuple[Markup, Markup]:
    """Return the picture for wide screens and, with fewer neighbours, the one for narrow ones."""
    known, guessed = ([edge for edge in edges if edge.guess is kind] for kind in (False, True))
    few = known[:FEW_KNOWN] + guessed[:FEW_GUESSED]

    def drawn(chosen: list[Edge], canvas: Canvas) -> Markup:
        ordered = sorted(chosen, key=lambda edge: (edge.guess, edge.relation, -edge.confidence))
        return neighbourhood(name, ordered, across, canvas)

    return drawn(edges, WIDE), drawn(few, NARROW)


def neighbourhood(
    middle: str, edges: Sequence[Edge], across: Mapping[tuple[str, str], float], canvas: Canvas
) -> Markup:
    """Return the entity amid its neighbours: wider edges are more confident, dashed ones are predicted.

    `across` holds the confidences of facts between two neighbours, drawn as thin arcs.
    """
    places = {edge.other: _place(at, len(edges), canvas) for at, edge in enumerate(edges)}
    arcs = [
        (_arc(places[one], places[other], canvas), 0.6 + 1.6 * value)
        for (one, other), value in across.items()
        if one in places and other in places
    ]
    placed = [(edge, *places[edge.other]) for edge in edges]
    return markup("neighbourhood.svg", middle=middle, arcs=arcs, edges=placed, canvas=canvas, cut=_cut)


def _arc(one: tuple[float, float], other: tuple[float, float], canvas: Canvas) -> list[float]:
    """Return the beginning, the bend and the end of a curve that leans towards the middle."""
    middle = canvas.width / 2, canvas.height / 2
    return [*one, *((a + b) / 4 + m / 2 for a, b, m in zip(one, other, middle, strict=True)), *other]


def _place(at: int, count: int, canvas: Canvas) -> tuple[float, float]:
    """Return where a neighbour stands: evenly along the height of both sides, so that names do not meet."""
    rx, ry = canvas.radii
    right = (count + 1) // 2
    on_right = at < right
    side_count, place = (right, at) if on_right else (count - right, at - right)
    share = 0.0 if side_count == 1 else 2 * place / (side_count - 1) - 1
    y = share * ry
    x = rx * math.sqrt(max(0.0, 1 - 0.82 * share * share))
    return canvas.width / 2 + (x if on_right else -x), canvas.height / 2 + (y if on_right else -y)


def _cut(name: str, longest: int) -> str:
    return name if len(name) <= longest else name[: longest - 1].rstrip() + "…"
