"""FocusE: a fact counts among its corruptions as much as its confidence says, more and more as training goes on.

Pai, Costabello: Learning Embeddings from Knowledge Graphs With Numeric Edge Attributes. IJCAI 2021.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ukge.models.losses import BatchScores, Given, InKernels, Term, losses
from ukge.settings.config import ObjectiveConfig
from ukge.settings.knobs import knob
from ukge.settings.own import Settable
from ukge.settings.variants import published

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class _Focus:
    """Each fact among its own corruptions, after both were weighed by the confidence."""

    decay: float
    l3: float
    name: str = "focus"

    def value(self, scores: BatchScores) -> Tensor:
        """Return the mean over facts of log(e^h + Σ e^h⁻) − h, with h = α·softplus(g), and the rows' cubes.

        α is β + (1 − s)(1 − β) of the fact and β + s(1 − β) of its corruptions; β falls from 1 to 0 in `decay` epochs.
        """
        import torch  # noqa: PLC0415 — loaded by now
        from torch.nn import functional  # noqa: PLC0415

        own, unseen = scores.plausibility, scores.unseen_plausibility
        if unseen is None:
            return own.new_zeros(())
        beta = max(0.0, 1.0 - scores.epoch / self.decay)
        weighed = (beta + (1 - scores.confidence) * (1 - beta)) * functional.softplus(own)
        others = (beta + scores.confidence * (1 - beta))[:, None] * functional.softplus(unseen)
        if scores.unseen_counts is not None:
            others = others.masked_fill(~scores.unseen_counts, float("-inf"))
        among = torch.logsumexp(torch.cat([weighed[:, None], others], dim=1), dim=1)
        cubes = torch.stack([rows.abs().pow(3).sum() for rows in scores.rows]).sum()
        return (among - weighed).mean() + self.l3 * cubes / len(own)


@dataclass(frozen=True, slots=True)
class Focus(Settable):
    """The loss of FocusE, over any scorer. It learns an order, no confidence; facts are ranked by g itself."""

    decay: float = knob(200.0, "epochs in which β falls from 1 (all facts alike) to 0", above=0.0, most=1e9)
    l3: float = knob(0.001, "weight of the cubes of the rows of a batch's facts", least=0.0, most=1e6)

    @property
    def fused(self) -> InKernels:
        """The kernels have it under its own name."""
        return InKernels("focus", decay=self.decay, l3=self.l3)

    def __call__(self, config: ObjectiveConfig, given: Given) -> list[Term]:  # noqa: ARG002
        """Return the one term."""
        given.need_unseen("focus")
        return [_Focus(self.decay, self.l3)]


losses.register("focus")(Focus())
published(
    "focuse",
    "FocusE over DistMult: softmax over corruptions, weighed by confidence; for ranking",
    scorer="distmult",
    link="logistic",
    loss="focus",
    dim=400,
    lr=0.001,
    l2=0.0,
    batch_size=1024,
    negatives=15,
    rule_weight=0.0,
    metric="mrr",
)
