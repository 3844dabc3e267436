"""Which rules to look at: every closed body over strong facts whose implied facts are observed often enough.

A body is a walk over strong facts, read forwards or backwards (see `FactTables`), from A to the other end of the head.
So one join finds the chains and all forks of all relations at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ibis

from ukge.logic.engine import Engine
from ukge.logic.facts import Directions, FactTables
from ukge.logic.joins import ENTITIES


@dataclass(frozen=True)
class Candidate:
    """A body as steps from A on, and the relation of its head: from A to the last end or (`backwards`) back to A.

    `walk` is False where both steps lie between the same two ends.
    """

    steps: tuple[int, ...]
    relation: int
    walk: bool = True
    backwards: bool = False


@dataclass(frozen=True)
class Edges:
    """Steps (x, p, y) of an engine, the fan-out (x, p, n) of each entity, and the observed facts."""

    engine: Engine
    steps: Any
    fan: Any
    observed: Any
    directions: Directions

    def drop(self) -> None:
        """Let go of the tables."""
        self.engine.drop(self.steps)
        self.engine.drop(self.fan)


def edges(engine: Engine, facts: FactTables) -> Edges:
    """Prepare the steps; a fact that relates an entity to itself leads nowhere."""
    steps = engine.keep(facts.steps.filter(facts.steps.x != facts.steps.y).select("x", "p", "y"))
    fan = engine.keep(steps.group_by("x", "p").agg(n=steps.count()))
    return Edges(engine, steps, fan, facts.observed, facts.directions)


def single_steps(found: Edges, min_support: int) -> list[Candidate]:
    """Return the rules r₁(A, B) → r(A, B) and r₁(B, A) → r(A, B) with enough support."""
    steps, observed = found.steps, found.observed
    hits = steps.join(observed, [steps.x == observed.h, steps.y == observed.t])
    hits = hits.filter(hits.p != hits.r)
    if found.directions.undirected:
        forwards = ibis.least(hits.p, found.directions.inverse(hits.p))
        hits = hits.mutate(p=ibis.ifelse(hits.r.isin(found.directions.undirected), forwards, hits.p))
    rows = found.engine.rows(_often(hits.group_by("p", "r").agg(n=hits.count()), min_support))
    return [Candidate((row["p"],), row["r"]) for row in rows]


def double_steps(found: Edges, min_support: int) -> list[Candidate]:
    """Return the rules whose two body atoms relate the same two entities as the head, with enough support."""
    steps, observed = found.steps, found.observed
    other = steps.select(x2=steps.x, p2=steps.p, y2=steps.y)
    both = steps.join(other, [steps.x == other.x2, steps.y == other.y2, steps.p < other.p2])
    hits = both.join(observed, [both.x == observed.h, both.y == observed.t])
    hits = hits.filter((hits.p != hits.r) & (hits.p2 != hits.r))
    ends = [found.directions.inverse(step) for step in (hits.p, hits.p2)]
    hits = found.directions.lower(hits, "p", "p2", [ibis.least(*ends), ibis.greatest(*ends)])
    rows = found.engine.rows(_often(hits.group_by("p", "p2", "r").agg(n=hits.count()), min_support))
    return [Candidate((row["p"], row["p2"]), row["r"], walk=False) for row in rows]


@dataclass(frozen=True)
class Walks:
    """Candidates of two steps, what was gone through to find them, and what was left out."""

    candidates: list[Candidate]
    supported: int
    looked_at: int
    widest: int | None
    left_out: int


def two_steps(found: Edges, min_support: int, min_hit_ratio: float, max_walks: int) -> Walks:
    """Return the walks A – B – C with enough support that may reach the hit ratio.

    Walks are found from their ends: for every observed pair, the neighbours of the end that has fewer are looked up
    among those of the other, so that one hub does not make it dear. Should that still be more than `max_walks`
    look-ups, the pairs are left out whose ends both have more neighbours than some number.
    """
    engine = found.engine
    pairs = engine.keep(_pairs(found))
    total = engine.rows(pairs.agg(n=pairs.n.sum()))[0]["n"] or 0
    widest, looked_at = within(engine, pairs, int(total), max_walks)
    chosen = pairs if widest is None else pairs.filter(pairs.n <= widest)
    counted = _closed_walks(found, chosen, min_support)
    rows = engine.rows(_possible(found, counted, min_hit_ratio))
    supported = engine.rows(counted.agg(n=counted.count()))[0]["n"]
    engine.drop(counted)
    engine.drop(pairs)
    candidates = [Candidate((row["p1"], row["p2"]), row["r"]) for row in rows]
    return Walks(candidates, supported, looked_at, widest, int(total) - looked_at)


def _pairs(found: Edges) -> Any:
    """Return each observed pair of entities once: u the end with fewer steps, v the other, n how many u has."""
    told = found.observed.filter(found.observed.h != found.observed.t)
    pairs = told.select(a=ibis.least(told.h, told.t), b=ibis.greatest(told.h, told.t)).distinct()
    degree = found.fan.group_by("x").agg(n=found.fan.n.sum())
    at_a, at_b = degree.select(x_a=degree.x, n_a=degree.n), degree.select(x_b=degree.x, n_b=degree.n)
    known = pairs.join(at_a, pairs.a == at_a.x_a)
    known = known.join(at_b, known.b == at_b.x_b)
    fewer = known.n_a <= known.n_b
    ends = {"u": ibis.ifelse(fewer, known.a, known.b), "v": ibis.ifelse(fewer, known.b, known.a)}
    return known.select(**ends, n=ibis.least(known.n_a, known.n_b))


def within(engine: Engine, table: Any, total: int, most: int) -> tuple[int | None, int]:
    """Return the power of two that no row's n may exceed for their sum to stay within `most` (or None), and the sum."""
    if total <= most:
        return None, total
    widest = int(engine.rows(table.agg(n=table.n.max()))[0]["n"])
    cap = 1 << (widest.bit_length() - 1)
    while True:
        kept = table.filter(table.n <= cap)
        looked_at = int(engine.rows(kept.agg(n=kept.n.sum()))[0]["n"] or 0)
        if looked_at <= most or cap == 1:
            return cap, looked_at
        cap //= 2


