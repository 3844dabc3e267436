"""How many ground rules a rule has, before any of them is made."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ibis
import pyarrow as pa

from ukge.logic.engine import Engine
from ukge.logic.facts import FactTables
from ukge.logic.joins import ENTITIES, Shape


def estimates(engine: Engine, facts: FactTables, bodies: pa.Table, shape: Shape) -> dict[int, int]:
    """Return, per body of one shape, how many ways there are at most to fill it.

    One atom touches all others; its facts are gone through, and each other one multiplies by its fan-out there. That is
    exact for chains, forks and stars, but for groundings that give two variables one entity; else an upper bound.
    """
    loaded = engine.load(bodies)
    fan = engine.keep(facts.steps.group_by("x", "p").agg(n=facts.steps.count()))
    try:
        rows = engine.rows(_products(facts, fan, loaded, shape))
    finally:
        engine.drop(loaded)
        engine.drop(fan)
    counted = {row["id"]: int(row["n"]) for row in rows}
    return {identity: counted.get(identity, 0) for identity in bodies["id"].to_pylist()}


def _products(facts: FactTables, fan: Any, bodies: Any, shape: Shape) -> Any:
    steps = facts.steps
    centre = _centre(shape.body)
    start, end = shape.body[centre]
    found = bodies.join(steps, bodies[f"p_{centre + 1}"] == steps.p)
    others = []
    for place, atom in enumerate(shape.body):
        shared = [v for v in dict.fromkeys(atom) if v in (start, end)]
        if place == centre or len(shared) == 2 or atom[0] == atom[1]:
            continue
        at = found.x if shared[0] == start else found.y
        step = found[f"p_{place + 1}"]
        if shared[0] != atom[0]:
            step = facts.directions.inverse(step)
        side = fan.select(**{f"key_{place}": fan.p.cast("int64") * ENTITIES + fan.x, f"n_{place}": fan.n})
        found = found.join(side, step.cast("int64") * ENTITIES + at == side[f"key_{place}"])
        others.append(f"n_{place}")
    ways = ibis.literal(1, "int64")
    for name in others:
        ways = ways * found[name]
    found = found.select("id", ways=ways)
    return found.group_by("id").agg(n=found.ways.sum())


def _centre(body: Sequence[tuple[int, int]]) -> int:
    """Return the place of an atom that shares a variable with each other one; a body of up to three atoms has one."""
    return next(place for place, atom in enumerate(body) if all(set(atom).intersection(other) for other in body))
