"""Fewer, better rules: without those a shorter one makes superfluous, and the best of each head relation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ukge.logic.measures import ScoredRule


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
    ranked = sorted(scored, key=_rank)
    if top is None:
        return ranked
    taken: dict[str, int] = defaultdict(int)
    kept = []
    for one in ranked:
        taken[one.rule.head.relation] += 1
        if taken[one.rule.head.relation] <= top:
            kept.append(one)
    return kept


def _rank(one: ScoredRule) -> tuple[float, int, int, str]:
    return -one.measures.lower_bound, -one.measures.support, len(one.rule), str(one.rule)