def _closed_walks(found: Edges, pairs: Any, min_support: int) -> Any:
    """Count, per walk (p1, p2) and relation r, the pairs of ends that r relates."""
    steps, engine = found.steps, found.engine
    near = steps.select(at=steps.x, p=steps.p, middle=steps.y)
    starts = pairs.join(near, pairs.u == near.at)
    far = steps.select(q=steps.p, key=steps.x.cast("int64") * ENTITIES + steps.y)
    walks = starts.join(far, starts.v.cast("int64") * ENTITIES + starts.middle == far.key)
    ends = engine.keep(walks.select("u", "p", "q", "v").distinct())
    observed = found.observed
    forth = ends.join(observed, [ends.u == observed.h, ends.v == observed.t])
    forth = forth.select(p1=forth.p, p2=found.directions.inverse(forth.q), r=forth.r)
    back = ends.join(observed, [ends.v == observed.h, ends.u == observed.t])
    back = back.select(p1=back.q, p2=found.directions.inverse(back.p), r=back.r)
    hits = ibis.union(forth, back)
    hits = found.directions.lower(hits, "p1", "p2", [found.directions.inverse(step) for step in (hits.p2, hits.p1)])
    counted = engine.keep(_often(hits.group_by("p1", "p2", "r").agg(n=hits.count()), min_support))
    engine.drop(ends)
    return counted


def _often(counted: Any, least: int) -> Any:
    return counted.filter(counted.n >= least)


def _possible(found: Edges, counted: Any, min_hit_ratio: float) -> Any:
    """Drop the rules whose bodies imply too many facts for the hit ratio to be reached.

    A body implies at least Σ_A max_B (fan-out of B − 1) facts: the ends reached through one B are all different, and at
    most one of them is A itself. That bound costs a join with the fan-outs; counting exactly would enumerate all walks.
    """
    bodies = counted.select("p1", "p2").distinct()
    steps, fan = found.steps, found.fan
    starts = bodies.join(steps, bodies.p1 == steps.p).select("p1", "p2", a=steps.x, b=steps.y)
    reach = starts.join(fan, [starts.b == fan.x, starts.p2 == fan.p])
    widest = reach.group_by("p1", "p2", "a").agg(n=reach.n.max() - 1)
    bound = widest.group_by(q1=widest.p1, q2=widest.p2).agg(implied=widest.n.sum())
    rules = counted.join(bound, [counted.p1 == bound.q1, counted.p2 == bound.q2])
    enough = rules.n >= found.directions.least_implied(rules) * min_hit_ratio
    return rules.filter(enough).select("p1", "p2", "r")
