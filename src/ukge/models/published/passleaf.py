"""PASSLEAF: corruptions are not all false, so a share of them gets the confidence that the model itself gave them.

Chen, Yeh, Kuo: PASSLEAF: A Pool-bAsed Semi-Supervised LEArning Framework for Uncertain Knowledge Graph Embedding.
AAAI 2021.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ukge.models.losses import BatchScores, Given, InKernels, Observed, PoolSettings, Term, losses
from ukge.settings.config import ObjectiveConfig
from ukge.settings.knobs import knob
from ukge.settings.own import Settable
from ukge.settings.variants import published

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class _Unlabelled:
    """The squared error on corruptions that count as false, and on those of the pool."""

    weight: float
    name: str = "unseen"

    def value(self, scores: BatchScores) -> Tensor:
        """Return the weight × the mean over both of (f(l) − c̃)², with c̃ = 0 for what does not come from the pool."""
        mean = scores.unseen_mean(lambda g: scores.link(g).square())
        unseen, labelled = scores.unseen_plausibility, scores.labelled_plausibility
        if unseen is None or labelled is None or scores.labelled_confidence is None:
            return self.weight * mean
        false = unseen.numel() if scores.unseen_counts is None else scores.unseen_counts.sum()
        guessed = (scores.link(labelled) - scores.labelled_confidence).square().sum()
        return self.weight * (mean * false + guessed) / (false + len(labelled))


@dataclass(frozen=True, slots=True)
class SemiSupervised(Settable):
    """The loss of PASSLEAF, over any scorer with a logistic link."""

    capacity: int = knob(10_000_000, "unseen facts that the pool holds", least=1, most=1_000_000_000)
    gather: int = knob(20, "epoch from which on the pool is filled", least=0, most=1_000_000_000)
    use: int = knob(30, "epoch from which on unseen facts come from it", least=0, most=1_000_000_000)
    rise: float = knob(0.02, "what their share gains each epoch", above=0.0, most=1.0)
    most: float = knob(0.8, "the largest share", least=0.0, most=0.99)

    learns_confidence = True
    fused = InKernels("squared")

    @property
    def pool(self) -> PoolSettings:
        """How the pool is filled and used."""
        return PoolSettings(self.capacity, self.gather, self.use, self.rise, self.most)

    def __call__(self, config: ObjectiveConfig, given: Given) -> list[Term]:
        """Return the two terms."""
        given.need_unseen("semi-supervised")
        return [Observed(), _Unlabelled(config.negative_weight)]


losses.register("semi-supervised")(SemiSupervised())
published(
    "passleaf",
    "PASSLEAF over DistMult: corruptions labelled by the model itself (with --scorer complex or rotate, over those)",
    scorer="distmult",
    link="logistic",
    loss="semi-supervised",
    dim=512,
    lr=0.001,
    l2=0.005,
    batch_size=512,
    negatives=5,
    rule_weight=0.0,
)
