"""Small SVG pictures, for pages and notebooks; the colours of their classes come from there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

WIDTH, HEIGHT = 300, 110
LEFT, BOTTOM = 4, 18


def histogram(counts: Sequence[int]) -> str:
    """Return the histogram of confidences from 0 to 1 as an SVG; a bar tells its count when pointed at."""
    highest = max(counts) or 1
    plot = HEIGHT - BOTTOM - 2
    step = (WIDTH - 2 * LEFT) / len(counts)
    bars = []
    for at, count in enumerate(counts):
        tall = max(count / highest * plot, 1.0) if count else 0.0
        low, high = at / len(counts), (at + 1) / len(counts)
        bars.append(
            f'<rect class="bar" x="{LEFT + at * step + 1:.1f}" y="{HEIGHT - BOTTOM - tall:.1f}" width="{step - 2:.1f}" '
            f'height="{tall:.1f}" rx="1.5"><title>{low:.2f}–{high:.2f}: {count:,}</title></rect>'
        )
    axis = f'<line class="axis" x1="0" y1="{HEIGHT - BOTTOM}" x2="{WIDTH}" y2="{HEIGHT - BOTTOM}"/>'
    marks = "".join(
        f'<text x="{x}" y="{HEIGHT - 4}" text-anchor="{anchor}">{mark}</text>'
        for x, anchor, mark in ((LEFT, "start", "0"), (WIDTH / 2, "middle", "0.5"), (WIDTH - LEFT, "end", "1"))
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
        f'aria-label="Histogram of confidences">{"".join(bars)}{axis}{marks}</svg>'
    )


def bar(share: float, *, warn: bool = False) -> str:
    """Return a horizontal bar that fills `share` of its track."""
    kind = "warn" if warn else "bar"
    return (
        '<svg viewBox="0 0 120 8" width="120" height="8" aria-hidden="true">'
        '<rect class="track" width="120" height="8" rx="4"/>'
        f'<rect class="{kind}" width="{120 * min(max(share, 0.0), 1.0):.1f}" height="8" rx="4"/></svg>'
    )


def curve(points: Sequence[tuple[float, float]], name: str, *, best: float | None = None) -> str:
    """Return a line through (epoch, value) points as an SVG, with its bounds told and its best marked; one is none."""
    drawn = [(x, y) for x, y in points if math.isfinite(y)]
    if len(drawn) < 2:
        return ""
    first, last = drawn[0][0], drawn[-1][0]
    low, high = min(y for _, y in drawn), max(y for _, y in drawn)
    floor, right = HEIGHT - BOTTOM, WIDTH - 52

    def place(x: float, y: float) -> str:
        across = LEFT + (x - first) / ((last - first) or 1.0) * (right - LEFT)
        return f"{across:.1f},{floor - 4 - (y - low) / ((high - low) or 1.0) * (floor - 14):.1f}"

    line = " ".join(place(x, y) for x, y in drawn)
    marks = [(LEFT, HEIGHT - 4, "start", f"epoch {first:g}"), (right, HEIGHT - 4, "end", f"{last:g}")]
    values = [high] if high == low else [high, low]
    marks += [(WIDTH, 10 if at == 0 else floor, "end", f"{value:.3g}") for at, value in enumerate(values)]
    circle = ""
    for x, y in drawn:
        if x == best:
            across, up = place(x, y).split(",")
            circle = f'<circle class="bar" cx="{across}" cy="{up}" r="3"><title>epoch {x:g}: {y:.5f}</title></circle>'
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" aria-label="{escape(name)}">'
        f'<polyline class="line" points="{line}"/>{circle}'
        f'<line class="axis" x1="0" y1="{floor}" x2="{right}" y2="{floor}"/>'
        + "".join(f'<text x="{x}" y="{y}" text-anchor="{anchor}">{mark}</text>' for x, y, anchor, mark in marks)
        + "</svg>"
    )


def signed_bar(value: float, largest: float) -> str:
    """Return a bar from the middle to the left for a negative value, to the right for a positive one."""
    wide = 60 * min(abs(value) / (largest or 1.0), 1.0)
    kind, start = ("warn", 60 - wide) if value < 0 else ("bar", 60.0)
    return (
        '<svg viewBox="0 0 120 8" width="120" height="8" aria-hidden="true">'
        '<line class="axis" x1="60" y1="0" x2="60" y2="8"/>'
        f'<rect class="{kind}" x="{start:.1f}" width="{wide:.1f}" height="8" rx="2"/></svg>'
    )
