"""A neighbourhood as a picture, for slides and papers: SVG, PNG or PDF, drawn by matplotlib without its global state.

Neighbours stand on two arcs, left and right of the entity, each on a line of its own, so that no name covers another.
Facts of the graph are drawn through, predicted ones dashed; both are wider and darker the more confident they are.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import FancyArrowPatch, Polygon
from matplotlib.textpath import TextPath

from ukge.asking.neighbourhood import Edge, Neighbourhood
from ukge.html.render import shown

INK, SOFT, PALE = "#1d2126", "#66707c", "#c3cad2"
KNOWN = LinearSegmentedColormap.from_list("known", ["#b9d0e2", "#5b93bf", "#12466f"])
GUESSED = LinearSegmentedColormap.from_list("guessed", ["#f2cfae", "#d98a46", "#9c430c"])
KINDS = ("#7fa8c9", "#e0a96d", "#8fbf8f", "#c88fb4", "#d6c25f", "#8fc4c1", "#b39ddb")
OTHER_KIND = "#c9ced4"

ROW, BELOW, ABOVE = 0.56, 0.85, 0.5
"""Inches of a line with a neighbour, below all of them (what lines mean), and above (what is shown)."""

LONGEST, LONGEST_RELATION = 30, 34
HALF, STEP, EDGE = 2.3, 2.1, 0.3
"""Inches from the middle to the arcs, from these to neighbours' neighbours, and beside all texts."""

NAME, TOLD, MIDDLE, NOTE = 10.5, 7.8, 13.0, 8.0
"""Points of names, of what is told of facts, of the entity in the middle, and of notes."""

DASHES = (0, (3.0, 1.4))
STEPS = (0.25, 0.5, 0.75, 1.0)
ENDINGS = (".svg", ".png", ".pdf")

LOOK: dict[Any, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 10,
    "text.color": INK,
    "text.parse_math": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "ukge",
    "pdf.fonttype": 42,
}


@dataclass(frozen=True)
class Names:
    """What entities are called, of what type they are, and which relations have no direction."""

    labels: Mapping[str, str]
    types: Mapping[str, str]
    undirected: frozenset[str] = frozenset()

    def label(self, name: str, longest: int = LONGEST) -> str:
        """Return what stands beside an entity: on one line, not too long, with no character that nobody sees."""
        return _cut(str(shown(self.labels.get(name, name))), longest)


@dataclass(frozen=True)
class _Place:
    """Where an entity stands, and on which side: −1 is left."""

    x: float
    y: float
    side: int


def draw(found: Neighbourhood, names: Names, judge: str, *, form: str = "svg") -> bytes:
    """Return the picture as a file of a format: svg, png or pdf. `judge` says who predicts."""
    with rc_context(LOOK), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a box stands for it
        figure = _figure(found, names, judge)
        sink = BytesIO()
        stamp: dict[str, Any] = {"svg": {"Date": None}, "png": {"Software": None}, "pdf": {"CreationDate": None}}
        figure.savefig(sink, format=form, dpi=200, facecolor="white", metadata=stamp[form])
    return sink.getvalue()


def _figure(found: Neighbourhood, names: Names, judge: str) -> Figure:
    left, right = _sides(found)
    rows = max(_rows(left, found), _rows(right, found), 3)
    kinds = _kinds(found, names)
    beyond = STEP if any(found.further.values()) else 0.0
    reach = [HALF + beyond + 0.2 + EDGE + _widest(side, found, names) for side in (left, right)]
    width = max(reach[0] + reach[1], 6.8)
    spare = (width - reach[0] - reach[1]) / 2
    keys = _wrapped(kinds, width - 2 * EDGE)
    low, high = -rows * ROW / 2 - BELOW, rows * ROW / 2 + ABOVE + 0.24 * (1 + len(keys))
    figure = Figure(figsize=(width, high - low))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(-reach[0] - spare, reach[1] + spare)
    axes.set_ylim(low, high)
    places = {found.middle: _Place(0.0, 0.0, 0)} | _placed(left, -1, found, rows) | _placed(right, 1, found, rows)
    half = _width(names.label(found.middle), MIDDLE, bold=True) / 2 + 0.1
    for one, other in found.across:
        _arc(axes, places[one], places[other], found.across[one, other])
    for edge in (*found.edges, *(each for edges in found.further.values() for each in edges)):
        _line(axes, edge, places, names, half)
    guesses = {edge.other for edge in found.edges if edge.guess}
    for name, place in places.items():
        if name != found.middle:
            rim = GUESSED(0.8) if name in guesses else KNOWN(0.9)
            colour = _colour(name, names, kinds)
            axes.scatter([place.x], [place.y], s=110, color=colour, edgecolor=rim, linewidth=1.3, zorder=4)
    _texts(axes, found, names, places, _colour(found.middle, names, kinds))
    _header(axes, found, judge, keys)
    _legend(axes, found)
    return figure


