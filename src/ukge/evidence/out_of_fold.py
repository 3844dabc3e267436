"""What known facts say about each other: the evidence about every known fact, from facts of other parts.

Leaving out only the fact itself would not do for facts that trees learn from: a mean without one fact tells, beside
the means without each of the others, what that fact's confidence was. So the known facts are cut into parts, and those
of a part are judged by the facts of all other parts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from ukge.evidence.boosting import grow
from ukge.evidence.features import EXPECTED, Features
from ukge.evidence.settings import EvidenceSettings
from ukge.evidence.tables import Tables
from ukge.evidence.trees import Matrix
from ukge.graph.index import FactIndex
from ukge.logic.engine import using

MOST = 200_000
"""Known facts that an expectation learns from at most."""

PARTS = 10
"""Parts of the known facts that an expectation learns from."""

LEAVES, RATE = 63, 0.1
"""Trees of an expectation: there are many facts to learn from, so they may go far."""


def out_of_fold_columns(
    features: Features, part: npt.NDArray[np.int64], on_share: Callable[[float], None] = lambda _: None
) -> tuple[list[str], Matrix]:
    """Return the evidence of the other parts about every known fact, and the names of its columns.

    What models believe, and an expectation, is left out: they have learnt from the facts they would speak of.
    """
    graph = features.index.graph
    names = [name for name in features.names if not name.startswith("model:") and name != EXPECTED]
    found = np.empty((len(graph), len(names)), dtype=np.float32)
    with using("duckdb") as engine:
        parts = int(part.max(initial=0)) + 1
        for number in range(parts):
            held = part == number
            others, own = FactIndex(graph[np.flatnonzero(~held)]), graph[np.flatnonzero(held)]
            blind = replace(features, index=others, tables=Tables.of(others, engine), expectation=None)
            asked = [blind.names.index(name) for name in names]
            found[held] = blind.columns(own.head, own.relation, own.tail)[:, asked]
            on_share((number + 1) / parts)
    return names, found


def with_expectation(
    features: Features, settings: EvidenceSettings, on_share: Callable[[float], None] = lambda _: None
) -> Features:
    """Return evidence with one more column: the confidence that known facts with such evidence have.

    There are many more known facts than validation facts, so they show better what the graph's own evidence means.
    Models have no part in it.
    """
    graph = features.index.graph
    if settings.expectation_trees == 0 or len(graph) < PARTS:
        return features
    rng = np.random.default_rng(settings.seed)
    part = rng.permutation(len(graph)) % PARTS
    alone = replace(features, backbones=(), expectation=None)
    _, columns = out_of_fold_columns(alone, part, lambda share: on_share(share / 2))
    rows = np.sort(rng.permutation(len(graph))[:MOST])
    trees = replace(settings, iterations=settings.expectation_trees, leaves=LEAVES, learning_rate=RATE)
    return replace(features, expectation=grow("squared_error", columns[rows], graph.confidence[rows], trees))
