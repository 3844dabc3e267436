"""Negative links of several kinds, for trees to learn from."""

from __future__ import annotations

import numpy as np

from ukge.errors import DataError
from ukge.evidence.settings import EvidenceSettings
from ukge.graph.dataset import Dataset
from ukge.graph.keys import contains
from ukge.graph.negatives import KINDS, Ground, Slots, negative_links
from ukge.graph.uncertain import UncertainGraph, concat


def mixed_negatives(dataset: Dataset, settings: EvidenceSettings) -> tuple[UncertainGraph, list[str]]:
    """Return links like the validation facts that are no training or validation facts, and what could not be had.

    A kind that does not find enough links on a small or dense graph is left out; that none finds any is an error.
    """
    total = sum(settings.negatives.values())
    drawn: list[UncertainGraph] = []
    notes: list[str] = []
    taken = np.zeros(0, dtype=np.int64)
    for number, (kind, share) in enumerate(sorted(settings.negatives.items())):
        n = round(len(dataset.val) * settings.negatives_per_fact * share / total)
        if n == 0:
            continue
        try:
            draw = _blindly_drawn if settings.negatives_may_hold else negative_links
            links = draw(dataset, like=dataset.val, kind=kind, n=n, seed=settings.seed + 1000 * number)
        except DataError as error:
            notes.append(f"no negative links of kind {kind}: {error.what.splitlines()[0]}")
            continue
        links = links[~contains(taken, links.keys())]
        taken = np.sort(np.concatenate([taken, links.keys()]))
        drawn.append(links)
    if not drawn:
        raise DataError("no negative links were found to learn from", hint="Is the graph complete?")
    return concat(drawn), notes


def _blindly_drawn(dataset: Dataset, like: UncertainGraph, *, kind: str, n: int, seed: int) -> UncertainGraph:
    """Return links with confidence 0, whether or not they are facts; those of an entity with itself are left out."""
    rng = np.random.default_rng(seed)
    rows = rng.integers(len(like), size=n)
    slots = Slots(like.head[rows], like.relation[rows], like.tail[rows])
    head, tail = KINDS.get(kind)(Ground(dataset.train), slots, rng)
    kept = (head >= 0) & (tail >= 0) & (head != tail)
    zero = np.zeros(int(kept.sum()))
    return dataset.train.with_facts(head[kept], slots.relation[kept], tail[kept], zero)
