"""What train already says about a held-out fact: the fact itself, its inverse, or its entity pair."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ukge.graph.audit.lookup import ByTriple, Floats
from ukge.graph.keys import Keys, contains, pair_keys
from ukge.graph.uncertain import UncertainGraph


@dataclass(frozen=True, slots=True)
class Twin:
    """Held-out rows that have a twin in train; `gap` is the mean absolute difference of their confidences.

    A twin that train holds several times counts with its mean confidence.
    """

    rows: int
    share: float
    gap: float | None


@dataclass(frozen=True, slots=True)
class Twins:
    """One held-out part against train.

    `exact`: (h, r, t) is in train; `inverse`: (t, r, h) is; `pair`: some relation links the two entities in train, in
    either direction (without a gap, since other relations have other confidences).
    """

    part: str
    exact: Twin
    inverse: Twin
    pair: Twin


def find_twins(part: str, held_out: UncertainGraph, known: ByTriple, pairs: Keys) -> Twins:
    """Compare a held-out part with train, whose grouped rows are `known` and whose entity pairs are `pairs`."""
    linked = int(contains(pairs, pair_keys(held_out.head, held_out.tail, held_out.n_entities)).sum())
    means = known.mean()
    return Twins(
        part,
        exact=_twin(held_out.keys(), held_out.confidence, known, means),
        inverse=_twin(held_out.inverse_keys(), held_out.confidence, known, means),
        pair=Twin(linked, _share(linked, len(held_out)), None),
    )


def _twin(keys: Keys, confidence: Floats, known: ByTriple, means: Floats) -> Twin:
    at = known.find(keys)
    found = at >= 0
    rows = int(found.sum())
    gap = float(np.abs(confidence[found] - means[at[found]]).mean()) if rows else None
    return Twin(rows, _share(rows, len(keys)), gap)


def _share(rows: int, total: int) -> float:
    return rows / total if total else 0.0
