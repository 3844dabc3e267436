"""Labelled facts: which of the claimed facts are known to be true or false."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ukge.errors import DataError
from ukge.fusing.voices import Floats, Ints
from ukge.graph.columns import check_confidence, confidence_column, names_column
from ukge.graph.keys import find, triple_keys
from ukge.graph.uncertain import UncertainGraph

FEWEST = 20
"""Labelled facts that anything is learnt from."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """A label per fact, NaN where there is none."""

    label: Floats
    missed: int = 0
    """labelled facts that nobody claims"""

    @property
    def rows(self) -> Ints:
        """The facts that have a label."""
        return np.flatnonzero(~np.isnan(self.label))


def labels_of(labelled: Any, facts: UncertainGraph) -> Labelled:
    """Return labels as given: an array with one per fact, or a table of facts with a column label (or truth)."""
    if isinstance(labelled, Labelled):
        return _checked(labelled)
    if isinstance(labelled, (np.ndarray, list)) and np.ndim(labelled) == 1 and len(labelled) == len(facts):
        label = np.asarray(labelled, np.float64)
        check_confidence(label[~np.isnan(label)], column="label")
        return _checked(Labelled(label))
    from ukge.graph.fact import TRIPLE  # noqa: PLC0415
    from ukge.graph.given import as_table  # noqa: PLC0415
    from ukge.graph.readers.frames import columns_of  # noqa: PLC0415
    from ukge.graph.readers.layout import Roles  # noqa: PLC0415

    table = as_table(labelled)
    if table is None:
        raise DataError(
            "labels are a table of facts with a column label, or an array with one per fact",
            hint="Give a frame with head, relation, tail and label.",
        )
    found = columns_of(table, wanted=Roles((*TRIPLE, "label"), (), more=True))
    head, relation, tail = (found.texts(role) for role in TRIPLE)
    return match_labels(head, relation, tail, found.numbers("label"), facts)


def match_labels(head: Any, relation: Any, tail: Any, label: Any, facts: UncertainGraph) -> Labelled:
    """Find labelled facts among the claimed ones; one that is labelled several times has the mean of its labels."""
    values = confidence_column(label)
    check_confidence(values, column="label")
    ids = [
        names.encode(names_column(column, role))
        for names, column, role in (
            (facts.entities, head, "head"),
            (facts.relations, relation, "relation"),
            (facts.entities, tail, "tail"),
        )
    ]
    known = np.flatnonzero(np.logical_and.reduce([each >= 0 for each in ids]))
    stored = facts.as_stored(*(each[known] for each in ids))
    keys = triple_keys(*stored, facts.n_entities, facts.n_relations)
    own = facts.keys()
    order = np.argsort(own, kind="stable")
    place = find(own[order], keys)
    row, told = order[place[place >= 0]], values[known[place >= 0]]
    count = np.bincount(row, minlength=len(facts))
    mean = np.bincount(row, told, minlength=len(facts)) / np.maximum(count, 1)
    return _checked(Labelled(np.where(count > 0, mean, np.nan), len(values) - len(row)))


def _checked(labelled: Labelled) -> Labelled:
    known = labelled.label[labelled.rows]
    if len(known) < FEWEST:
        beside = f" ({labelled.missed:,} others are of facts that nobody claims)" if labelled.missed else ""
        raise DataError(
            f"{len(known)} labelled facts are too few to learn from{beside}",
            hint=f"Give {FEWEST} or more, or none: then sources are judged by how they agree.",
        )
    if known.min() == known.max():
        raise DataError("all labels are equal, so nothing can be learnt from them", hint="Label false facts too.")
    return labelled