def _colour(name: str, names: Names, kinds: Mapping[str, str]) -> str:
    return kinds.get(names.types.get(name, ""), OTHER_KIND if kinds else KINDS[0])


def _width(text: str, size: float, *, bold: bool = False) -> float:
    """Return the inches that a text takes; a dollar begins no formula."""
    font = FontProperties(family=LOOK["font.family"], weight="bold" if bold else "normal")
    return float(TextPath((0, 0), text.replace("$", "S") or "x", size=size, prop=font).get_extents().width) / 72


def _sides(found: Neighbourhood) -> tuple[list[Edge], list[Edge]]:
    """Deal the edges out to both sides, in order, so that both have about as many lines."""
    edges = sorted(found.edges, key=lambda each: (each.guess, each.relation, each.other == each.head))
    need = [_lines(edge, found) for edge in edges]
    total = np.cumsum(need)
    half = int(np.searchsorted(total, total[-1] / 2)) + 1 if edges else 0
    return edges[half:], edges[:half]


def _lines(edge: Edge, found: Neighbourhood) -> int:
    return max(1, len(found.further.get(edge.other, ())))


def _rows(edges: Sequence[Edge], found: Neighbourhood) -> int:
    return sum(_lines(edge, found) for edge in edges)


def _widest(edges: Sequence[Edge], found: Neighbourhood, names: Names) -> float:
    """Return the inches of the longest text beyond a side's outermost entities."""
    outer = [each for edge in edges for each in (found.further.get(edge.other) or (edge,))]
    own = ((_width(names.label(each.other), NAME), _width(_told(each, names), TOLD)) for each in outer)
    return max((max(each) for each in own), default=0.0)


def _placed(edges: Sequence[Edge], side: int, found: Neighbourhood, rows: int) -> dict[str, _Place]:
    """Return the places of one side's neighbours and of theirs."""
    own = _rows(edges, found)
    tall = rows * ROW / 2
    places: dict[str, _Place] = {}
    line = 0
    for edge in edges:
        need = _lines(edge, found)
        ys = [(own / 2 - line - each - 0.5) * ROW for each in range(need)]
        y = float(np.mean(ys))
        places[edge.other] = _Place(side * (HALF - 0.75 * (y / tall) ** 2), y, side)
        for each, at in zip(found.further.get(edge.other, ()), ys, strict=False):
            places[each.other] = _Place(side * (HALF + STEP - 0.35 * (at / tall) ** 2), at, side)
        line += need
    return places


