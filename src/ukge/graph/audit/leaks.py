"""What train gives away of the held-out facts: the facts themselves, their inverses, their entity pairs."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ukge.errors import Wording, in_python, worded
from ukge.graph.dataset import Dataset
from ukge.graph.index import FactIndex
from ukge.graph.queries import Floats
from ukge.graph.uncertain import UncertainGraph

_PARTS = {"val": "validation", "test": "test"}
_REMEDY = (
    "‹leak_safe=True› cuts the facts so that all those of one pair of entities stay in one part: what train gives away "
    "shows nothing of what was learnt."
)


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


@dataclass(frozen=True, slots=True)
class Leaks:
    """The twins that each held-out part has in train, with the number of its facts."""

    parts: tuple[tuple[int, Twins], ...]

    @property
    def found(self) -> bool:
        """Whether there are any."""
        return any(twins.exact.rows or twins.inverse.rows or twins.pair.rows for _, twins in self.parts)

    def lines(self) -> tuple[str, ...]:
        """Return a sentence per part; one for all parts if nothing leaks."""
        if not self.parts:
            return ()
        if not self.found:
            names = " or ".join(_PARTS[twins.part] for _, twins in self.parts)
            return (f"No {names} fact has its inverse in train, is in train as it is, or links two that train links.",)
        return tuple(_line(size, twins) for size, twins in self.parts)

    def hint(self, wording: Wording = in_python) -> str:
        """Return what to do, in the words of a surface; nothing where nothing leaks."""
        return worded(_REMEDY, wording) if self.found else ""

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers by part, as plain values that JSON can hold."""
        return {twins.part: {"facts": size, **asdict(twins)} for size, twins in self.parts}


def find_leaks(dataset: Dataset) -> Leaks:
    """Compare the test and the validation facts, which choose the epoch, with train."""
    known = FactIndex(dataset.train)
    held_out = [(part, dataset.parts[part]) for part in ("test", "val") if len(dataset.parts[part])]
    return Leaks(tuple((len(facts), find_twins(part, facts, known)) for part, facts in held_out))


def _line(size: int, twins: Twins) -> str:
    return (
        f"Of {size:,} {_PARTS[twins.part]} facts {_count(twins.inverse, 'has its', 'have their')} inverse in train, "
        f"{_count(twins.exact, 'is in train as it is', 'are in train as they are')}, and "
        f"{_count(twins.pair, 'links', 'link')} two entities that train links."
    )


def _count(twin: Twin, one: str, many: str) -> str:
    if twin.rows == 0:
        return f"none {one}"
    return f"{twin.rows:,} ({percent(twin.share)}) {one if twin.rows == 1 else many}"


def percent(share: float) -> str:
    """Return a share as a percentage with one digit."""
    return f"{100 * share:.1f} %"
