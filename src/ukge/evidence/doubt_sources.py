"""Doubt by source: whose facts are contradicted, in which direction, and how many of them likely do not hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from ukge.evidence.doubt import Judgement
from ukge.evidence.holding import Holding
from ukge.graph.arrow import to_numpy
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Ids

UNNAMED = "(no source)"


@dataclass(frozen=True, slots=True)
class SourceDoubt:
    """What is doubtful about the facts of one source."""

    source: str
    facts: int
    gap: float
    """mean of stored − expected confidence: above 0, the source says too high ones"""
    too_high: float
    """share of the facts whose stored confidence is contradicted and above the expected one"""
    too_low: float
    """the same below"""
    false: float
    """share of the facts that do not hold, by the mean of their chances"""


def doubt_by_source(judged: Judgement, holding: Holding) -> list[SourceDoubt]:
    """Return a line for each source, that with the largest share of false facts first.

    A stored confidence counts as contradicted where a random one would be likelier. Facts without a source are one
    source; a graph whose facts name none has one line.
    """
    graph = judged.graph
    names, code = codes(graph)
    gap = graph.confidence - judged.expected
    contradicted = judged.surprise > 0.0
    found = []
    for number, name in enumerate(names):
        own = code == number
        if not own.any():
            continue
        too_high, too_low = (float((contradicted & side)[own].mean()) for side in (gap > 0, gap <= 0))
        false = float(1.0 - holding.chance[own].mean())
        found.append(SourceDoubt(name, int(own.sum()), float(gap[own].mean()), too_high, too_low, false))
    return sorted(found, key=lambda each: (-each.false, each.source))


def codes(graph: UncertainGraph) -> tuple[list[str], Ids]:
    """Return the names of the sources, and the place of each fact's own among them."""
    if graph.source is None:
        return [UNNAMED], np.zeros(len(graph), dtype=np.int32)
    names = [str(each) for each in graph.source.dictionary.to_pylist()]
    code = to_numpy(graph.source.indices.fill_null(len(names)).cast(pa.int32()))
    return [*names, UNNAMED], code