def _line(axes: Any, edge: Edge, places: Mapping[str, _Place], names: Names, half: float) -> None:
    """Draw a fact from its head to its tail; a dashed line has a head of its own, which is not dashed."""
    ends = places[edge.head], places[edge.tail]
    start, end = (np.array([each.x, each.y]) for each in ends)
    way = (end - start) / max(float(np.hypot(*(end - start))), 1e-9)
    start, end = start + way * _gap(ends[0], way, half), end - way * _gap(ends[1], way, half)
    colour, stroke = (GUESSED if edge.guess else KNOWN)(edge.confidence), _stroke(edge.confidence)
    pointed = edge.relation not in names.undirected
    stop = end - way * (0.1 + 0.03 * stroke) if pointed else end
    dashes: Any = DASHES if edge.guess else "solid"
    axes.plot(
        [start[0], stop[0]],
        [start[1], stop[1]],
        color=colour,
        linewidth=stroke,
        linestyle=dashes,
        solid_capstyle="butt",
        dash_capstyle="butt",
        zorder=2,
    )
    if pointed:
        across = np.array([-way[1], way[0]]) * (0.042 + 0.013 * stroke)
        tip = np.array([end, stop + across - way * 0.02, stop - across - way * 0.02])
        axes.add_patch(Polygon(tip, closed=True, facecolor=colour, edgecolor="none", zorder=3))


def _gap(place: _Place, way: Any, half: float) -> float:
    """Return the inches from the middle of an entity to its rim: of the one in the middle, of its box."""
    if place.side:
        return 0.11
    across, upright = abs(float(way[0])), abs(float(way[1]))
    return min(half / max(across, 1e-9), 0.19 / max(upright, 1e-9)) + 0.03


def _arc(axes: Any, one: _Place, other: _Place, confidence: float) -> None:
    """Draw a fact between two neighbours, thin and pale: bent towards the middle where both are on one side."""
    if one.y < other.y:
        one, other = other, one
    bend = 0.0 if one.side != other.side else -0.3 * one.side
    axes.add_patch(
        FancyArrowPatch(
            (one.x, one.y),
            (other.x, other.y),
            arrowstyle="-",
            connectionstyle=f"arc3,rad={-bend}",
            shrinkA=6,
            shrinkB=6,
            linewidth=0.5 + 1.2 * confidence,
            color=PALE,
            zorder=1,
        )
    )


def _texts(axes: Any, found: Neighbourhood, names: Names, places: Mapping[str, _Place], colour: str) -> None:
    """Write names outwards of the outermost, above the others, and of each fact its relation and confidence below."""
    halo = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.88}
    inner = {name for name, edges in found.further.items() if edges}
    for edge in (*found.edges, *(each for edges in found.further.values() for each in edges)):
        place = places[edge.other]
        label, told = names.label(edge.other), _told(edge, names)
        if edge.other in inner:
            above: Any = {"ha": "center", "bbox": halo, "zorder": 5}
            axes.text(place.x, place.y + 0.14, label, va="bottom", fontsize=9.5, **above)
            axes.text(place.x, place.y - 0.14, told, va="top", fontsize=7.2, color=SOFT, **above)
            continue
        x, anchor = place.x + 0.16 * place.side, "left" if place.side > 0 else "right"
        axes.text(x, place.y + 0.02, label, ha=anchor, va="bottom", fontsize=NAME, zorder=5)
        axes.text(x, place.y - 0.02, told, ha=anchor, va="top", fontsize=TOLD, color=SOFT, zorder=5)
    box = {"boxstyle": "round,pad=0.5,rounding_size=0.9", "facecolor": _tint(colour), "edgecolor": KNOWN(0.9)}
    middle = names.label(found.middle)
    axes.text(0, 0, middle, ha="center", va="center", fontsize=MIDDLE, weight="bold", bbox=box, zorder=6)


def _tint(colour: str) -> tuple[float, float, float]:
    """Return a paler colour, on which ink is easily read."""
    red, green, blue = to_rgb(colour)
    return (0.45 + 0.55 * red, 0.45 + 0.55 * green, 0.45 + 0.55 * blue)


def _told(edge: Edge, names: Names) -> str:
    """Return the relation, which way it goes, and how confident the fact is."""
    relation = _cut(str(shown(edge.relation)), LONGEST_RELATION)
    way = "–" if edge.relation in names.undirected else "→" if edge.tail == edge.other else "←"
    within = "" if edge.low is None or edge.high is None else f" ({edge.low:.2f}–{edge.high:.2f})"
    return f"{way} {relation}  {edge.confidence:.2f}{within}"


