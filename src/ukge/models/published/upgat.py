"""UPGAT: an entity attends to the tails of its facts, and to those that a teacher finds likely.

Tseng, Chen, Yeh, Lin: UPGAT: Uncertainty-Aware Pseudo-neighbor Augmented Knowledge Graph Attention Network.
PAKDD 2023.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ukge.models.encoders import Encoder, Table, encoders
from ukge.models.losses import BatchScores, Given, Observed, PseudoSettings, Term, Unseen, losses
from ukge.models.scorers.base import Start
from ukge.settings.config import ObjectiveConfig
from ukge.settings.knobs import knob
from ukge.settings.own import Settable
from ukge.settings.variants import published

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from ukge.models.neighbourhood import Neighbourhood


@dataclass(frozen=True, slots=True)
class Attention(Settable, Encoder):
    """h_i becomes W_E·h_i + ELU(Σ α·v), and g_k becomes W_R·g_k.

    An edge from i to j by k says v = W₁(h_j ∘ g_k), with the score LeakyReLU(W_a·(h_i ∘ tanh v)). So does a baseline,
    which every entity has: of h_i itself by a relation g₀ of its own. α is the softmax over i's edges and its baseline.
    """

    slope: float = knob(0.2, "of the leaky rectifier below 0", least=0.0, most=1.0)
    dropout: float = knob(0.0, "share of the attention that is dropped in training", least=0.0, most=0.99)
    unkr: bool = knob(
        False, "as unKR has it: rows of length 1 before and after, and the highest score gets the least attention"
    )
    backwards: bool = knob(False, "attend to the heads of facts whose tail an entity is, too")

    def tables(self, width: int) -> Sequence[Table]:
        """Return the matrices, as wide as a row, the vector of the scores, and the baseline's relation."""

        def table(name: str, rows: int) -> Table:
            bound = math.sqrt(2.0) * math.sqrt(6.0 / (rows + width))  # Glorot's
            return Table(name, rows, width, Start.uniform(-bound, bound))

        square = [table(name, width) for name in ("message", "own", "kind")]
        return [*square, table("score", 1), table("baseline", 1)]

    def entities(
        self, tables: Mapping[str, Tensor], near: Neighbourhood, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return W_E·h + ELU(Σ α·v) of some entities."""
        from torch.nn import functional  # noqa: PLC0415 — answers need no PyTorch

        rows, others = (tables["entity"].index_select(0, ids) for ids in (near.own, near.tail))
        if self.unkr:
            rows, others = functional.normalize(rows), functional.normalize(others)
        said = (others * tables["relation"].index_select(0, near.relation)) @ tables["message"].mT
        of_itself = (rows * tables["baseline"]) @ tables["message"].mT
        asked = rows * tables["score"]
        scores = near.products(asked, said.tanh()), (asked * of_itself.tanh()).sum(dim=1)
        sign = -1.0 if self.unkr else 1.0
        share, base = near.softmax(*(sign * functional.leaky_relu(each, self.slope) for each in scores))
        if generator is not None and self.dropout:
            share, base = (self._dropped(each, generator) for each in (share, base))
        heard = functional.elu(near.sums(share, said) + base[:, None] * of_itself)
        found = rows @ tables["own"].mT + heard
        return functional.normalize(found) if self.unkr else found

    def relations(self, tables: Mapping[str, Tensor]) -> Tensor:
        """Return W_R·g of all relations."""
        return tables["relation"] @ tables["kind"].mT

    def _dropped(self, share: Tensor, generator: torch.Generator) -> Tensor:
        """Return shares of which some are 0 and the others so much larger."""
        kept = share.new_empty(share.shape).uniform_(generator=generator) >= self.dropout
        return share * kept / (1.0 - self.dropout)


@dataclass(frozen=True, slots=True)
class _Pseudo:
    """The squared error on pseudo facts."""

    weight: float
    name: str = "pseudo"

    def value(self, scores: BatchScores) -> Tensor:
        """Return λ₂ × the mean over the batch's pseudo facts of (f(l) − c̃)²; 0 for the teacher, who has none."""
        guessed, confidence = scores.labelled_plausibility, scores.labelled_confidence
        if guessed is None or confidence is None:
            return scores.plausibility.new_zeros(())
        return self.weight * (scores.link(guessed) - confidence).square().mean()


@dataclass(frozen=True, slots=True)
class PseudoNeighbours(Settable):
    """The loss of UPGAT, over any scorer: a teacher learns from the facts, then a student from what it says, too.

    Of every head and relation of the facts, the likeliest tails that are no facts become pseudo facts with the
    teacher's confidence. The student begins anew; an encoder takes pseudo facts for edges.
    """

    top: int = knob(20, "likeliest tails of a head and a relation that are looked at", least=1, most=1_000_000)
    weight: float = knob(1.0, "λ₂, weight of the pseudo facts", least=0.0, most=1e6)
    per_fact: float = knob(1.0, "pseudo facts drawn per observed fact", above=0.0, most=1000.0)
    teacher: float = knob(0.5, "share of the epochs that the teacher has at most", above=0.0, most=0.99)

    learns_confidence = True

    @property
    def pseudo(self) -> PseudoSettings:
        """How pseudo facts are found and used."""
        return PseudoSettings(self.top, self.teacher, self.per_fact)

    def __call__(self, config: ObjectiveConfig, given: Given) -> list[Term]:
        """Return the three terms."""
        given.need_unseen("pseudo")
        return [Observed(), Unseen(config.negative_weight), _Pseudo(self.weight)]


encoders.register("attention")(Attention())
losses.register("pseudo")(PseudoNeighbours())
published(
    "upgat",
    "UPGAT: attention over the facts and over what a teacher finds likely; DistMult",
    scorer="distmult",
    link="logistic",
    encoder="attention",
    loss="pseudo",
    dim=512,
    lr=0.0005,
    l2=0.0,
    batch_size=512,
    negatives=5,
    rule_weight=0.0,
)
