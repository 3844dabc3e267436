"""Bodies as joins: one expression for all rules of one shape, whatever their relations; and how large it gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import ibis
import numpy as np
import pyarrow as pa

from ukge.logic.engine import Engine
from ukge.logic.facts import Directions, FactTables
from ukge.logic.rules import Rule

ENTITIES = 1 << 31
"""More than any entity's id: ids are 32-bit integers."""


@dataclass(frozen=True, order=True)
class Shape:
    """The variables of a rule without its relations: per body atom its two ends, and for the head subject and object.

    Variables are numbers. An atom is a step from the end that is bound first; whether that is its subject is left to
    the step, so that a chain and the forks have one shape.
    """

    body: tuple[tuple[int, int], ...]
    head: tuple[int, int]

    @property
    def n_variables(self) -> int:
        """How many variables there are."""
        return 1 + max(variable for atom in self.body for variable in atom)

    @property
    def fact_columns(self) -> list[str]:
        """The columns of `bindings` that name the body's facts."""
        return [f"fact_{place}" for place in range(1, len(self.body) + 1)]


@dataclass(frozen=True)
class Shaped:
    """A rule as a shape: the order in which its body atoms fill it, and which of them are walked backwards."""

    shape: Shape
    order: tuple[int, ...]
    backwards: tuple[bool, ...]

    def steps(self, relations: Sequence[int], directions: Directions) -> tuple[int, ...]:
        """Return the body's steps (see `FactTables`), given the relations of the rule's body."""
        return tuple(
            directions.step(relations[place], backwards=back)
            for place, back in zip(self.order, self.backwards, strict=True)
        )


def shaped(rule: Rule) -> Shaped:
    """Return the shape of a rule: variables counted along its body, from the outer end of its first atom on."""
    order: list[int] = []
    numbers = {_start(rule): 0}
    while len(order) < len(rule.body):
        waiting = (place for place in range(len(rule.body)) if place not in order)
        order.append(next(place for place in waiting if numbers.keys() & set(rule.body[place].variables)))
        for variable in rule.body[order[-1]].variables:
            numbers.setdefault(variable, len(numbers))
    ends = [(numbers[rule.body[place].subject], numbers[rule.body[place].object]) for place in order]
    body = tuple((min(pair), max(pair)) for pair in ends)
    shape = Shape(body, (numbers[rule.head.subject], numbers[rule.head.object]))
    return Shaped(shape, tuple(order), tuple(subject > target for subject, target in ends))


def _start(rule: Rule) -> str:
    """Return the variable of the first atom that no other atom has; of two such, the subject of the head."""
    shared = {v for atom in rule.body[1:] for v in atom.variables}
    outer = [v for v in rule.body[0].variables if v not in shared] or list(rule.body[0].variables)
    return rule.head.subject if rule.head.subject in outer else outer[0]


def bodies_table(ids: Sequence[int], steps: Sequence[Sequence[int]]) -> pa.Table:
    """Return a table with one row per body of one shape: its id and its steps p_1, p_2, …"""
    columns = np.asarray(steps, dtype=np.int32).reshape(len(ids), -1)
    names = [f"p_{place}" for place in range(1, columns.shape[1] + 1)]
    return pa.table({"id": pa.array(ids, pa.int32()), **dict(zip(names, columns.T, strict=True))})


def bindings(steps: Any, wanted: Any, shape: Shape, *, distinct: bool) -> Any:
    """Return every way to fill the bodies `wanted` (id, p_1, p_2, …) of one shape with strong facts.

    Columns: id; v_0, v_1, … (entities by variable); value, the body's truth (eq. 6); fact_1, … (rows of its facts).
    With `distinct`, different variables stand for different entities.
    """
    found, bound = wanted, list[int]()
    for place, atom in enumerate(shape.body, start=1):
        shared = [v for v in dict.fromkeys(atom) if v in bound]
        side = _atom_side(steps, place, atom, shared[0] if shared else None)
        step = found[f"p_{place}"].cast("int64")
        key = step * ENTITIES + found[f"v_{shared[0]}"] if shared else step
        links = [key == side[f"key_{place}"], *(found[f"v_{v}"] == side[f"a{place}_{v}"] for v in shared[1:])]
        joined = found.join(side, links)
        fresh = [v for v in dict.fromkeys(atom) if v not in bound]
        found = joined.mutate(**{f"v_{v}": joined[f"a{place}_{v}"] for v in fresh})
        bound += fresh
    for one, other in combinations(range(shape.n_variables), 2) if distinct else ():
        found = found.filter(_tied(found, one) != _tied(found, other))
    total = sum((found[f"c_{place}"] for place in range(2, len(shape.body) + 1)), found.c_1)
    value = ibis.greatest(total - float(len(shape.body) - 1), ibis.literal(0.0))
    variables = [f"v_{v}" for v in range(shape.n_variables)]
    return found.select("id", *variables, value=value, **{name: found[name] for name in shape.fact_columns})


def _tied(found: Any, variable: int) -> Any:
    """Return a variable's entity as a number that differs from body to body.

    An engine may turn a bare inequality of two atoms' entities into a join of these atoms on nothing else.
    """
    return found.id.cast("int64") * ENTITIES + found[f"v_{variable}"]


def _atom_side(steps: Any, place: int, atom: tuple[int, int], shared: int | None) -> Any:
    """Return the steps of one atom, with a key that joins them to the body so far.

    The key holds the step and the first shared entity in one number, which leaves an engine no choice but to join the
    wanted bodies first: joined without their relations, the facts of two atoms can be millions of times more.
    """
    start, end = atom
    if start == end:
        steps = steps.filter(steps.x == steps.y)
    columns = {f"a{place}_{start}": steps.x, f"a{place}_{end}": steps.y}
    step = steps.p.cast("int64")
    columns[f"key_{place}"] = step if shared is None else step * ENTITIES + columns[f"a{place}_{shared}"]
    return steps.select(**columns, **{f"c_{place}": steps.c, f"fact_{place}": steps.row})


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
