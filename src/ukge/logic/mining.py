"""Mining: every closed rule of one or two body atoms (three on request), measured, filtered and ranked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from string import ascii_uppercase

from ukge.graph.uncertain import UncertainGraph
from ukge.logic.candidates import Candidate, Edges, Walks, double_steps, edges, single_steps, three_steps, two_steps
from ukge.logic.engine import Engine, using
from ukge.logic.facts import FactTables, check_strong, fact_tables
from ukge.logic.joins import Shape, bodies_table, estimates
from ukge.logic.measures import ScoredRule, measure_on
from ukge.logic.rules import LONGEST_BODY, Atom, Rule
from ukge.logic.weights import Prior, learn_prior, learn_weights
from ukge.progress.steps import Steps, Tell
from ukge.settings.knobs import check_number

MOST = 2**62
"""The largest limit: a sum of two is a number of 64 bits still."""

NO_WALKS = Walks([], 0, 0, None, 0)


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
    max_walks: int = 200_000_000
    """look-ups of neighbours before pairs of entities that both have very many facts are left out"""
    max_bodies: int = 20_000_000
    """filled bodies of three atoms to count before the rules that have the most are left out"""

    def __post_init__(self) -> None:
        check_strong(self.strong)
        check_number(int, "max_length", self.max_length, least=1, most=LONGEST_BODY)
        check_number(float, "min_hit_ratio", self.min_hit_ratio, least=0.0, most=1.0)
        check_number(int, "min_support", self.min_support, least=1, most=MOST)
        check_number(int, "max_walks", self.max_walks, least=1, most=MOST)
        check_number(int, "max_bodies", self.max_bodies, least=0, most=MOST)
        if self.top is not None:
            check_number(int, "top", self.top, least=1, most=MOST)


@dataclass(frozen=True, slots=True)
class MiningReport:
    """What was looked at, and how many rules each filter took away."""

    facts: int
    strong_facts: int
    supported: int
    implied_too_much: int
    """rules below the hit ratio by a bound alone"""
    too_dear: int
    """rules of three body atoms that were not measured, because they have too many bodies"""
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
        if self.too_dear:
            told.append(f"{self.too_dear:,} rules of three body atoms have too many bodies and were not measured.")
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
    graph: UncertainGraph,
    settings: MiningSettings | None = None,
    *,
    engine: str | Engine = "duckdb",
    tell: Tell | None = None,
) -> MinedRules:
    """Find the rules of a graph. Give it the training facts only: it looks at nothing else.

    Different variables stand for different entities, and each implied fact counts once. `tell` hears how far it is.
    """
    wanted = settings or MiningSettings()
    steps = Steps(tell, STEPS if wanted.max_length > 2 else {step: STEPS[step] for step in (LOADING, PAIRS, MEASURING)})
    steps.begin(LOADING)
    with using(engine) as running, fact_tables(running, graph, wanted.strong) as facts:
        found = edges(running, facts)
        try:
            return _Miner(running, facts, graph, wanted, found).mined(steps)
        finally:
            found.drop()


LOADING, PAIRS, MEASURING, LONGER = (
    "loading the facts",
    "finding bodies of one and two facts",
    "measuring the rules",
    "finding and measuring longer rules",
)
STEPS = {LOADING: 1, PAIRS: 2, MEASURING: 4, LONGER: 10}
"""What mining does, with the share of its time that each step takes about."""


class _Miner:
    """One search: the tables it runs on, and the candidate that each measured rule came from."""

    def __init__(
        self, engine: Engine, facts: FactTables, graph: UncertainGraph, settings: MiningSettings, found: Edges
    ) -> None:
        self.engine, self.facts, self.graph, self.settings, self.found = engine, facts, graph, settings, found
        self.names = list(graph.relations)
        self.candidates: dict[Rule, Candidate] = {}
        self.measured: list[ScoredRule] = []

    def mined(self, steps: Steps) -> MinedRules:
        asked = self.settings
        steps.begin(PAIRS)
        candidates = single_steps(self.found, asked.min_support)
        two, three, dear = NO_WALKS, NO_WALKS, 0
        if asked.max_length > 1 and asked.conjunctions:
            candidates += double_steps(self.found, asked.min_support)
        if asked.max_length > 1:
            two = two_steps(self.found, asked.min_support, asked.min_hit_ratio, asked.max_walks)
        steps.begin(MEASURING)
        good = self._good([*candidates, *two.candidates])
        if asked.max_length > 2:
            steps.begin(LONGER)
            three = self._extended(good)
            affordable, dear = self._affordable(three.candidates)
            good += self._good(affordable)
        fresh = good if asked.keep_redundant else without_redundant(good)
        best = best_per_head(fresh, asked.top)
        bounded = sum(walks.supported - len(walks.candidates) for walks in (two, three))
        report = MiningReport(
            facts=self.engine.count(self.facts.observed),
            strong_facts=self.engine.count(self.facts.observed.filter(self.facts.observed.c > asked.strong)),
            supported=bounded + dear + len(self.candidates),
            implied_too_much=bounded,
            too_dear=dear,
            below_hit_ratio=len(self.candidates) - len(good),
            redundant=len(good) - len(fresh),
            beyond_top=len(fresh) - len(best),
            kept=len(best),
            looked_at=two.looked_at + three.looked_at,
            widest=min((walks.widest for walks in (two, three) if walks.widest is not None), default=None),
            left_out=two.left_out + three.left_out,
        )
        return MinedRules(tuple(best), report, asked, learn_prior(self.measured))

    def _good(self, candidates: Sequence[Candidate]) -> list[ScoredRule]:
        rules = {as_rule(candidate, self.names): candidate for candidate in candidates}
        self.candidates.update(rules)
        strong = self.settings.strong
        measured = measure_on(self.engine, self.facts, self.graph, list(rules), strong=strong, distinct=True)
        self.measured += measured
        return [one for one in measured if self._passes(one)]

    def _passes(self, one: ScoredRule) -> bool:
        figures = one.measures
        return figures.support >= self.settings.min_support and figures.hit_ratio >= self.settings.min_hit_ratio

    def _extended(self, good: Sequence[ScoredRule]) -> Walks:
        """Return walks of three steps that begin or end with the body of a good rule of two steps."""
        shorter = [self.candidates[one.rule] for one in good]
        bodies = {one.steps for one in shorter if one.walk and len(one.steps) == 2}
        either_way = sorted({*bodies, *(self.found.directions.turned(steps) for steps in bodies)})
        if not either_way:
            return NO_WALKS
        asked = self.settings
        found = three_steps(self.found, either_way, asked.min_support, asked.min_hit_ratio, asked.max_walks)
        # A walk that both begins and ends with such a body is found from both ends.
        once = {self._walk_of(candidate): candidate for candidate in found.candidates}
        twice = len(found.candidates) - len(once)
        return replace(found, candidates=list(once.values()), supported=found.supported - twice)

    def _walk_of(self, candidate: Candidate) -> tuple[int, tuple[int, ...]]:
        """Return the head's relation and the walk from its subject on, of a head without a direction the lower walk."""
        steps, turned = candidate.steps, self.found.directions.turned(candidate.steps)
        if candidate.relation in self.found.directions.undirected:
            return candidate.relation, min(steps, turned)
        return candidate.relation, turned if candidate.backwards else steps

    def _affordable(self, candidates: Sequence[Candidate]) -> tuple[list[Candidate], int]:
        """Return the candidates whose bodies can be counted within the limit, narrow ones first; and how many not."""
        bodies = list(dict.fromkeys(candidate.steps for candidate in candidates))
        if not bodies:
            return [], 0
        whole = self._bodies(bodies)
        begun = self._bodies(list(dict.fromkeys(steps[:2] for steps in bodies)))
        cost = {steps: whole[steps] + begun[steps[:2]] for steps in bodies}
        left, fitting = self.settings.max_bodies, set()
        for steps in sorted(bodies, key=lambda one: (cost[one], one)):
            left -= cost[steps]
            if left < 0:
                break
            fitting.add(steps)
        kept = [candidate for candidate in candidates if candidate.steps in fitting]
        return kept, len(candidates) - len(kept)

    def _bodies(self, walks: Sequence[tuple[int, ...]]) -> dict[tuple[int, ...], int]:
        """Return how many ways there are to fill each walk."""
        length = len(walks[0])
        shape = Shape(tuple((place, place + 1) for place in range(length)), (0, length))
        table = bodies_table(range(len(walks)), walks)
        expected = estimates(self.engine, self.facts, table, shape)
        return {walks[number]: size for number, size in expected.items()}


