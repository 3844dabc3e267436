"""Rules of at most two body atoms, and everything that follows from a set of them: the worlds are checked by it.

A body of two atoms is a path from one end of the head to the other; walking an atom against its direction makes the
forks. So a rule is a path of directed steps that implies a directed step, and to draw conclusions is to replace steps.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

_ATOM = re.compile(r"(\w+)\((\w+), (\w+)\)")


class Step(NamedTuple):
    """One atom walked along its direction, or (`back`) against it."""

    relation: str
    back: bool = False

    def turned(self) -> Step:
        """Return the same atom walked the other way."""
        return Step(self.relation, not self.back)


class PathRule(NamedTuple):
    """`path` leads from the start of `head` to its end."""

    path: tuple[Step, ...]
    head: Step

    def canonical(self) -> PathRule:
        """Return the one of the two ways to walk this rule that comes first, so that equal rules compare equal."""
        other = PathRule(tuple(step.turned() for step in reversed(self.path)), self.head.turned())
        return min(self, other)

    def __str__(self) -> str:
        names: dict[int, str] = {}
        body = [_text(step, place, place + 1, names) for place, step in enumerate(self.path)]
        return f"{' & '.join(body)} -> {_text(self.head, 0, len(self.path), names)}"


def read_rule(text: str) -> PathRule:
    """Read a rule such as `r(A, B) & s(A, C) -> t(B, C)`."""
    body, head = ([(m[1], m[2], m[3]) for m in _ATOM.finditer(side)] for side in text.split("->"))
    relation, start, end = head[0]
    path, here = [], start
    for name, first, second in sorted(body, key=lambda atom: start not in atom[1:]):
        path.append(Step(name, back=first != here))
        here = second if first == here else first
    if here != end:
        raise ValueError(f"the body of {text!r} does not lead from {start} to {end}")
    return PathRule(tuple(path), Step(relation))


def consequences(rules: Sequence[PathRule]) -> list[PathRule]:
    """Return the rules of the same lengths that follow from `rules` and are not among them, in canonical form.

    A step may be replaced in a body by one that implies it, and in a head by one that it implies.
    """
    implied = _implications(rules)
    steps = {step for rule in rules for step in (*rule.path, rule.head)}
    steps |= {step.turned() for step in steps}
    reasons = {step: [other for other in steps if step in implied[other]] for step in steps}
    found = set()
    for rule in rules:
        bodies: list[tuple[Step, ...]] = [()]
        for step in rule.path:
            bodies = [(*body, reason) for body in bodies for reason in reasons[step]]
        for head in implied[rule.head]:
            found |= {PathRule(body, head).canonical() for body in bodies if body != (head,)}
    return sorted(found - {rule.canonical() for rule in rules})


def _implications(rules: Iterable[PathRule]) -> dict[Step, set[Step]]:
    """Return for every step the steps it implies, itself among them, through rules with one body atom."""
    implied: dict[Step, set[Step]] = {}
    for rule in rules:
        for step in (*rule.path, rule.head):
            implied.setdefault(step, {step})
            implied.setdefault(step.turned(), {step.turned()})
    direct = [rule for rule in rules if len(rule.path) == 1]
    for _ in direct:
        for rule in direct:
            for reached in implied.values():
                if rule.path[0] in reached:
                    reached.add(rule.head)
                if rule.path[0].turned() in reached:
                    reached.add(rule.head.turned())
    return implied


def _text(step: Step, start: int, end: int, names: dict[int, str]) -> str:
    places = (end, start) if step.back else (start, end)
    for place in places:
        if place not in names:
            names[place] = "ABC"[len(names)]
    first, second = (names[place] for place in places)
    return f"{step.relation}({first}, {second})"
