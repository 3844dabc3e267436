"""What a person should look at next: the facts of which a label tells most, and why each of them.

A label tells more where the chance that a fact holds is near one half, where many other facts are about the same two
entities (they are judged by it, and so are predictions), where its source has said much that nobody has looked at, and
where people disagree. Each next fact counts less for a relation or a source that was just taken: a hundred like cases
tell little more than the first ten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ukge.evidence.doubt_sources import UNNAMED, codes
from ukge.evidence.holding import Holding
from ukge.graph.index import FactIndex
from ukge.graph.uncertain import UncertainGraph
from ukge.runs.labels import Label, Triple, Words, labels_of_rows, rows_of_facts, share_of_yes

LOOKED_AT = 2_000
"""Facts that are compared at most, those that are worth most by themselves."""

MOST_WORTH = 10.0
"""Worth of a fact that people disagree about, more than any other has."""

EVEN = 0.15
"""How far from one half a chance is still called even."""


@dataclass(frozen=True, slots=True)
class ToReview:
    """A fact that a person should look at, with the reasons in words."""

    head: str
    relation: str
    tail: str
    stored: float
    chance: float
    source: str | None
    why: tuple[str, ...]

    @property
    def fact(self) -> Triple:
        """The fact, by its names."""
        return self.head, self.relation, self.tail


def to_review(
    holding: Holding,
    index: FactIndex,
    said: Words,
    by: str = "",
    k: int = 20,
    without: Sequence[Triple] = (),
) -> list[ToReview]:
    """Return the k facts that `by` should look at next, the first tells most; `index` is that of the judged facts.

    What somebody has decided is left out, unless people disagree about it; so is what `by` has said anything of, and
    whatever is in `without`.
    """
    graph = holding.graph
    names, code = codes(graph)
    size = np.bincount(code, minlength=len(names))
    labelled = ~np.isnan(labels_of_rows(said, index))
    of_source, of_relation = Counter(code[labelled].tolist()), Counter(graph.relation[labelled].tolist())
    ends = index.degree[graph.head] - 1, index.degree[graph.tail] - 1
    worth = 4.0 * holding.chance * (1.0 - holding.chance)
    worth = worth * (1.0 + np.log10(1.0 + np.maximum(np.minimum(*ends), 0))) * (1.0 + np.log10(size[code]) / 4.0)
    for fact, row in _disputed(said, index).items():
        worth[row] += 0.0 if by in said[fact] else MOST_WORTH
    done = {fact for fact, words in said.items() if by in words or share_of_yes(words.values()) in (0.0, 1.0)}
    done |= set(without)
    rows = np.argsort(-worth, kind="stable")[: LOOKED_AT + 2 * len(done)]
    rows = _each_once(rows, graph, done)
    crowd = np.zeros(len(rows))
    found: list[ToReview] = []
    while len(found) < min(k, len(rows)):
        at = int(np.argmax(worth[rows] / np.sqrt(1.0 + crowd)))
        row = int(rows[at])
        crowd[at] = np.inf
        crowd[graph.relation[rows] == graph.relation[row]] += 1.0
        if len(names) > 1:
            crowd[code[rows] == code[row]] += 0.5
        stated = graph[row]
        why = _why(
            float(holding.chance[row]),
            (int(ends[0][row]), int(ends[1][row])),
            (stated.relation, of_relation[int(graph.relation[row])]),
            (names[int(code[row])], int(size[code[row]]), of_source[int(code[row])]),
            said.get(stated[:3], {}),
        )
        found.append(ToReview(*stated[:4], float(holding.chance[row]), stated.source, why))
    return found


def _disputed(said: Words, index: FactIndex) -> dict[Triple, int]:
    """Return the facts of which some say yes and others no, with a row of each."""
    split = [fact for fact, words in said.items() if 0.0 < (share_of_yes(words.values()) or 0.0) < 1.0]
    rows = rows_of_facts(index, split)
    return {fact: row for fact, row in zip(split, rows.tolist(), strict=True) if row >= 0}


def _each_once(rows: npt.NDArray[np.intp], graph: UncertainGraph, done: set[Triple]) -> npt.NDArray[np.intp]:
    """Return the first row of each fact that is not done."""
    first: dict[Triple, int] = {}
    for row, fact in zip(rows.tolist(), graph[rows], strict=True):
        if fact[:3] not in done:
            first.setdefault(fact[:3], row)
    return np.array(list(first.values()), dtype=np.intp)


def _why(
    chance: float,
    around: tuple[int, int],
    relation: tuple[str, int],
    source: tuple[str, int, int],
    words: Mapping[str, Label],
) -> tuple[str, ...]:
    """Return in words why a label of a fact tells much."""
    side = "true" if chance > 0.5 else "false"
    leaning = "about even" if abs(chance - 0.5) <= EVEN else f"leaning to {side}"
    told = [f"The other facts leave it open: a chance of {chance:.0%}, {leaning}."]
    if words:
        each_said = ", ".join(f"{each.by} says {each.word}" for each in words.values())
        told.insert(0, f"People are not of one mind, or not sure: {each_said}.")
    if min(around) > 0:
        told.append(
            f"{around[0]:,} and {around[1]:,} other facts are about its two ends, and are judged with its help."
        )
    name, facts, labels = source
    if name != UNNAMED:
        of_them = "none of them has a label yet" if labels == 0 else f"{labels:,} of them have labels"
        told.append(f"{name} says {facts:,} facts; {of_them}.")
    if relation[1] == 0:
        told.append(f"No fact of {relation[0]} has a label yet.")
    return tuple(told)
