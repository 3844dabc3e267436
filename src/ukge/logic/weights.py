"""Weights for rules: learnt from the training facts, or fixed as in the paper.

A rule's weight is how far to trust its conclusions. The share of the truth it implies that the graph shows,
Σ min(body, head) / Σ body, says that well for a rule with many implied facts and badly for one with few: among many
mined rules, some look good by luck. So the shares are drawn towards the mean of all rules that were looked at, the more
the fewer facts stand behind them: an empirical Bayes estimate under a beta prior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ukge.logic.rules import Rule

if TYPE_CHECKING:
    from ukge.logic.measures import ScoredRule

FEWEST = 3
"""With fewer rules than this, their spread says nothing, and the prior is even."""

LEAST_STRENGTH, GREATEST_STRENGTH = 1.0, 1_000.0


@dataclass(frozen=True, slots=True)
class Prior:
    """What is believed of a rule before its facts are counted: its share of truth, and how many facts that is worth."""

    mean: float
    strength: float


def learn_weights(scored: Sequence[ScoredRule], prior: Prior | None = None) -> list[Rule]:
    """Return the rules weighted by their calibrated confidence, a number from 0 to 1.

    Measure the rules on the training facts. Without a prior, one is learnt from them; for mined rules take that of
    `MinedRules`, which knows the rules that were turned down too.
    """
    shown, implied = _evidence(scored)
    known = prior or learn_prior(scored)
    weights = (shown + known.strength * known.mean) / (implied + known.strength)
    return [one.rule.with_weight(float(weight)) for one, weight in zip(scored, weights, strict=True)]


def learn_prior(scored: Sequence[ScoredRule]) -> Prior:
    """Fit the prior to the spread of the rules' shares, by its moments."""
    shown, implied = _evidence(scored)
    # In one order, because that of the rules is the engine's and sums of their shares would depend on it.
    order = np.lexsort((shown, implied))
    order = order[implied[order] > 0]
    shown, implied = shown[order], implied[order]
    if len(implied) < FEWEST:
        return Prior(0.5, LEAST_STRENGTH)
    shares = shown / implied
    mean = float(shares.mean())
    by_luck = float((shares * (1.0 - shares) / implied).mean())
    spread = max(float(shares.var(ddof=1)) - by_luck, 1e-9)
    strength = mean * (1.0 - mean) / spread - 1.0
    return Prior(mean, float(np.clip(strength, LEAST_STRENGTH, GREATEST_STRENGTH)))


def fixed_weights(rules: Sequence[Rule], weight: float = 1.0) -> list[Rule]:
    """Return the rules with one weight for all: the paper's hand-crafted kind."""
    return [rule.with_weight(weight) for rule in rules]


def _evidence(scored: Sequence[ScoredRule]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    shown = np.array([one.measures.overlap for one in scored], dtype=np.float64)
    implied = np.array([one.measures.body_sum for one in scored], dtype=np.float64)
    return shown, implied
