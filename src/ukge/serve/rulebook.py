"""The rules of a run's graph: mined once, searched by relation, shown with examples."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ukge.graph.uncertain import UncertainGraph
from ukge.logic.grounding import GroundingSettings, ground
from ukge.logic.measures import ScoredRule
from ukge.logic.mining import MiningSettings, mine
from ukge.logic.rules import Rule

EXAMPLES = 5
EXAMPLE_BUDGET = 2_000_000
"""Ground rules that may be made to choose a rule's examples from."""


@dataclass(frozen=True)
class Example:
    """A ground rule: its body's rows in the graph, the truth of the body, and the head it implies, by ids."""

    body: tuple[int, ...]
    truth: float
    head: tuple[int, int, int]


class Rulebook:
    """Mined rules with their figures, best first; a rule's number is its place."""

    def __init__(self, train: UncertainGraph, scored: Sequence[ScoredRule], tau: float) -> None:
        self.train = train
        self.scored = tuple(scored)
        self._tau = tau
        by_head: dict[str, list[Rule]] = defaultdict(list)
        for one in self.scored:
            by_head[one.rule.head.relation].append(one.rule)
        self._by_head = by_head
        self._measures = {one.rule: one.measures for one in self.scored}

    @classmethod
    def mined(cls, train: UncertainGraph, tau: float) -> Rulebook:
        """Mine the rules of the training facts, weighted by how far to trust them."""
        found = mine(train, MiningSettings(strong=tau))
        weighted = zip(found.weighted(), found.scored, strict=True)
        return cls(train, [ScoredRule(rule, one.measures) for rule, one in weighted], tau)

    def about(self, relation: str) -> Sequence[Rule]:
        """Return the rules whose head has this relation, best first."""
        return self._by_head.get(relation, ())

    def hit_ratio(self, rule: Rule) -> float:
        """Return the share of facts implied by the rule that are observed."""
        return self._measures[rule].hit_ratio

    def matching(self, relation: str | None = None, text: str = "") -> list[int]:
        """Return the numbers of the rules that have the relation anywhere and the text in their writing."""
        wanted = text.casefold()
        return [
            number
            for number, one in enumerate(self.scored)
            if (relation is None or relation in one.rule.relations) and wanted in str(one.rule).casefold()
        ]

    def examples(self, number: int, limit: int = EXAMPLES) -> list[Example]:
        """Return ground rules with the truest bodies, some with an observed head and some with an unseen one."""
        rule = self.scored[number].rule
        relations = {self.train.relations.index[name] for name in rule.relations}
        graph = self.train[np.flatnonzero(np.isin(self.train.relation, sorted(relations)))]
        settings = GroundingSettings(strong=self._tau, unseen_only=False, best_only=True, budget=EXAMPLE_BUDGET)
        table = ground(graph, [rule], settings).read()
        rows = np.argsort(-table["body"].to_numpy(), kind="stable")
        heads = [table[name].to_numpy() for name in ("head", "relation", "tail")]
        facts = [table[f"fact_{place}"].to_numpy(zero_copy_only=False) for place in range(1, len(rule) + 1)]
        original = np.flatnonzero(np.isin(self.train.relation, sorted(relations)))
        seen: dict[int, int] = defaultdict(int)
        chosen = []
        for row in rows.tolist():
            # One head entity fills a whole list otherwise, and a list of the same is no example of the rule.
            if seen[int(heads[0][row])] < 1:
                seen[int(heads[0][row])] += 1
                body = tuple(int(original[int(column[row])]) for column in facts)
                triple = (int(heads[0][row]), int(heads[1][row]), int(heads[2][row]))
                chosen.append(Example(body, float(table["body"][row].as_py()), triple))
            if len(chosen) == limit:
                break
        return chosen
