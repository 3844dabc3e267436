"""What the facts say in sums: per group of facts, and per pair of relations that link the same entities.

From the groups come columns: how many facts a head, a tail and a relation have, and how sure those usually are.

The sums are made by the relational seam. Confidences enter as whole hundred-thousandths, so that every engine and every
number of threads gives the same sums, and so that one fact can be taken out of them exactly. A fact of a relation
without a direction is summed up from both its ends, as it is looked up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ukge.evidence.lookup import FactBatch, find
from ukge.graph.index import FactIndex, Triples
from ukge.graph.keys import Keys
from ukge.graph.queries import Floats

if TYPE_CHECKING:
    from ukge.logic.engine import Engine

UNIT = 100_000
"""Parts that a confidence of 1 has in the sums."""

Sums = npt.NDArray[np.int64]

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


def in_units(confidence: npt.NDArray[Any]) -> Sums:
    """Return confidences as whole parts of `UNIT`."""
    return np.rint(np.asarray(confidence, dtype=np.float64) * UNIT).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of facts by a key, sorted: how many facts, the sum of their confidences, and that of the squares."""

    key: Keys
    count: Sums
    total: Sums
    squares: Sums


@dataclass(frozen=True, eq=False)
class Added:
    """What facts added to the sums of a group: how many rows, the sum of their confidences, and that of the squares."""

    count: Sums
    total: Sums
    squares: Sums

    @classmethod
    def by_fact(cls, facts: Triples) -> Added:
        """Sum up the rows of each known fact."""
        units = in_units(facts.confidence)
        if len(facts) == 0:
            return cls.nothing(0)
        first = facts.start[:-1]
        return cls(facts.count, np.add.reduceat(units, first), np.add.reduceat(units * units, first))

    @classmethod
    def nothing(cls, n: int) -> Added:
        """Return that n facts added nothing."""
        return cls(*(np.zeros(n, dtype=np.int64) for _ in range(3)))

    def of(self, own: npt.NDArray[np.int64]) -> Added:
        """Return what some facts added, by their places; −1 added nothing."""
        return self.only(own >= 0, own)

    def only(self, counted: npt.NDArray[np.bool_], at: npt.NDArray[np.int64] | slice = slice(None)) -> Added:
        """Return nothing where it does not count."""
        return Added(*(np.where(counted, each[at], 0) for each in (self.count, self.total, self.squares)))


IMPLIED = ("n", "sx", "sy", "sxx", "sxy", "syy")


@dataclass(frozen=True, eq=False)
class Implications:
    """How facts of one relation go with facts of another about the same two entities.

    An entry has the key r·2R + p: y are confidences of facts of relation r, x those of facts that are a step p from the
    head of the former to its tail (p < R: the same direction, else the inverse; a relation without a direction has only
    the former). `sums` has the columns of `IMPLIED`.
    """

    key: Keys
    sums: Sums


@dataclass(frozen=True, eq=False)
class Tables:
    """All sums over one graph."""

    by_relation: Groups
    """each fact once; the other sums have facts without a direction from both their ends"""
    by_head_relation: Groups
    by_relation_tail: Groups
    by_head: Groups
    by_tail: Groups
    implications: Implications

    @classmethod
    def of(cls, index: FactIndex, engine: str | Engine = "duckdb") -> Tables:
        """Make the sums over the facts of a graph."""
        from ukge.logic.engine import using  # noqa: PLC0415 — what is stored is asked without an engine

        n, relations = index.n_entities, index.n_relations
        head, tail = index.head.astype(np.int64), index.tail.astype(np.int64)
        columns = {
            "h": head,
            "r": index.relation.astype(np.int64),
            "t": tail,
            "c": in_units(index.confidence),
            "row": index.row,
            "as_stored": np.arange(len(index.row)) < len(index.graph),
            "directed": ~index.graph.undirected_relations[index.relation],
        }
        pairs = {"pair": head * n + tail, "turned": tail * n + head}
        with using(engine) as running:
            facts = running.load(pa.table({**columns, **pairs}))
            once = facts.filter(facts.as_stored)
            try:
                return cls(
                    by_relation=_groups(running, once, once.r),
                    by_head_relation=_groups(running, facts, facts.r * n + facts.h),
                    by_relation_tail=_groups(running, facts, facts.r * n + facts.t),
                    by_head=_groups(running, facts, facts.h),
                    by_tail=_groups(running, facts, facts.t),
                    implications=_implications(running, facts, relations),
                )
            finally:
                running.drop(facts)


def _groups(engine: Engine, facts: Any, key: Any) -> Groups:
    grouped = facts.group_by(key=key)
    found = engine.collect(
        grouped.agg(
            count=facts.count(), total=facts.c.sum().cast("int64"), squares=(facts.c * facts.c).sum().cast("int64")
        )
    )
    return Groups(*_sorted(found, ("count", "total", "squares")))


def _implications(engine: Engine, facts: Any, relations: int) -> Implications:
    own = facts.select("r", "pair", "turned", y=facts.c, own=facts.row)
    other = facts.select("directed", p=facts.r, x=facts.c, other=facts.row, link=facts.pair)
    same = own.join(other, [own.pair == other.link])
    turned = own.filter(own.pair != own.turned)
    # Facts without a direction are in the same one already: their mirrors would say it again, or be the fact itself.
    others = other.filter(other.directed)
    inverse = turned.join(others, [turned.turned == others.link])
    both = same.filter(same.own != same.other).select("r", "p", "x", "y")
    both = both.union(inverse.select("r", "x", "y", p=inverse.p + relations).select("r", "p", "x", "y"))
    products = {"sx": both.x, "sy": both.y, "sxx": both.x * both.x, "sxy": both.x * both.y, "syy": both.y * both.y}
    sums = {name: product.sum().cast("int64") for name, product in products.items()}
    found = engine.collect(both.group_by(key=both.r * (2 * relations) + both.p).agg(n=both.count(), **sums))
    key, *columns = _sorted(found, IMPLIED)
    return Implications(key, np.ascontiguousarray(np.stack(columns, axis=1)))


def _sorted(found: pa.Table, names: Sequence[str]) -> list[Sums]:
    columns = [found[name].to_numpy().astype(np.int64) for name in ("key", *names)]
    order = np.argsort(columns[0])
    return [column[order] for column in columns]


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
    at = find(groups.key, keys)
    found = at >= 0
    pairs = ((groups.count, added.count), (groups.total, added.total), (groups.squares, added.squares))
    return tuple(np.where(found, each[at], 0) - less for each, less in pairs)
