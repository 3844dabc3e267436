"""GTransE: TransE whose margin grows with the confidence of a fact.

Kertkeidkachorn, Liu, Ichise: GTransE: Generalizing Translation-Based Model on Uncertain Knowledge Graph Embedding.
JSAI 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ukge.models.arrays import Array, library, total
from ukge.models.losses import BatchScores, Given, InKernels, Term, losses
from ukge.models.scorers.base import EPS, scorers
from ukge.models.scorers.transe import TransE
from ukge.settings.config import ObjectiveConfig
from ukge.settings.knobs import knob
from ukge.settings.own import Settable
from ukge.settings.variants import published

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class UnitTransE(TransE):
    """g = −‖h/‖h‖ + r − t/‖t‖‖₁: entities are directions, so that no margin is met by growing."""

    fused = ("unit translation", "unit l1")

    def tail_query(self, head: Array, relation: Array) -> Array:
        """Return h + r, of a head of length 1."""
        return _direction(head) + relation

    def head_query(self, relation: Array, tail: Array) -> Array:
        """Return t − r, of a tail of length 1."""
        return _direction(tail) - relation

    def compare(self, query: Array, candidate: Array) -> Array:
        """Return the distance to a candidate of length 1."""
        return TransE.compare(self, query, _direction(candidate))

    def compare_all(self, query: Array, candidates: Array) -> Array:
        """Return the distances to all candidates of length 1, which are made so once."""
        return TransE.compare_all(TransE(self.p), query, _direction(candidates))


def _direction(rows: Array) -> Array:
    xp = library(rows)
    length: Array = xp.sqrt(total(xp.square(rows)) + EPS)
    return rows / length[..., None]


@dataclass(frozen=True, slots=True)
class _GrowingMargin:
    """The margin loss with a margin for each fact."""

    margin: float
    power: float
    name: str = "margin"

    def value(self, scores: BatchScores) -> Tensor:
        """Return the mean over facts l and their unseen facts l⁻ of max(0, M·s^α − g(l) + g(l⁻))."""
        due = self.margin * scores.confidence**self.power - scores.plausibility
        return scores.unseen_mean(lambda g: (due[:, None] + g).clamp(min=0.0))


@dataclass(frozen=True, slots=True)
class GrowingMargin(Settable):
    """The loss of GTransE, over any scorer; M is the setting `margin`. It learns an order, no confidence."""

    power: float = knob(2.0, "α: how steeply the margin grows with the confidence", least=0.0, most=100.0)

    @property
    def fused(self) -> InKernels:
        """A margin for each fact."""
        return InKernels("margin", power=self.power)

    def __call__(self, config: ObjectiveConfig, given: Given) -> list[Term]:
        """Return the one term."""
        given.need_unseen("growing-margin")
        return [_GrowingMargin(config.margin, self.power)]


scorers.register("transe-unit")(UnitTransE(1))
losses.register("growing-margin")(GrowingMargin())
published(
    "gtranse",
    "GTransE: TransE with margins that grow with confidence; for ranking",
    scorer="transe-unit",
    link="logistic",
    loss="growing-margin",
    margin=10.0,
    dim=200,
    lr=0.001,
    l2=0.0,
    batch_size=256,
    negatives=5,
    rule_weight=0.0,
    metric="mrr",
)
