"""Small SVG pictures, for pages and notebooks; the colours of their classes come from there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from ukge.html.render import render

if TYPE_CHECKING:
    from markupsafe import Markup

WIDTH, HEIGHT = 300, 110
LEFT, BOTTOM = 4, 18


class Bin(Protocol):
    """Facts of about the same predicted confidence: their means, and how many they are."""

    predicted: float
    observed: float
    facts: int


def histogram(
    counts: Sequence[int], name: str = "Histogram of confidences", width: int = WIDTH, height: int = HEIGHT
) -> Markup:
    """Return the histogram of confidences from 0 to 1 as an SVG; a bar tells its count when pointed at."""
    highest = max(counts, default=0) or 1
    floor = height - BOTTOM
    step = (width - 2 * LEFT) / max(len(counts), 1)
    bars = []
    for at, count in enumerate(counts):
        tall = max(count / highest * (floor - 2), 1.0) if count else 0.0
        bars.append((LEFT + at * step + 1, floor - tall, tall, at / len(counts), (at + 1) / len(counts), count))
    marks = [(LEFT, "start", "0"), (width / 2, "middle", "0.5"), (width - LEFT, "end", "1")]
    size = {"width": width, "height": height, "floor": floor, "step": step}
    return render("histogram.svg", name=name, bars=bars, marks=marks, **size)


def curve(points: Sequence[tuple[float, float]], name: str, *, best: float | None = None) -> str:
    """Return a line through (epoch, value) points as an SVG, with its bounds told and its best marked; one is none."""
    drawn = [(x, y) for x, y in points if math.isfinite(y)]
    if len(drawn) < 2:
        return ""
    first, last = drawn[0][0], drawn[-1][0]
    low, high = min(y for _, y in drawn), max(y for _, y in drawn)
    floor, right = HEIGHT - BOTTOM, WIDTH - 52
    places = [
        (
            LEFT + (x - first) / ((last - first) or 1.0) * (right - LEFT),
            floor - 4 - (y - low) / ((high - low) or 1.0) * (floor - 14),
        )
        for x, y in drawn
    ]
    marks = [(LEFT, HEIGHT - 4, "start", f"epoch {first:g}"), (right, HEIGHT - 4, "end", f"{last:g}")]
    values = [high] if high == low else [high, low]
    marks += [(WIDTH, 10 if at == 0 else floor, "end", f"{value:.3g}") for at, value in enumerate(values)]
    chosen = [(*place, x, y) for place, (x, y) in zip(places, drawn, strict=True) if x == best]
    size = {"width": WIDTH, "height": HEIGHT, "floor": floor, "right": right}
    return render("curve.svg", name=name, places=places, chosen=chosen, marks=marks, **size)


def reliability(bins: Sequence[Bin]) -> Markup:
    """Return mean stored against mean predicted confidence; points are larger where there are more facts."""
    size, left, top, right, bottom = 440, 46, 14, 426, 400

    def at(x: float, y: float) -> tuple[float, float]:
        return left + (right - left) * min(1.0, max(0.0, x)), bottom - (bottom - top) * min(1.0, max(0.0, y))

    most = max((each.facts for each in bins), default=1)
    points = [(*at(each.predicted, each.observed), 4 + 4 * math.sqrt(each.facts / most), each) for each in bins]
    ticks = [(tick, *at(tick, tick)) for tick in (0.0, 0.25, 0.5, 0.75, 1.0)]
    edges = {"left": left, "top": top, "right": right, "bottom": bottom}
    return render("reliability.svg", size=size, ticks=ticks, points=points, **edges)
