"""Pictures as SVG that takes its colours from the page: the neighbourhood, the reliability curve, a histogram."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ukge.serve import schema
from ukge.serve.explorer.markup import text, url, why_url
from ukge.serve.names import label


@dataclass(frozen=True)
class Edge:
    """A fact between the entity in the middle and another."""

    head: str
    relation: str
    tail: str
    other: str
    confidence: float
    guess: bool


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


def neighbourhood(middle: str, edges: Sequence[Edge], across: Mapping[tuple[str, str], float], canvas: Canvas) -> str:
    """Return the entity amid its neighbours: wider edges are more confident, dashed ones are predicted.

    `across` holds the confidences of facts between two neighbours, drawn as thin arcs.
    """
    x0, y0 = canvas.width / 2, canvas.height / 2
    places = {edge.other: _place(at, len(edges), canvas) for at, edge in enumerate(edges)}
    arcs = "".join(
        _arc(places[one], places[other], (x0, y0), value)
        for (one, other), value in across.items()
        if one in places and other in places
    )
    lines = "".join(_line(edge, x0, y0, *places[edge.other]) for edge in edges)
    dots = "".join(_dot(edge, *places[edge.other], canvas) for edge in edges)
    return (
        f'<svg class="graph {canvas.kind}" viewBox="0 0 {canvas.width} {canvas.height}" role="group" '
        f'aria-label="Neighbours of {text(label(middle))}">{arcs}{lines}{dots}'
        f'<circle class="middle" cx="{x0}" cy="{y0}" r="9"/>'
        f'<text class="name" x="{x0}" y="{y0 + 28}" text-anchor="middle">{text(_cut(label(middle), 30))}</text></svg>'
    )


def _arc(one: tuple[float, float], other: tuple[float, float], middle: tuple[float, float], value: float) -> str:
    bent = [(a + b) / 4 + m / 2 for a, b, m in zip(one, other, middle, strict=True)]
    return (
        f'<path class="across" d="M{one[0]:.0f} {one[1]:.0f}Q{bent[0]:.0f} {bent[1]:.0f} {other[0]:.0f} {other[1]:.0f}"'
        f' stroke-width="{0.6 + 1.6 * value:.1f}"/>'
    )


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


def _line(edge: Edge, x0: float, y0: float, x: float, y: float) -> str:
    width = 1.2 + 5 * edge.confidence**1.5
    kind = "edge guess" if edge.guess else "edge"
    told = f"{label(edge.head)} — {label(edge.relation)} — {label(edge.tail)}: {edge.confidence:.2f}"
    return (
        f'<a href="{why_url(edge.head, edge.relation, edge.tail)}" tabindex="-1"><title>{text(told)}</title>'
        f'<line class="{kind}" x1="{x0:.0f}" y1="{y0:.0f}" x2="{x:.0f}" y2="{y:.0f}" stroke-width="{width:.1f}"/></a>'
    )


def _dot(edge: Edge, x: float, y: float, canvas: Canvas) -> str:
    right = x >= canvas.width / 2
    anchor, shift = ("start", 12) if right else ("end", -12)
    kind = "dot guess" if edge.guess else "dot"
    arrow = "→" if edge.tail == edge.other else "←"
    name = _cut(label(edge.other), canvas.name)
    return (
        f'<a href="{url("/entity", name=edge.other)}"><title>{text(edge.other)}</title>'
        f'<circle class="{kind}" cx="{x:.0f}" cy="{y:.0f}" r="6"/>'
        f'<text x="{x + shift:.0f}" y="{y + 1:.0f}" text-anchor="{anchor}">{text(name)}</text>'
        f'<text class="on" x="{x + shift:.0f}" y="{y + 15:.0f}" text-anchor="{anchor}">'
        f"{arrow} {text(_cut(label(edge.relation), canvas.relation))}</text></a>"
    )


def _cut(name: str, longest: int) -> str:
    return name if len(name) <= longest else name[: longest - 1].rstrip() + "…"


def reliability_curve(told: schema.Curve) -> str:
    """Return mean stored against mean predicted confidence; points are larger where there are more facts."""
    size, left, bottom = 440, 46, 40
    span = size - left - 14

    def at(x: float, y: float) -> tuple[float, float]:
        return left + span * min(1.0, max(0.0, x)), size - bottom - span * min(1.0, max(0.0, y))

    ticks = ""
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = at(tick, tick)
        ticks += f'<line class="axis" x1="{x:.1f}" y1="{at(0, 0)[1]:.1f}" x2="{x:.1f}" y2="{at(0, 1)[1]:.1f}"/>'
        ticks += f'<line class="axis" x1="{at(0, 0)[0]:.1f}" y1="{y:.1f}" x2="{at(1, 0)[0]:.1f}" y2="{y:.1f}"/>'
        ticks += f'<text x="{x:.1f}" y="{size - bottom + 17}" text-anchor="middle">{tick:g}</text>'
        ticks += f'<text x="{left - 7}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>'
    points = [at(each.predicted, each.observed) for each in told.bins]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    most = max((each.facts for each in told.bins), default=1)
    dots = "".join(
        f'<circle class="point" cx="{x:.1f}" cy="{y:.1f}" r="{4 + 4 * math.sqrt(each.facts / most):.1f}">'
        f"<title>predicted {each.predicted:.2f}, stored {each.observed:.2f}, {each.facts:,} facts</title></circle>"
        for (x, y), each in zip(points, told.bins, strict=True)
    )
    (ax, ay), (bx, by) = at(0, 0), at(1, 1)
    return (
        f'<svg class="plot" viewBox="0 0 {size} {size}" role="img" aria-label="Reliability curve">{ticks}'
        f'<line class="ideal" x1="{ax}" y1="{ay}" x2="{bx}" y2="{by}"/><polyline class="curve" points="{path}"/>{dots}'
        f'<text x="{left + span / 2}" y="{size - 5}" text-anchor="middle">mean predicted confidence</text>'
        f'<text x="13" y="{size - bottom - span / 2}" text-anchor="middle" '
        f'transform="rotate(-90 13 {size - bottom - span / 2})">mean stored confidence</text></svg>'
    )


def histogram(counts: Sequence[int], caption: str) -> str:
    """Return counts of confidences in equal bins of [0, 1] as columns."""
    width, height, bottom = 440, 150, 22
    most = max(counts, default=0) or 1
    step = width / max(1, len(counts))
    columns = "".join(
        f'<rect class="column" x="{at * step + 1:.1f}" width="{step - 2:.1f}" rx="2" '
        f'y="{height - bottom - (height - bottom) * count / most:.1f}" height="{(height - bottom) * count / most:.1f}">'
        f"<title>{at / len(counts):.2f} to {(at + 1) / len(counts):.2f}: {count:,} facts</title></rect>"
        for at, count in enumerate(counts)
    )
    labels = "".join(
        f'<text x="{place * width:.0f}" y="{height - 5}" text-anchor="{anchor}">{place:g}</text>'
        for place, anchor in ((0.0, "start"), (0.5, "middle"), (1.0, "end"))
    )
    return (
        f'<svg class="plot" viewBox="0 0 {width} {height}" role="img" aria-label="{text(caption)}">'
        f'<line class="axis" x1="0" x2="{width}" y1="{height - bottom}" y2="{height - bottom}"/>{columns}{labels}</svg>'
    )
