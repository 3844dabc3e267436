"""Small SVG pictures for the audit page."""

from __future__ import annotations

from collections.abc import Sequence

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
