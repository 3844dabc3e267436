"""Which rules to look at: every closed body over strong facts whose implied facts are observed often enough.

A body is a walk over strong facts, read forwards or backwards (see `FactTables`), from A to the other end of the head.
So one join finds the chains and all forks of all relations at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import ibis

from ukge.logic.engine import Engine
from ukge.logic.facts import FactTables


@dataclass(frozen=True)
class Candidate:
    """A body as steps, and the relation of its head. `walk` is False where both steps lie between the same two ends."""

    steps: tuple[int, ...]
    relation: int
    walk: bool = True


@dataclass(frozen=True)
class Edges:
    """Steps (x, p, y) of an engine, the fan-out (x, p, n) of each entity, and the observed pairs."""

    engine: Engine
    steps: Any
    fan: Any
    observed: Any
    pairs: Any
    n_relations: int

    def turned(self, steps: Sequence[int]) -> tuple[int, ...]:
        """Return a walk seen from its other end."""
        half = self.n_relations
        return tuple(step - half if step >= half else step + half for step in reversed(steps))

    def drop(self) -> None:
        """Let go of the tables."""
        for table in (self.steps, self.fan, self.pairs):
            self.engine.drop(table)


def edges(engine: Engine, facts: FactTables, n_relations: int) -> Edges:
    """Prepare the steps; a fact that relates an entity to itself leads nowhere."""
    steps = engine.keep(facts.steps.filter(facts.steps.x != facts.steps.y).select("x", "p", "y"))
    fan = engine.keep(steps.group_by("x", "p").agg(n=steps.count()))
    observed = facts.observed
    pairs = engine.keep(observed.filter(observed.h != observed.t).select("h", "t").distinct())
    return Edges(engine, steps, fan, observed, pairs, n_relations)


def single_steps(found: Edges, min_support: int) -> list[Candidate]:
    """Return the rules r₁(A, B) → r(A, B) and r₁(B, A) → r(A, B) with enough support."""
    steps, observed = found.steps, found.observed
    hits = steps.join(observed, [steps.x == observed.h, steps.y == observed.t])
    hits = hits.filter(hits.p != hits.r)
    rows = found.engine.rows(_often(hits.group_by("p", "r").agg(n=hits.count()), min_support))
    return [Candidate((row["p"],), row["r"]) for row in rows]


def double_steps(found: Edges, min_support: int) -> list[Candidate]:
    """Return the rules whose two body atoms relate the same two entities as the head, with enough support."""
    steps, observed = found.steps, found.observed
    other = steps.select(x2=steps.x, p2=steps.p, y2=steps.y)
    both = steps.join(other, [steps.x == other.x2, steps.y == other.y2, steps.p < other.p2])
    hits = both.join(observed, [both.x == observed.h, both.y == observed.t])
    hits = hits.filter((hits.p != hits.r) & (hits.p2 != hits.r))
    rows = found.engine.rows(_often(hits.group_by("p", "p2", "r").agg(n=hits.count()), min_support))
    return [Candidate((row["p"], row["p2"]), row["r"], walk=False) for row in rows]


@dataclass(frozen=True)
class Walks:
    """Candidates of two steps, and what was left out on the way."""

    candidates: list[Candidate]
    supported: int
    paths: int
    fan_out: int | None
    paths_left_out: int


def two_steps(found: Edges, min_support: int, min_hit_ratio: float, max_paths: int) -> Walks:
    """Return the walks A – B – C with enough support that may reach the hit ratio.

    Walks through an entity where one relation fans out too far are left out when there are more than `max_paths` walks.
    """
    engine = found.engine
    paths, fan_out, kept = _fan_out(found, max_paths)
    first, second = _through(found, fan_out)
    walks = first.join(second, first.middle == second.middle2)
    walks = walks.filter(walks.a != walks.c)
    closed = walks.semi_join(found.pairs, [walks.a == found.pairs.h, walks.c == found.pairs.t])
    ends = engine.keep(closed.select("a", "p1", "p2", "c").distinct())
    observed = found.observed
    hits = ends.join(observed, [ends.a == observed.h, ends.c == observed.t])
    counted = engine.keep(_often(hits.group_by("p1", "p2", "r").agg(n=hits.count()), min_support))
    possible = _possible(found, counted, min_hit_ratio)
    rows = engine.rows(possible)
    supported = engine.rows(counted.agg(n=counted.count()))[0]["n"]
    engine.drop(ends)
    engine.drop(counted)
    candidates = [Candidate((row["p1"], row["p2"]), row["r"]) for row in rows]
    return Walks(candidates, supported, paths, fan_out, paths - kept)


def three_steps(found: Edges, bodies: Any, min_support: int, *, backwards: bool) -> list[Candidate]:
    """Return the walks A – B – C – D whose first two steps are among `bodies` (p1, p2), with enough support.

    The head relates A to D, or, `backwards`, D to A: then the walk is turned, and `bodies` are its last two steps.
    """
    steps = found.steps
    first = bodies.join(steps, bodies.p1 == steps.p).select("p1", "p2", a=steps.x, b=steps.y)
    second = steps.select(b2=steps.x, q2=steps.p, c=steps.y)
    walks = first.join(second, [first.b == second.b2, first.p2 == second.q2])
    walks = walks.filter(walks.a != walks.c)
    third = steps.select(c3=steps.x, p3=steps.p, d=steps.y)
    walks = walks.join(third, walks.c == third.c3)
    walks = walks.filter((walks.a != walks.d) & (walks.b != walks.d))
    subject, target = ("d", "a") if backwards else ("a", "d")
    closed = walks.semi_join(found.pairs, [walks[subject] == found.pairs.h, walks[target] == found.pairs.t])
    ends = closed.select("a", "p1", "p2", "p3", "d").distinct()
    observed = found.observed
    hits = ends.join(observed, [ends[subject] == observed.h, ends[target] == observed.t])
    rows = found.engine.rows(_often(hits.group_by("p1", "p2", "p3", "r").agg(n=hits.count()), min_support))
    walked = [Candidate((row["p1"], row["p2"], row["p3"]), row["r"]) for row in rows]
    return [Candidate(found.turned(one.steps), one.relation) for one in walked] if backwards else walked


def _often(counted: Any, least: int) -> Any:
    return counted.filter(counted.n >= least)


def _through(found: Edges, fan_out: int | None) -> tuple[Any, Any]:
    """Return the steps into and out of the middle entity of a walk."""
    steps = found.steps
    if fan_out is not None:
        wide = found.fan.filter(found.fan.n > fan_out)
        steps = steps.anti_join(wide, [steps.x == wide.x, steps.p == wide.p])
    into = steps.select(a=steps.y, p1=_inverse(steps.p, found.n_relations), middle=steps.x)
    return into, steps.select(middle2=steps.x, p2=steps.p, c=steps.y)


def _inverse(step: Any, n_relations: int) -> Any:
    back = ibis.ifelse(step >= n_relations, step - n_relations, step + n_relations)
    return back.cast("int32")


def _fan_out(found: Edges, max_paths: int) -> tuple[int, int | None, int]:
    """Return how many walks of two steps there are, the fan-out that keeps them in the limit, and how many it keeps."""
    paths = _count_paths(found, found.fan)
    if paths <= max_paths:
        return paths, None, paths
    widest = found.engine.rows(found.fan.agg(n=found.fan.n.max()))[0]["n"]
    cap = 1 << (int(widest).bit_length() - 1)
    while cap > 1:
        kept = _count_paths(found, found.fan.filter(found.fan.n <= cap))
        if kept <= max_paths:
            return paths, cap, kept
        cap //= 2
    return paths, 1, _count_paths(found, found.fan.filter(found.fan.n <= 1))


def _count_paths(found: Edges, fan: Any) -> int:
    degree = fan.group_by("x").agg(n=fan.n.sum())
    total = found.engine.rows(degree.agg(n=(degree.n * degree.n).sum()))[0]["n"]
    return int(total or 0)


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
    return rules.filter(rules.n >= rules.implied * min_hit_ratio).select("p1", "p2", "r")
