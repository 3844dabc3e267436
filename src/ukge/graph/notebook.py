"""What a notebook shows of a graph: how its confidences are distributed, and its first facts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ukge.html.card import Figure, Table
from ukge.html.pictures import histogram

if TYPE_CHECKING:
    from ukge.graph.uncertain import UncertainGraph

BINS = 20
SHOWN = 5
"""Facts that a table shows."""


def confidence_figure(graph: UncertainGraph, caption: str) -> Figure:
    """Return how the confidences of a graph are distributed."""
    counts, _ = np.histogram(graph.confidence, bins=BINS, range=(0.0, 1.0))
    return caption, histogram(counts.tolist())


def fact_table(graph: UncertainGraph) -> Table:
    """Return the first facts of a graph."""
    more = f"… and {len(graph) - SHOWN:,} more" if len(graph) > SHOWN else ""
    return Table(("head", "relation", "tail", "confidence"), [fact[:4] for fact in graph[:SHOWN]], more)
