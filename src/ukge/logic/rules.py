"""Rules as values: atoms over variables, a conjunctive body, one head."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations, permutations
from string import ascii_uppercase

from ukge.errors import RuleError

LONGEST_BODY = 3
PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def quoted(name: str) -> str:
    """Return a relation name as rule files write it: bare where it is an identifier, in double quotes otherwise."""
    if PLAIN_NAME.fullmatch(name):
        return name
    return '"' + "".join(ESCAPES.get(character, character) for character in name) + '"'


@dataclass(frozen=True, slots=True, order=True)
class Atom:
    """A relation between two variables, `relation(subject, object)`. An inverse atom has its variables swapped."""

    relation: str
    subject: str
    object: str

    @property
    def variables(self) -> tuple[str, str]:
        """The two variables, subject first."""
        return self.subject, self.object

    def renamed(self, names: dict[str, str]) -> Atom:
        """Return the atom over other variables."""
        return Atom(self.relation, names[self.subject], names[self.object])

    def __str__(self) -> str:
        return f"{quoted(self.relation)}({self.subject}, {self.object})"


@dataclass(frozen=True, slots=True)
class Rule:
    """body → head, with a weight: the more the body is true, the truer the head should be.

    `squared` squares the distance to satisfaction (the paper's eq. 14 does). A `negated` head says that the body makes
    the head *less* true. Different variables stand for different entities unless a function is told `distinct=False`.
    """

    body: tuple[Atom, ...]
    head: Atom
    weight: float = 1.0
    squared: bool = True
    negated: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "body", tuple(self.body))
        problem = self._problem()
        if problem:
            raise RuleError(problem)

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables in the order of their first use, body before head."""
        return tuple(dict.fromkeys(v for atom in (*self.body, self.head) for v in atom.variables))

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations of the body, then that of the head."""
        return (*(atom.relation for atom in self.body), self.head.relation)

    def __len__(self) -> int:
        return len(self.body)

    def with_weight(self, weight: float) -> Rule:
        """Return the same rule with another weight."""
        return replace(self, weight=weight)

    def canonical(self) -> Rule:
        """Return the rule that all equal ones share, however their variables are named and their bodies ordered.

        Weight and squaring are no part of what a rule says, so they are set to their defaults.
        """
        versions = (self._renamed(body) for body in permutations(self.body))
        body, head = min(versions)
        return Rule(body, head, negated=self.negated)

    def generalisations(self) -> Iterator[Rule]:
        """Yield, in canonical form, the rules with the same head whose body is a smaller part of this one's."""
        for size in range(1, len(self.body)):
            for chosen in combinations(self.body, size):
                bound = {v for atom in chosen for v in atom.variables}
                if bound.issuperset(self.head.variables) and _connected(chosen):
                    yield Rule(chosen, self.head, negated=self.negated).canonical()

    def __str__(self) -> str:
        """Print the rule in PSL's syntax, as `ukge.logic.syntax` reads it."""
        body = " & ".join(str(atom) for atom in self.body)
        return f"{float(self.weight)!r}: {body} -> {'!' * self.negated}{self.head}{' ^2' * self.squared}"

    def _renamed(self, body: tuple[Atom, ...]) -> tuple[tuple[Atom, ...], Atom]:
        order = dict.fromkeys((*self.head.variables, *(v for atom in body for v in atom.variables)))
        names = dict(zip(order, ascii_uppercase, strict=False))
        return tuple(atom.renamed(names) for atom in body), self.head.renamed(names)

    def _problem(self) -> str | None:
        if not 1 <= len(self.body) <= LONGEST_BODY:
            return f"a body has one to {LONGEST_BODY} atoms, not {len(self.body)}"
        if not (math.isfinite(self.weight) and self.weight >= 0):
            return f"a weight is a number from 0 upwards, not {self.weight}"
        bound = {v for atom in self.body for v in atom.variables}
        free = [v for v in self.head.variables if v not in bound]
        if free:
            return f"variable {free[0]} of the head does not occur in the body"
        if not _connected(self.body):
            return "the body falls into parts that share no variable"
        return None


def _connected(body: tuple[Atom, ...]) -> bool:
    reached, waiting = set(body[0].variables), list(body[1:])
    while waiting:
        linked = [atom for atom in waiting if reached.intersection(atom.variables)]
        if not linked:
            return False
        reached.update(v for atom in linked for v in atom.variables)
        waiting = [atom for atom in waiting if atom not in linked]
    return True
