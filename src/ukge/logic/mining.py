"""Mining: every closed rule of one or two body atoms (three on request), measured, filtered and ranked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

import pyarrow as pa

from ukge.errors import ConfigError
from ukge.graph.uncertain import UncertainGraph
from ukge.logic.candidates import Candidate, Edges, Walks, double_steps, edges, single_steps, three_steps, two_steps
from ukge.logic.engine import Engine, using
from ukge.logic.facts import FactTables, fact_tables
from ukge.logic.filters import best_per_head, without_redundant
from ukge.logic.measures import ScoredRule, measure_on
from ukge.logic.rules import Atom, Rule
from ukge.logic.weights import Prior, learn_prior, learn_weights


@dataclass(frozen=True, slots=True)
class MiningSettings:
    """What to look for and what to keep."""

    strong: float = 0.85
    """confidence above which a fact may be part of a body (τ)"""
    max_length: int = 2
    """body atoms at most (1, 2 or 3)"""
    conjunctions: bool = False
    """also look at bodies of two atoms that relate the same two entities as the head"""
    min_support: int = 5
    """implied facts that must be observed"""
    min_hit_ratio: float = 0.3
    """share of the implied facts that must be observed"""
    keep_redundant: bool = False
    """keep also the rules that are not clearly better than a shorter one which generalises them"""
    top: int | None = None
    """rules to keep per head relation, the best ones; all if None"""
    max_walks: int = 2_000_000_000
    """look-ups of neighbours before pairs of entities that both have very many facts are left out"""

    def __post_init__(self) -> None:
        if self.max_length not in (1, 2, 3):
            raise ConfigError(f"bodies have one to three atoms, not {self.max_length}")
        if self.min_support < 1:
            raise ConfigError(f"a rule needs a support of at least 1, not {self.min_support}")
        if not 0.0 <= self.min_hit_ratio <= 1.0:
            raise ConfigError(f"a hit ratio is a number from 0 to 1, not {self.min_hit_ratio}")
        if self.top is not None and self.top < 1:
            raise ConfigError(f"top keeps at least one rule per head relation, not {self.top}")


@dataclass(frozen=True, slots=True)
class MiningReport:
    """What was looked at, and how many rules each filter took away."""

    facts: int
    strong_facts: int
    supported: int
    implied_too_much: int
    below_hit_ratio: int
    redundant: int
    beyond_top: int
    kept: int
    looked_at: int
    """neighbours looked up to find the walks of two steps"""
    widest: int | None
    """pairs of entities that both have more strong facts than this were left out; None if none were"""
    left_out: int
    """neighbours that were not looked up for that reason"""

    def lines(self) -> list[str]:
        """Return the report as sentences."""
        told = [
            f"{self.strong_facts:,} of {self.facts:,} facts are strong; {self.looked_at:,} neighbours were looked up.",
            f"{self.supported:,} rules have the support asked for; {self.kept:,} are kept.",
            f"Left out: {self.implied_too_much + self.below_hit_ratio:,} below the hit ratio "
            f"({self.implied_too_much:,} of them by a bound, uncounted), {self.redundant:,} no better than a shorter "
            f"rule, {self.beyond_top:,} beyond the best of their head relation.",
        ]
        if self.widest is not None:
            told.append(
                f"Pairs of entities that both have more than {self.widest:,} facts were not looked at "
                f"({self.left_out:,} neighbours), so rules that only they support are missing. "
                "The figures of the rules are exact."
            )
        return told


@dataclass(frozen=True)
class MinedRules:
    """Rules with their figures, best first, and the report of how they were found."""

    scored: tuple[ScoredRule, ...]
    report: MiningReport
    settings: MiningSettings
    prior: Prior
    """what to believe of a rule before its facts are counted, learnt from all measured rules, the bad ones too"""

    @property
    def rules(self) -> list[Rule]:
        """The rules alone."""
        return [found.rule for found in self.scored]

    def weighted(self) -> list[Rule]:
        """Return the rules weighted by their calibrated confidence (see `ukge.logic.weights`)."""
        return learn_weights(self.scored, self.prior)

    def __len__(self) -> int:
        return len(self.scored)


def mine(
    graph: UncertainGraph, settings: MiningSettings | None = None, *, engine: str | Engine = "duckdb"
) -> MinedRules:
    """Find the rules of a graph. Give it the training facts only: it looks at nothing else.

    Different variables stand for different entities, and each implied fact counts once.
    """
    wanted = settings or MiningSettings()
    with using(engine) as running, fact_tables(running, graph, wanted.strong) as facts:
        found = edges(running, facts, graph.n_relations)
        try:
            return _Miner(running, facts, graph, wanted, found).mined()
        finally:
            found.drop()


class _Miner:
    """One search: the tables it runs on, and the candidate that each measured rule came from."""

    def __init__(
        self, engine: Engine, facts: FactTables, graph: UncertainGraph, settings: MiningSettings, found: Edges
    ) -> None:
        self.engine, self.facts, self.graph, self.settings, self.found = engine, facts, graph, settings, found
        self.names = list(graph.relations)
        self.candidates: dict[Rule, Candidate] = {}
        self.measured: list[ScoredRule] = []

    def mined(self) -> MinedRules:
        least, length = self.settings.min_support, self.settings.max_length
        candidates = single_steps(self.found, least)
        walks = Walks([], 0, 0, None, 0)
        if length > 1 and self.settings.conjunctions:
            candidates += double_steps(self.found, least)
        if length > 1:
            walks = two_steps(self.found, least, self.settings.min_hit_ratio, self.settings.max_walks)
        bounded = walks.supported - len(walks.candidates)
        good = self._good([*candidates, *walks.candidates])
        if length > 2:
            good += self._good(self._extended(good))
        fresh = good if self.settings.keep_redundant else without_redundant(good)
        best = best_per_head(fresh, self.settings.top)
        report = MiningReport(
            facts=self._size(self.facts.observed),
            strong_facts=self._size(self.facts.steps) // 2,
            supported=bounded + len(self.candidates),
            implied_too_much=bounded,
            below_hit_ratio=len(self.candidates) - len(good),
            redundant=len(good) - len(fresh),
            beyond_top=len(fresh) - len(best),
            kept=len(best),
            looked_at=walks.looked_at,
            widest=walks.widest,
            left_out=walks.left_out,
        )
        return MinedRules(tuple(best), report, self.settings, learn_prior(self.measured))

    def _good(self, candidates: Sequence[Candidate]) -> list[ScoredRule]:
        rules = {as_rule(candidate, self.names): candidate for candidate in candidates}
        self.candidates.update(rules)
        strong = self.settings.strong
        measured = measure_on(self.engine, self.facts, self.graph, list(rules), strong=strong, distinct=True)
        self.measured += measured
        return [one for one in measured if one.measures.hit_ratio >= self.settings.min_hit_ratio]

    def _extended(self, good: Sequence[ScoredRule]) -> list[Candidate]:
        """Return walks of three steps that begin or end with the body of a good rule of two steps."""
        shorter = [self.candidates[one.rule] for one in good]
        bodies = {one.steps for one in shorter if one.walk and len(one.steps) == 2}
        if not bodies:
            return []
        either_way = sorted({*bodies, *(self.found.turned(steps) for steps in bodies)})
        begun = self._three_steps(either_way, backwards=False)
        ended = self._three_steps(either_way, backwards=True)
        return list(dict.fromkeys(begun + ended))

    def _three_steps(self, bodies: Sequence[tuple[int, ...]], *, backwards: bool) -> list[Candidate]:
        first, second = (pa.array(steps, pa.int32()) for steps in zip(*bodies, strict=True))
        loaded = self.engine.load(pa.table({"p1": first, "p2": second}))
        try:
            return three_steps(self.found, loaded, self.settings.min_support, backwards=backwards)
        finally:
            self.engine.drop(loaded)

    def _size(self, table: Any) -> int:
        return int(self.engine.rows(table.agg(n=table.count()))[0]["n"])


def as_rule(candidate: Candidate, relations: Sequence[str]) -> Rule:
    """Return a candidate as a rule over the variables A, B, C, … along its walk."""
    steps = candidate.steps
    ends = [ascii_uppercase[place : place + 2] if candidate.walk else "AB" for place in range(len(steps))]
    body = tuple(_atom(step, pair[0], pair[1], relations) for step, pair in zip(steps, ends, strict=True))
    return Rule(body, Atom(relations[candidate.relation], "A", ends[-1][1]))


def _atom(step: int, start: str, end: str, relations: Sequence[str]) -> Atom:
    if step < len(relations):
        return Atom(relations[step], start, end)
    return Atom(relations[step - len(relations)], end, start)
