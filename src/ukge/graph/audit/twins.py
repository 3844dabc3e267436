"""What train already says about a held-out fact: the fact itself, its inverse, or its entity pair."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ukge.graph.index import FactIndex
from ukge.graph.queries import Floats
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

    `exact`: (h, r, t) is in train; `inverse`: (t, r, h) is, of a relation with a direction; `pair`: some relation links
    the two entities in train, in either direction (without a gap, since other relations have other confidences).
    """

    part: str
    exact: Twin
    inverse: Twin
    pair: Twin


def find_twins(part: str, held_out: UncertainGraph, known: FactIndex) -> Twins:
    """Compare a held-out part with train, whose facts are `known`."""
    head, relation, tail = held_out.head, held_out.relation, held_out.tail
    linked = int(known.linked(head, tail).sum())
    mirror = known.stored(tail, relation, head)
    mirror[held_out.undirected_relations[relation]] = np.nan  # it is the fact itself
    return Twins(
        part,
        exact=_twin(held_out.confidence, known.stored(head, relation, tail)),
        inverse=_twin(held_out.confidence, mirror),
        pair=Twin(linked, _share(linked, len(held_out)), None),
    )


def _twin(confidence: Floats, twin: Floats) -> Twin:
    found = ~np.isnan(twin)
    rows = int(found.sum())
    gap = float(np.abs(confidence[found] - twin[found]).mean()) if rows else None
    return Twin(rows, _share(rows, len(confidence)), gap)


def _share(rows: int, total: int) -> float:
    return rows / total if total else 0.0
