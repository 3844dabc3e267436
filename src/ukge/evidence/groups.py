"""How many facts a head, a tail and a relation have, and how sure those usually are."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ukge.evidence.batch import FactBatch
from ukge.evidence.tables import UNIT, Added, Groups, Sums, Tables
from ukge.graph.index import FactIndex
from ukge.graph.keys import Keys

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


def expected_of_relation(tables: Tables, asked: FactBatch, added: Added) -> tuple[Floats, Floats]:
    """Return mean and variance of the confidences of each fact's relation, without what the fact itself `added`.

    A relation without facts has those of all facts.
    """
    groups = tables.by_relation
    count, total, squares = _sums(groups, asked.relation.astype(np.int64), added)
    all_count = max(groups.count.sum(), 1)
    all_mean, all_square = groups.total.sum() / all_count, groups.squares.sum() / all_count
    mean = np.where(count > 0, total / np.maximum(count, 1), all_mean)
    square = np.where(count > 0, squares / np.maximum(count, 1), all_square)
    return mean / UNIT, np.maximum(square - mean * mean, 0.0) / UNIT**2


def group_columns(
    index: FactIndex, tables: Tables, asked: FactBatch, added: Added, out: npt.NDArray[np.float32]
) -> None:
    """Fill the columns `NAMES`, without what each fact itself `added` to the sums."""
    head, relation, tail, _ = asked
    query, inverse = index.query_keys(head, relation), index.query_keys(tail, relation)
    column = 0
    for groups, keys in (
        (tables.by_relation, relation.astype(np.int64)),
        (tables.by_head_relation, query),
        (tables.by_relation_tail, inverse),
    ):
        out[:, column], out[:, column + 1], out[:, column + 2] = _moments(groups, keys, added)
        column += 3
    for groups, entity in ((tables.by_head, head), (tables.by_tail, tail)):
        out[:, column], out[:, column + 1], _ = _moments(groups, entity.astype(np.int64), added)
        column += 2
    # In the groups of the other end are only facts of an entity with itself, and those without a direction.
    turned = added.only((head == tail) | index.graph.undirected_relations[relation])
    out[:, column] = _sums(tables.by_relation_tail, query, turned)[0]
    out[:, column + 1] = _sums(tables.by_head_relation, inverse, turned)[0]
    out[:, column + 2] = _sums(tables.by_tail, head.astype(np.int64), turned)[0]
    out[:, column + 3] = _sums(tables.by_head, tail.astype(np.int64), turned)[0]


def _moments(groups: Groups, keys: Keys, added: Added) -> tuple[Sums, Floats, Floats]:
    count, total, squares = _sums(groups, keys, added)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(count > 0, total / count, np.nan)
        variance = np.where(count > 1, squares / count - mean * mean, np.nan)
    return count, mean / UNIT, np.sqrt(np.maximum(variance, 0.0)) / UNIT


def _sums(groups: Groups, keys: Keys, added: Added) -> tuple[Sums, ...]:
    if len(groups.key) == 0:
        zero = np.zeros(len(keys), dtype=np.int64)
        return zero, zero, zero
    at = groups.find(keys)
    found = at >= 0
    pairs = ((groups.count, added.count), (groups.total, added.total), (groups.squares, added.squares))
    return tuple(np.where(found, each[at], 0) - less for each, less in pairs)
