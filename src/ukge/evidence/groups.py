"""How many facts a head, a tail and a relation have, and how sure those usually are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ukge.evidence.index import Asked, FactIndex, Places
from ukge.evidence.tables import UNIT, Groups, Tables, in_units

NAMES = (
    "relation_facts",
    "relation_confidence",
    "relation_spread",
    "query_facts",
    "query_confidence",
    "query_spread",
    "inverse_query_facts",
    "inverse_query_confidence",
    "inverse_query_spread",
    "head_facts",
    "head_confidence",
    "tail_facts",
    "tail_confidence",
    "head_as_tail",
    "tail_as_head",
    "head_as_any_tail",
    "tail_as_any_head",
)

Floats = npt.NDArray[np.float64]


def expected_of_relation(index: FactIndex, tables: Tables, asked: Asked) -> tuple[Floats, Floats]:
    """Return mean and variance of the confidences of each fact's relation, without its own row.

    A relation without facts has those of all facts.
    """
    count, total, squares = _sums(tables.by_relation, asked.relation.astype(np.int64), asked.own, index)
    all_count = max(len(index.graph), 1)
    all_mean = tables.by_relation.total.sum() / all_count
    all_square = tables.by_relation.squares.sum() / all_count
    mean = np.where(count > 0, total / np.maximum(count, 1), all_mean)
    square = np.where(count > 0, squares / np.maximum(count, 1), all_square)
    return mean / UNIT, np.maximum(square - mean * mean, 0.0) / UNIT**2


def group_columns(index: FactIndex, tables: Tables, asked: Asked, out: npt.NDArray[np.float32]) -> None:
    """Fill the columns `NAMES`."""
    head, relation, tail, own = asked
    query, inverse = index.query_keys(head, relation), index.query_keys(tail, relation)
    column = 0
    for groups, keys in (
        (tables.by_relation, relation.astype(np.int64)),
        (tables.by_head_relation, query),
        (tables.by_relation_tail, inverse),
    ):
        out[:, column], out[:, column + 1], out[:, column + 2] = _moments(groups, keys, own, index)
        column += 3
    for groups, entity in ((tables.by_head, head), (tables.by_tail, tail)):
        out[:, column], out[:, column + 1], _ = _moments(groups, entity.astype(np.int64), own, index)
        column += 2
    loop = np.where(head == tail, own, -1)  # only a fact of an entity with itself is in the groups of the other end
    out[:, column] = _sums(tables.by_relation_tail, query, loop, index)[0]
    out[:, column + 1] = _sums(tables.by_head_relation, inverse, loop, index)[0]
    out[:, column + 2] = _sums(tables.by_tail, head.astype(np.int64), loop, index)[0]
    out[:, column + 3] = _sums(tables.by_head, tail.astype(np.int64), loop, index)[0]


def _moments(
    groups: Groups, keys: npt.NDArray[np.int64], own: Places, index: FactIndex
) -> tuple[npt.NDArray[np.int64], Floats, Floats]:
    count, total, squares = _sums(groups, keys, own, index)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(count > 0, total / count, np.nan)
        variance = np.where(count > 1, squares / count - mean * mean, np.nan)
    return count, mean / UNIT, np.sqrt(np.maximum(variance, 0.0)) / UNIT


def _sums(
    groups: Groups, keys: npt.NDArray[np.int64], own: Places, index: FactIndex
) -> tuple[npt.NDArray[np.int64], ...]:
    at = groups.find(keys)
    found, left_out = at >= 0, own >= 0
    units = np.where(left_out, in_units(index.confidence[np.maximum(own, 0)]) if len(index.confidence) else 0, 0)
    one = left_out.astype(np.int64)
    if len(groups.key) == 0:
        zero = np.zeros(len(keys), dtype=np.int64)
        return zero, zero, zero
    sums = (groups.count, groups.total, groups.squares)
    minus = (one, units, units * units)
    return tuple(np.where(found, each[at], 0) - less for each, less in zip(sums, minus, strict=True))
