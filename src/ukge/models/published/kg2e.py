"""KG2E: entities and relations are Gaussians, and a fact is plausible if head − tail is like the relation.

He, Liu, Ji, Zhao: Learning to Represent Knowledge Graphs with Gaussian Embedding. CIKM 2015.
"""

from __future__ import annotations

from dataclasses import dataclass

from ukge.models.arrays import Array, halves, library, side_by_side, total
from ukge.models.scorers.base import Part, Scorer, Start, scorers
from ukge.settings.variants import published

LEAST, MOST = 0.05, 5.0
"""Between which a variance lies."""


@dataclass(frozen=True, slots=True)
class Gaussian(Scorer):
    """g = −KL(N(μ_h − μ_t, Σ_h + Σ_t) ‖ N(μ_r, Σ_r)), of diagonal Gaussians.

    A row holds means, then what makes the variances: they lie between 0.05 and 5, as the paper cuts them off, but by a
    logistic function, which has a slope everywhere.
    """

    inner_product = False
    entity_parts = relation_parts = (Part("mean"), Part("spread", Start.normal(-3.0, 0.1)))

    def tail_query(self, head: Array, relation: Array) -> Array:
        """Return the relation, the head, and 1: the candidate is taken away."""
        return _asked(relation, head, 1.0)

    def head_query(self, relation: Array, tail: Array) -> Array:
        """Return the relation, the tail, and −1: it is taken away from the candidate."""
        return _asked(relation, tail, -1.0)

    def compare(self, query: Array, candidate: Array) -> Array:
        """Return minus the divergence."""
        width, xp = candidate.shape[-1], library(query)
        of_relation, relation_spread = halves(query[..., :width])
        given, given_spread = halves(query[..., width : 2 * width])
        mean, spread = halves(candidate)
        sign = query[..., 2 * width :]
        wanted = _variance(relation_spread)
        ratio = (_variance(given_spread) + _variance(spread)) / wanted
        gap = of_relation - sign * (given - mean)
        divergence: Array = total(ratio + xp.square(gap) / wanted - xp.log(ratio) - 1.0) / 2
        return -divergence


def _asked(relation: Array, given: Array, sign: float) -> Array:
    return side_by_side(side_by_side(relation, given), given[..., :1] * 0 + sign)


def _variance(spread: Array) -> Array:
    xp = library(spread)
    # A logistic function by tanh, which neither library lets overflow.
    found: Array = LEAST + (MOST - LEAST) * (1.0 + xp.tanh(spread / 2)) / 2
    return found


scorers.register("gaussian")(Gaussian())
published(
    "kg2e",
    "KG2E: Gaussian entities and relations, compared by their divergence, with a logistic link of ours",
    scorer="gaussian",
    link="logistic",
    dim=64,
    l2=0.0,
    rule_weight=0.0,
)
