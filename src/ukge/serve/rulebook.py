"""The rules of a run's graph: mined once, searched by relation, shown with examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from ukge.graph.keys import contains, triple_keys
from ukge.graph.uncertain import UncertainGraph
from ukge.logic.grounding import GroundingSettings, ground
from ukge.logic.measures import ScoredRule
from ukge.logic.mining import MiningSettings, mine

EXAMPLES, EXAMPLES_KEPT = 5, 256
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
        self.examples = lru_cache(maxsize=EXAMPLES_KEPT)(self._examples)

    @classmethod
    def mined(cls, train: UncertainGraph, tau: float) -> Rulebook:
        """Mine the rules of the training facts, weighted by how far to trust them."""
        found = mine(train, MiningSettings(strong=tau))
        weighted = zip(found.weighted(), found.scored, strict=True)
        return cls(train, [ScoredRule(rule, one.measures) for rule, one in weighted], tau)

    def matching(self, relation: str | None = None, text: str = "") -> list[int]:
        """Return the numbers of the rules that have the relation anywhere and the text in their writing."""
        wanted = text.casefold()
        return [
            number
            for number, one in enumerate(self.scored)
            if (relation is None or relation in one.rule.relations) and wanted in str(one.rule).casefold()
        ]

    def _examples(self, number: int, limit: int = EXAMPLES) -> list[Example]:
        """Return ground rules with the truest bodies, some with an observed head and some with an unseen one."""
        rule = self.scored[number].rule
        relations = {self.train.relations.index[name] for name in rule.relations}
        original = np.flatnonzero(np.isin(self.train.relation, sorted(relations)))
        settings = GroundingSettings(strong=self._tau, unseen_only=False, best_only=True, budget=EXAMPLE_BUDGET)
        table = ground(self.train[original], [rule], settings).read()
        truth = table["body"].to_numpy()
        head = np.stack([table[name].to_numpy() for name in ("head", "relation", "tail")], axis=1)
        facts = [table[f"fact_{place}"].to_numpy(zero_copy_only=False) for place in range(1, len(rule) + 1)]
        columns = head[:, 0], head[:, 1], head[:, 2]
        keys = triple_keys(*columns, self.train.n_entities, self.train.n_relations)
        observed = contains(np.unique(self.train.keys()), keys)
        order = _various(np.argsort(-truth, kind="stable"), head[:, 0])
        unseen = order[~observed[order]][: limit // 2]
        seen = order[observed[order]][: limit - len(unseen)]
        chosen = np.concatenate([seen, order[~observed[order]][: limit - len(seen)]])
        return [
            Example(
                tuple(int(original[int(column[row])]) for column in facts),
                float(truth[row]),
                (int(head[row, 0]), int(head[row, 1]), int(head[row, 2])),
            )
            for row in chosen.tolist()
        ]


def _various(order: npt.NDArray[np.int64], entity: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return of each entity only the first row: one would fill a list otherwise, and that is no example of a rule."""
    _, first = np.unique(entity[order], return_index=True)
    return order[np.sort(first)]
