"""Which rules to look at: every closed body over strong facts whose implied facts are observed often enough.

A body is a walk over strong facts, read forwards or backwards (see `FactTables`), from A to the other end of the head.
So one join finds the chains and all forks of all relations at once. Bodies of three atoms are looked for where two of
them are the body of a good rule already.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import ibis
import pyarrow as pa

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
    rows = found.engine.rows(_often(hits.select("p", "r"), min_support))
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
    rows = found.engine.rows(_often(hits.select("p", "p2", "r"), min_support))
    return [Candidate((row["p"], row["p2"]), row["r"], walk=False) for row in rows]


@dataclass(frozen=True)
class Walks:
    """Candidates of two or three steps, what was gone through to find them, and what was left out."""

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
    chosen = _affordable(engine, pairs, max_walks)
    ends = engine.keep(_two_step_ends(found, chosen.rows))
    counted = engine.keep(_often(_closed_by_two(found, ends), min_support))
    bodies = counted.select("p1", "p2").distinct()
    steps, fan = found.steps, found.fan
    starts = bodies.join(steps, bodies.p1 == steps.p).select("p1", "p2", a=steps.x, b=steps.y)
    # The ends that are reached through one B are all different, and at most one of them is A itself.
    reach = starts.join(fan, [starts.b == fan.x, starts.p2 == fan.p])
    rows = engine.rows(_possible(found, counted, reach, min_hit_ratio, others=1))
    supported = engine.count(counted)
    for table in (pairs, ends, counted):
        engine.drop(table)
    candidates = [Candidate((row["p1"], row["p2"]), row["r"]) for row in rows]
    return Walks(candidates, supported, chosen.looked_at, chosen.widest, chosen.left_out)


def _pairs(found: Edges) -> Any:
    """Return each observed pair of entities once: u the end with fewer steps, v the other, n how many u has."""
    facts = found.observed.filter(found.observed.h != found.observed.t)
    pairs = facts.select(a=ibis.least(facts.h, facts.t), b=ibis.greatest(facts.h, facts.t)).distinct()
    degree = found.fan.group_by("x").agg(n=found.fan.n.sum())
    at_a, at_b = degree.select(x_a=degree.x, n_a=degree.n), degree.select(x_b=degree.x, n_b=degree.n)
    known = pairs.join(at_a, pairs.a == at_a.x_a)
    known = known.join(at_b, known.b == at_b.x_b)
    fewer = known.n_a <= known.n_b
    ends = {"u": ibis.ifelse(fewer, known.a, known.b), "v": ibis.ifelse(fewer, known.b, known.a)}
    return known.select(**ends, n=ibis.least(known.n_a, known.n_b))


def _two_step_ends(found: Edges, pairs: Any) -> Any:
    """Return the ends (u, v) of pairs with the steps that lead from each of them to a common neighbour."""
    steps = found.steps
    near = steps.select(at=steps.x, p=steps.p, middle=steps.y)
    starts = pairs.join(near, pairs.u == near.at)
    far = steps.select(q=steps.p, key=steps.x.cast("int64") * ENTITIES + steps.y)
    walks = starts.join(far, starts.v.cast("int64") * ENTITIES + starts.middle == far.key)
    return walks.select("u", "p", "q", "v").distinct()


def _closed_by_two(found: Edges, ends: Any) -> Any:
    """Return each walk (p1, p2) with the relation r of its ends, once per pair of ends."""
    observed = found.observed
    forth = ends.join(observed, [ends.u == observed.h, ends.v == observed.t])
    forth = forth.select(p1=forth.p, p2=found.directions.inverse(forth.q), r=forth.r)
    back = ends.join(observed, [ends.v == observed.h, ends.u == observed.t])
    back = back.select(p1=back.q, p2=found.directions.inverse(back.p), r=back.r)
    hits = ibis.union(forth, back)
    return found.directions.lower(hits, "p1", "p2", [found.directions.inverse(step) for step in (hits.p2, hits.p1)])


def three_steps(
    found: Edges, bodies: Sequence[tuple[int, ...]], min_support: int, min_hit_ratio: float, max_walks: int
) -> Walks:
    """Return the walks of three steps with enough support whose first two are among `bodies`.

    The head may relate A to D or D to A; as bodies can be given from both ends, this finds the walks that end with one
    too. Support is counted with walks that come back to B as well, so it may turn out lower when measured.
    """
    engine = found.engine
    first, second = (pa.array(steps, pa.int32()) for steps in zip(*bodies, strict=True))
    wanted = engine.load(pa.table({"p1": first, "p2": second}))
    begun = engine.keep(_first_two(found, wanted))
    around = engine.keep(_with_look_ups(found, begun))
    chosen = _affordable(engine, around, max_walks)
    ends = engine.keep(_three_step_ends(found, chosen.rows))
    counted = engine.keep(_often(_closed_by_three(found, ends), min_support))
    closed = counted.select("p1", "p2", "p3").distinct()
    walks = begun.select(w1=begun.p1, w2=begun.p2, a=begun.a, c=begun.c)
    starts = closed.join(walks, [closed.p1 == walks.w1, closed.p2 == walks.w2])
    keyed = found.fan.select(n=found.fan.n, key=found.fan.p.cast("int64") * ENTITIES + found.fan.x)
    reach = starts.join(keyed, starts.p3.cast("int64") * ENTITIES + starts.c == keyed.key)
    rows = engine.rows(_possible(found, counted, reach, min_hit_ratio, others=2))
    supported = engine.count(counted)
    for table in (wanted, begun, around, ends, counted):
        engine.drop(table)
    candidates = [
        Candidate((row["p1"], row["p2"], row["p3"]), row["r"], backwards=bool(row["backwards"])) for row in rows
    ]
    return Walks(candidates, supported, chosen.looked_at, chosen.widest, chosen.left_out)


def _first_two(found: Edges, wanted: Any) -> Any:
    steps = found.steps
    near = steps.select(p=steps.p, a=steps.x, b=steps.y)
    started = wanted.join(near, wanted.p1 == near.p)
    far = steps.select(c=steps.y, key=steps.p.cast("int64") * ENTITIES + steps.x)
    walks = started.join(far, started.p2.cast("int64") * ENTITIES + started.b == far.key)
    return walks.filter(walks.a != walks.c).select("p1", "p2", "a", "c").distinct()


def _with_look_ups(found: Edges, begun: Any) -> Any:
    """Add how dear it is to close a walk: the steps that leave C, or the entities observed with A, if fewer."""
    degree = found.fan.group_by(at_c=found.fan.x).agg(leave=found.fan.n.sum())
    pairs = _both_ways(found)
    met = pairs.group_by(at_a=pairs.a2).agg(met=pairs.count())
    walks = begun.join(degree, begun.c == degree.at_c)
    walks = walks.join(met, walks.a == met.at_a)
    leaving = walks.leave <= walks.met
    return walks.select("p1", "p2", "a", "c", leaving=leaving, n=ibis.least(walks.leave, walks.met))


def _three_step_ends(found: Edges, around: Any) -> Any:
    """Return the ends (a, d) that walks reach in a third step p3 and that are observed together."""
    steps, pairs = found.steps, _both_ways(found)
    out_of = steps.select(c3=steps.x, p3=steps.p, d=steps.y)
    left = around.filter(around.leaving)
    left = left.join(out_of, left.c == out_of.c3)
    left = left.semi_join(pairs, [left.a == pairs.a2, left.d == pairs.d2]).select("p1", "p2", "p3", "a", "d")
    met = around.filter(~around.leaving)
    met = met.join(pairs, met.a == pairs.a2)
    keyed = steps.select(p3=steps.p, key=steps.x.cast("int64") * ENTITIES + steps.y)
    met = met.join(keyed, met.c.cast("int64") * ENTITIES + met.d2 == keyed.key)
    met = met.select("p1", "p2", "p3", "a", d=met.d2)
    both = ibis.union(left, met)
    return both.filter(both.a != both.d).distinct()


def _closed_by_three(found: Edges, ends: Any) -> Any:
    """Return each walk (p1, p2, p3) with the relation of its ends, and whether that one leads back to A."""
    observed = found.observed
    forth = ends.join(observed, [ends.a == observed.h, ends.d == observed.t])
    back = ends.join(observed, [ends.d == observed.h, ends.a == observed.t])
    hits = ibis.union(
        *(one.select("p1", "p2", "p3", "r", backwards=ibis.literal(turned)) for one, turned in ((forth, 0), (back, 1)))
    )
    if found.directions.undirected:
        hits = hits.mutate(backwards=ibis.ifelse(hits.r.isin(found.directions.undirected), 0, hits.backwards))
    return hits


def _both_ways(found: Edges) -> Any:
    """Return the observed pairs of entities, both ways round."""
    facts = found.observed.filter(found.observed.h != found.observed.t)
    return ibis.union(facts.select(a2=facts.h, d2=facts.t), facts.select(a2=facts.t, d2=facts.h), distinct=True)


class _Affordable(NamedTuple):
    """Rows whose look-ups are within a limit, the limit that each kept, and how many look-ups were left out."""

    rows: Any
    looked_at: int
    widest: int | None
    left_out: int


def _affordable(engine: Engine, table: Any, most: int) -> _Affordable:
    """Leave out the rows whose n exceeds a power of two, the highest for which the sum of n stays within `most`."""
    total = int(engine.rows(table.agg(n=table.n.sum()))[0]["n"] or 0)
    if total <= most:
        return _Affordable(table, total, None, 0)
    widest = int(engine.rows(table.agg(n=table.n.max()))[0]["n"])
    cap = 1 << (widest.bit_length() - 1)
    while True:
        kept = table.filter(table.n <= cap)
        looked_at = int(engine.rows(kept.agg(n=kept.n.sum()))[0]["n"] or 0)
        if looked_at <= most or cap == 1:
            return _Affordable(kept, looked_at, cap, total - looked_at)
        cap //= 2


def _often(hits: Any, least: int) -> Any:
    """Count equal rows as n, and keep those that are there often enough."""
    counted = hits.group_by(*hits.columns).agg(n=hits.count())
    return counted.filter(counted.n >= least)


def _possible(found: Edges, counted: Any, reach: Any, min_hit_ratio: float, *, others: int) -> Any:
    """Drop the rules whose bodies imply too many facts for the hit ratio to be reached.

    From A on, a body implies at least as many facts as its widest last step has ends, of which up to `others` may be
    entities of the walk itself: `reach` has these fan-outs n per body and A. To count exactly would be to go through
    all walks.
    """
    steps = [name for name in counted.columns if name.startswith("p")]
    widest = reach.group_by(*steps, "a").agg(n=ibis.greatest(reach.n.max() - others, 0))
    bound = widest.group_by(**{f"q_{name}": widest[name] for name in steps}).agg(implied=widest.n.sum())
    rules = counted.join(bound, [counted[name] == bound[f"q_{name}"] for name in steps])
    enough = rules.n >= found.directions.least_implied(rules) * min_hit_ratio
    return rules.filter(enough).select(*(name for name in counted.columns if name != "n"))