def as_rule(candidate: Candidate, relations: Sequence[str]) -> Rule:
    """Return a candidate as a rule over the variables A, B, C, … along its walk."""
    steps = candidate.steps
    ends = [ascii_uppercase[place : place + 2] if candidate.walk else "AB" for place in range(len(steps))]
    body = tuple(_atom(step, pair[0], pair[1], relations) for step, pair in zip(steps, ends, strict=True))
    first, last = ("A", ends[-1][1]) if not candidate.backwards else (ends[-1][1], "A")
    return Rule(body, Atom(relations[candidate.relation], first, last))


def _atom(step: int, start: str, end: str, relations: Sequence[str]) -> Atom:
    if step < len(relations):
        return Atom(relations[step], start, end)
    return Atom(relations[step - len(relations)], end, start)


def without_redundant(scored: Sequence[ScoredRule]) -> list[ScoredRule]:
    """Leave out each rule that is not clearly better than one which generalises it.

    Clearly better: the lower bound of its hit ratio is above the other's hit ratio.
    """
    longest = max((len(one.rule) for one in scored), default=0)
    hit_ratio = {one.rule.canonical(): one.measures.hit_ratio for one in scored if len(one.rule) < longest}
    kept = []
    for one in scored:
        shorter = (hit_ratio.get(rule, -1.0) for rule in one.rule.generalisations())
        if one.measures.lower_bound > max(shorter, default=-1.0):
            kept.append(one)
    return kept


def best_per_head(scored: Sequence[ScoredRule], top: int | None = None) -> list[ScoredRule]:
    """Return the rules best first (by the lower bound of their hit ratio), at most `top` of them per head relation."""
    taken: Counter[str] = Counter()
    kept = []
    for one in sorted(scored, key=_rank):
        taken[one.rule.head.relation] += 1
        if top is None or taken[one.rule.head.relation] <= top:
            kept.append(one)
    return kept


def _rank(one: ScoredRule) -> tuple[float, int, int, str]:
    return -one.measures.lower_bound, -one.measures.support, len(one.rule), str(one.rule)
