"""Where things stand in pictures that take their colours from the page: neighbourhood and reliability curve."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ukge.serve import schema
from ukge.serve.explorer.markup import markup


@dataclass(frozen=True)
class Edge:
    """A fact between the entity in the middle and another."""

    head: str
    relation: str
    tail: str
    other: str
    confidence: float
    guess: bool

    @property
    def stroke(self) -> float:
        """How wide its line is: wider if more confident."""
        return 1.2 + 5 * float(self.confidence**1.5)


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


def reliability_curve(curve: schema.Curve) -> Markup:
    """Return mean stored against mean predicted confidence; points are larger where there are more facts."""
    size, left, top, right, bottom = 440, 46, 14, 426, 400

    def at(x: float, y: float) -> tuple[float, float]:
        return left + (right - left) * min(1.0, max(0.0, x)), bottom - (bottom - top) * min(1.0, max(0.0, y))

    most = max((each.facts for each in curve.bins), default=1)
    points = [(*at(each.predicted, each.observed), 4 + 4 * math.sqrt(each.facts / most), each) for each in curve.bins]
    ticks = [(tick, *at(tick, tick)) for tick in (0.0, 0.25, 0.5, 0.75, 1.0)]
    edges = {"left": left, "top": top, "right": right, "bottom": bottom}
    return markup("reliability.svg", size=size, ticks=ticks, points=points, **edges)