def _header(axes: Any, found: Neighbourhood, judge: str, keys: Sequence[Sequence[tuple[str, str]]]) -> None:
    """Say what is shown, and which colour stands for which type."""
    x, y = axes.get_xlim()[0] + EDGE, axes.get_ylim()[1] - 0.2
    guesses = sum(edge.guess for edge in found.edges)
    own = len(found.edges) - guesses
    known = f"{own} of its {found.facts:,} facts in the graph" if own < found.facts else "all its facts in the graph"
    guessed = f", {guesses} predicted by {judge}" if guesses else ""
    axes.text(x, y, f"{known}{guessed}", ha="left", va="top", fontsize=8.5, color=SOFT)
    for row, line in enumerate(keys):
        at = y - 0.34 - 0.24 * row
        own_x = x + 0.06
        for kind, colour in line:
            axes.scatter([own_x], [at], s=50, color=colour, edgecolor=KNOWN(0.9), linewidth=0.8)
            axes.text(own_x + 0.12, at, kind, ha="left", va="center", fontsize=NOTE, color=SOFT)
            own_x += _key_width(kind)


def _wrapped(kinds: Mapping[str, str], width: float) -> list[list[tuple[str, str]]]:
    """Return the types with their colours, in lines that are not wider than the picture."""
    lines: list[list[tuple[str, str]]] = []
    left = 0.0
    for kind, colour in kinds.items():
        label = _cut(str(shown(kind)), LONGEST)
        if not lines or _key_width(label) > left:
            lines.append([])
            left = width
        lines[-1].append((label, colour))
        left -= _key_width(label)
    return lines


def _key_width(label: str) -> float:
    return 0.36 + _width(label, NOTE)


def _legend(axes: Any, found: Neighbourhood) -> None:
    """Show what a line means."""
    right, bottom = axes.get_xlim()[1] - EDGE, axes.get_ylim()[0]
    guesses = any(edge.guess for edge in found.edges)
    kept: list[tuple[str, Any, Any]] = [("in the graph", KNOWN, "solid")]
    kept += [("predicted", GUESSED, DASHES)] if guesses else []
    start = right - 0.62 * len(STEPS) + 0.12
    for row, (what, colours, style) in enumerate(kept):
        y = bottom + 0.40 - 0.19 * row
        axes.text(start - 0.14, y, what, ha="right", va="center", fontsize=NOTE, color=SOFT)
        for place, confidence in enumerate(STEPS):
            x = start + 0.62 * place
            axes.plot(
                [x, x + 0.5],
                [y, y],
                color=colours(confidence),
                linewidth=_stroke(confidence),
                linestyle=style,
                solid_capstyle="butt",
                dash_capstyle="butt",
            )
    for place, confidence in enumerate(STEPS):
        x = start + 0.62 * place + 0.25
        axes.text(x, bottom + 0.5, f"{confidence:g}", ha="center", va="bottom", fontsize=7.2, color=SOFT)
    if found.across:
        left = axes.get_xlim()[0] + EDGE
        axes.plot([left, left + 0.5], [bottom + 0.21] * 2, color=PALE, linewidth=1.1)
        said = "facts of the graph between neighbours"
        axes.text(left + 0.6, bottom + 0.21, said, ha="left", va="center", fontsize=NOTE, color=SOFT)
    axes.text(start - 0.14, bottom + 0.5, "confidence", ha="right", va="bottom", fontsize=7.2, color=SOFT)


def _kinds(found: Neighbourhood, names: Names) -> dict[str, str]:
    """Return a colour for each type that is there, the most frequent first; what is left has one of its own."""
    counts: dict[str, int] = {}
    for name in found.names:
        if name in names.types:
            counts[names.types[name]] = counts.get(names.types[name], 0) + 1
    kinds = sorted(counts, key=lambda each: -counts[each])[: len(KINDS)]
    return dict(zip(kinds, KINDS, strict=False))


def _stroke(confidence: float) -> float:
    return float(0.8 + 3.2 * confidence**1.5)


def _cut(text: str, longest: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= longest else line[: longest - 1].rstrip() + "…"
