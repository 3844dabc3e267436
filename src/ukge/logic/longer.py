"""Candidates of three steps: walks A – B – C – D that begin with the body of a good rule of two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ibis
import pyarrow as pa

from ukge.logic.candidates import Candidate, Edges, Walks, within
from ukge.logic.joins import ENTITIES


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
    total = int(engine.rows(around.agg(n=around.n.sum()))[0]["n"] or 0)
    widest, looked_at = within(engine, around, total, max_walks)
    chosen = around if widest is None else around.filter(around.n <= widest)
    ends = engine.keep(_closed(found, chosen))
    counted = engine.keep(_counted(found, ends, min_support))
    rows = engine.rows(_possible(found, begun, counted, min_hit_ratio))
    supported = engine.rows(counted.agg(n=counted.count()))[0]["n"]
    for table in (wanted, begun, around, ends, counted):
        engine.drop(table)
    candidates = [
        Candidate((row["p1"], row["p2"], row["p3"]), row["r"], backwards=bool(row["backwards"])) for row in rows
    ]
    return Walks(candidates, supported, looked_at, widest, total - looked_at)


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
    pairs = _pairs(found)
    met = pairs.group_by(at_a=pairs.a2).agg(met=pairs.count())
    walks = begun.join(degree, begun.c == degree.at_c)
    walks = walks.join(met, walks.a == met.at_a)
    leaving = walks.leave <= walks.met
    return walks.select("p1", "p2", "a", "c", leaving=leaving, n=ibis.least(walks.leave, walks.met))


def _closed(found: Edges, around: Any) -> Any:
    """Return the ends (a, d) that walks reach in a third step p3 and that are observed together."""
    steps, pairs = found.steps, _pairs(found)
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


def _counted(found: Edges, ends: Any, min_support: int) -> Any:
    observed = found.observed
    forth = ends.join(observed, [ends.a == observed.h, ends.d == observed.t])
    back = ends.join(observed, [ends.d == observed.h, ends.a == observed.t])
    hits = ibis.union(
        *(one.select("p1", "p2", "p3", "r", backwards=ibis.literal(turned)) for one, turned in ((forth, 0), (back, 1)))
    )
    if found.directions.undirected:
        hits = hits.mutate(backwards=ibis.ifelse(hits.r.isin(found.directions.undirected), 0, hits.backwards))
    counted = hits.group_by("p1", "p2", "p3", "r", "backwards").agg(n=hits.count())
    return counted.filter(counted.n >= min_support)


def _possible(found: Edges, begun: Any, counted: Any, min_hit_ratio: float) -> Any:
    """Drop the rules whose bodies imply too much: at least Σ_A max_C (fan-out of C − 2) facts, all but A and B."""
    bodies = counted.select("p1", "p2", "p3").distinct()
    walks = begun.select(w1=begun.p1, w2=begun.p2, a=begun.a, c=begun.c)
    starts = bodies.join(walks, [bodies.p1 == walks.w1, bodies.p2 == walks.w2])
    keyed = found.fan.select(n=found.fan.n, key=found.fan.p.cast("int64") * ENTITIES + found.fan.x)
    reach = starts.join(keyed, starts.p3.cast("int64") * ENTITIES + starts.c == keyed.key)
    widest = reach.group_by("p1", "p2", "p3", "a").agg(n=ibis.greatest(reach.n.max() - 2, 0))
    bound = widest.group_by(q1=widest.p1, q2=widest.p2, q3=widest.p3).agg(implied=widest.n.sum())
    links = [counted.p1 == bound.q1, counted.p2 == bound.q2, counted.p3 == bound.q3]
    rules = counted.join(bound, links)
    rules = rules.filter(rules.n >= found.directions.least_implied(rules) * min_hit_ratio)
    return rules.select("p1", "p2", "p3", "r", "backwards")


def _pairs(found: Edges) -> Any:
    """Return the observed pairs of entities, both ways round."""
    told = found.observed.filter(found.observed.h != found.observed.t)
    return ibis.union(told.select(a2=told.h, d2=told.t), told.select(a2=told.t, d2=told.h), distinct=True)
