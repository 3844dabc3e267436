"""What a notebook shows of an object: a line that says what it is, pictures, and a small table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from ukge.graph.pictures import histogram, signed_bar

if TYPE_CHECKING:
    from ukge.graph.uncertain import UncertainGraph

BINS = 20
SHOWN = 5
"""Facts that a table shows."""

# Colours that are seen on light and on dark pages; the text has the colour of the page.
STYLE = """<style>
.ukge p { margin: 0 0 6px; }
.ukge .soft, .ukge figcaption { opacity: 0.7; font-size: 12px; }
.ukge .row { display: flex; flex-wrap: wrap; gap: 18px; align-items: flex-start; }
.ukge figure { margin: 0 0 6px; }
.ukge table { border-collapse: collapse; margin: 0; font-size: 12px; }
.ukge th, .ukge td { text-align: left; padding: 2px 12px 2px 0; border: 0; background: none; }
.ukge th { font-weight: 500; opacity: 0.7; }
.ukge td.number { text-align: right; font-variant-numeric: tabular-nums; }
.ukge .bar { fill: #3d82b8; } .ukge .warn { fill: #d0752f; }
.ukge .axis { stroke: #8888; } .ukge .line { fill: none; stroke: #3d82b8; stroke-width: 1.5; }
.ukge svg text { fill: currentColor; opacity: 0.7; font: 11px system-ui, sans-serif; }
</style>"""


def card(what: str, *parts: str) -> str:
    """Return what an object is, in words that are not HTML yet, and parts that are."""
    shown = "".join(part for part in parts if part)
    return f'{STYLE}<div class="ukge"><p>{escape(what)}</p><div class="row">{shown}</div></div>'


def figure(caption: str, picture: str) -> str:
    """Return a picture with a line above it; nothing if there is none."""
    return f"<figure><figcaption>{escape(caption)}</figcaption>{picture}</figure>" if picture else ""


def table(head: Sequence[str], rows: Iterable[Sequence[str | float]], caption: str = "") -> str:
    """Return a table of names and numbers."""
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    note = f'<p class="soft">{escape(caption)}</p>' if caption else ""
    return f"<div><table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>{note}</div>"


def _cell(value: str | float) -> str:
    return f"<td>{escape(value)}</td>" if isinstance(value, str) else f'<td class="number">{value:.3f}</td>'


def share_table(shares: Sequence[tuple[float, str]]) -> str:
    """Return what moved a number by how much, as bars to the left and to the right."""
    largest = max((abs(moved) for moved, _ in shares), default=0.0)
    rows = "".join(
        f'<tr><td class="number">{moved:+.3f}</td><td>{signed_bar(moved, largest)}</td><td>{escape(why)}</td></tr>'
        for moved, why in shares
    )
    return f"<table><tbody>{rows}</tbody></table>"


def confidence_figure(graph: UncertainGraph, caption: str) -> str:
    """Return how the confidences of a graph are distributed."""
    counts, _ = np.histogram(graph.confidence, bins=BINS, range=(0.0, 1.0))
    return figure(caption, histogram(counts.tolist()))


def fact_table(graph: UncertainGraph) -> str:
    """Return the first facts of a graph."""
    rows = [fact[:4] for fact in graph[:SHOWN]]
    more = f"… and {len(graph) - SHOWN:,} more" if len(graph) > SHOWN else ""
    return table(["head", "relation", "tail", "confidence"], rows, more)
