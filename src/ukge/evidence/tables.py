"""What the facts say in sums: per group of facts, and per pair of relations that link the same entities.

The sums are made by the relational seam. Confidences enter as whole hundred-thousandths, so that every engine and every
number of threads gives the same sums, and so that one fact can be taken out of them exactly. A fact of a relation
without a direction is summed up from both its ends, as it is looked up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ukge.evidence.lookup import find
from ukge.graph.index import FactIndex, Triples
from ukge.graph.keys import Keys
from ukge.logic.engine import Engine, using

UNIT = 100_000
"""Parts that a confidence of 1 has in the sums."""

Sums = npt.NDArray[np.int64]


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

    def find(self, keys: Keys) -> npt.NDArray[np.int64]:
        """Return the place of each key; −1 for a group without facts."""
        return find(self.key, keys)


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
