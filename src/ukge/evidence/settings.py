"""What may be chosen when evidence is gathered and trees are fitted."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypedDict, Unpack

from ukge.errors import ConfigError, known_names
from ukge.graph.negatives import KINDS, SHARES

Error = Literal["squared", "absolute"]
ERRORS: tuple[Error, Error] = ("squared", "absolute")

MIXTURE: Mapping[str, float] = SHARES
"""Shares of the kinds of negative links. Trees that see one kind alone fail on the others."""


def as_error(name: str) -> Error:
    """Return the error called `name`; an unknown name is an error that lists the known ones."""
    for each in ERRORS:
        if each == name:
            return each
    raise ConfigError(f"unknown error {name!r}", hint=f"Known: {', '.join(ERRORS)}.")


def as_shares(text: str) -> dict[str, float]:
    """Return shares of kinds of negative links from words such as `corruption` or `corruption=3,paper=1`."""
    shares = {}
    for each in text.split(","):
        kind, _, share = each.strip().partition("=")
        try:
            shares[kind] = float(share or 1.0)
        except ValueError:
            what = f"the share of {kind} is {share!r}, and no number"
            raise ConfigError(what, hint="A share is a number such as 3; without one it is 1.") from None
    return shares


class RegressorChanges(TypedDict, total=False):
    """Settings of the trees, as keywords: what they mean stands at `EvidenceSettings`."""

    error: Error
    seed: int
    negatives: Mapping[str, float]
    negatives_per_fact: float
    negatives_may_hold: bool
    iterations: int
    learning_rate: float
    leaves: int
    folds: int
    rank_queries: int
    rank_candidates: int


class Changes(RegressorChanges, total=False):
    """Settings of the gathering and of the trees, as keywords."""

    expectation_trees: int
    names: bool
    strong: float
    min_hit_ratio: float


@dataclass(frozen=True, slots=True)
class EvidenceSettings:
    """Choices of the trees; the defaults were chosen on the validation facts of the three benchmark graphs."""

    error: Error = "squared"
    """what the trees make small: the squared or the absolute error"""
    seed: int = 0
    """seed of negative links, folds and trees"""
    negatives: Mapping[str, float] = field(default_factory=lambda: dict(MIXTURE))
    """shares of the kinds of negative links"""
    negatives_per_fact: float = 2.0
    """negative links per validation fact; together they weigh as much as the facts, however many there are"""
    negatives_may_hold: bool = False
    """draw negative links without a look at the facts, as those of the paper's test sets were: some are facts"""
    iterations: int = 200
    """trees of each part"""
    expectation_trees: int = 200
    """trees that learn from the known facts what their evidence means; 0 for none"""
    names: bool = True
    """let names count: where the absolute error is to be small, trees learn from how those of known facts are spelt"""
    learning_rate: float = 0.08
    """how far each tree goes"""
    leaves: int = 31
    """leaves of a tree at most"""
    folds: int = 5
    """parts of the validation facts that are predicted by heads which did not see them, to calibrate on"""
    strong: float = 0.5
    """confidence above which a fact may be part of a rule's body (τ)"""
    min_hit_ratio: float = 0.1
    """share of a rule's implied facts that must be observed"""

    rank_queries: int = 1_500
    """validation queries of each side that the trees for ranking learn from"""
    rank_candidates: int = 50
    """candidates that each model, and the graph, propose for a query"""

    def __post_init__(self) -> None:
        as_error(self.error)
        for kind, share in self.negatives.items():
            KINDS.get(kind)
            if not 0 <= share < math.inf:
                raise ConfigError(f"the share of negative links of kind {kind} is {share:g}", hint="Give 0 or more.")
        if not sum(self.negatives.values()) > 0:
            raise ConfigError("evidence needs negative links to learn from", hint="Give a kind a share above 0.")
        if self.rank_queries < 0 or self.rank_candidates < 1 or self.expectation_trees < 0:
            raise ConfigError("a ranking has 1 candidate or more; its queries and an expectation's trees may be 0")
        if not (0.0 <= self.strong <= 1.0 and 0.0 <= self.min_hit_ratio <= 1.0):
            raise ConfigError("the confidence of strong facts and the least hit ratio are numbers from 0 to 1")
        if self.folds < 2:
            raise ConfigError(f"validation facts are cut into 2 folds or more, not {self.folds}")
        if self.iterations < 1 or self.leaves < 2 or self.learning_rate <= 0 or self.negatives_per_fact <= 0:
            raise ConfigError("iterations, leaves, the learning rate and the number of negative links are above 0")

    def replace(self, **changes: Unpack[Changes]) -> EvidenceSettings:
        """Return the settings with some changed."""
        names = [each.name for each in dataclasses.fields(self)]
        for name in changes:
            if name not in names:
                raise ConfigError(f"unknown setting '{name}' of evidence", hint=known_names(name, names))
        return dataclasses.replace(self, **changes)
