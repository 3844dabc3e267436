"""Losses: what is asked of a batch's scores, by name; the paper's (eq. 13 and 14), and what others are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ukge.errors import ConfigError
from ukge.models.scorers.base import Scorer
from ukge.registry import Registry
from ukge.settings.config import ObjectiveConfig

if TYPE_CHECKING:
    from torch import Tensor


class RuleScores(Protocol):
    """What is known of a batch's ground rules: the truth values of their bodies, and their rules' weights."""

    @property
    def body(self) -> Tensor:
        """The truth values of the bodies."""

    @property
    def weight(self) -> Tensor:
        """The weights of the rules."""


@dataclass(frozen=True)
class BatchScores:
    """All that the terms of the objective see of a batch: scores and rows, never the model.

    `link` maps plausibilities to f(l) as the loss takes it.
    """

    link: Callable[[Tensor], Tensor]
    plausibility: Tensor
    confidence: Tensor
    rows: tuple[Tensor, Tensor, Tensor]
    """rows of the facts' heads, relations and tails"""
    scorer: Scorer
    """what the plausibilities are of, for terms that ask something of its rows"""
    unseen_plausibility: Tensor | None = None
    unseen_counts: Tensor | None = None
    rule_plausibility: Tensor | None = None
    rules: RuleScores | None = None
    labelled_plausibility: Tensor | None = None
    labelled_confidence: Tensor | None = None
    """unseen facts of a pool, with the confidences that the model gave them before"""
    unlabelled: tuple[Tensor, Tensor, Tensor] | None = None
    """rows of one corruption of each fact, for losses that label them"""
    relations: Tensor | None = None
    """ids of the facts' relations"""
    kinds: Tensor | None = None
    """the rows of all relations"""
    epoch: int = 0
    """number of the epoch, from 0, for what changes as training goes on"""

    @property
    def penalty(self) -> Tensor:
        """What the scorer is penalised for, summed over the facts."""
        return self.scorer.penalty(*self.rows)

    def unseen_mean(self, values: Callable[[Tensor], Tensor]) -> Tensor:
        """Return the mean of a function of the unseen facts' plausibilities (b, m) over the entries that count."""
        if self.unseen_plausibility is None:
            return self.plausibility.new_zeros(())
        loss = values(self.unseen_plausibility)
        if self.unseen_counts is None:
            return loss.mean()
        return (loss * self.unseen_counts).sum() / self.unseen_counts.sum().clamp(min=1)


class Term(Protocol):
    """One summand of the objective."""

    @property
    def name(self) -> str:
        """The name under which its values are reported."""

    def value(self, scores: BatchScores) -> Tensor:
        """Return the term's value on a batch, its weight included."""


class Given(NamedTuple):
    """What a loss is told before training: whether there are unseen facts, and the names of the relations."""

    unseen: bool
    relations: Sequence[str] = ()

    def need_unseen(self, loss: str) -> None:
        """Refuse to go without unseen facts."""
        if not self.unseen:
            raise ConfigError(f"the {loss} loss needs unseen facts", hint="Choose another sampler than 'none'.")


class PoolSettings(NamedTuple):
    """How a loss learns from unseen facts that the model labels itself: a ring of `capacity` of them.

    From epoch `gather` on it is filled with corruptions and what the model says of them, from epoch `use` on a share of
    a batch's unseen facts comes from it: `rise` more each epoch, up to `most`.
    """

    capacity: int
    gather: int
    use: int
    rise: float
    most: float

    def share(self, epoch: int) -> float:
        """Return which share of the unseen facts comes from the pool in an epoch."""
        return min(self.most, self.rise * (epoch - self.use + 1)) if epoch >= self.use else 0.0


class PseudoSettings(NamedTuple):
    """How a student learns from a teacher: from what that finds likeliest of what it was not told.

    The teacher has at most a `share` of the epochs. Of the `top` likeliest tails of a head and a relation, those that
    are no facts become pseudo facts; so many of them are drawn `per_fact` of a batch.
    """

    top: int
    share: float
    per_fact: float

    def epochs(self, of: int) -> int:
        """Return how many of all epochs the teacher has at most."""
        return max(1, int(self.share * of))


class Redrawn(NamedTuple):
    """One corruption of each fact, for losses that label them: from epoch `since` on, anew every so many epochs."""

    since: int
    every: int


class InKernels(NamedTuple):
    """What the kernels of the fused engine minimise for a loss: one of theirs, by name, with its numbers."""

    loss: str
    power: float = 0.0
    """of a margin: it is multiplied by the confidence to this power"""
    decay: float = 1.0
    """of the focus: epochs in which β falls from 1 to 0"""
    l3: float = 0.0
    """weight of the cubes of the rows of a batch's facts"""


Loss = Callable[[ObjectiveConfig, Given], list[Term]]
losses: Registry[Loss] = Registry("loss", "ukge.losses", more="ukge.models.published")
"""What is asked of observed and unseen facts, by name. One whose attribute `learns_confidence` is true makes φ(g) a
confidence; others learn an order. One with an attribute `pool` learns from a pool of its own guesses, one with
`pseudo` from a teacher's, one with `redrawn` from corruptions that it labels itself. One with a method `of_unseen` asks
another formula of unseen facts than of observed ones: it returns that, given the scorer. One with an attribute `fused`,
an `InKernels`, is trained by the fused engine too."""


@dataclass(frozen=True)
class Observed:
    """J⁺, on observed facts (eq. 13)."""

    name: str = "observed"

    def value(self, scores: BatchScores) -> Tensor:
        """Return the mean over the batch's facts of (f(l) − s)²."""
        return (scores.link(scores.plausibility) - scores.confidence).square().mean()


@dataclass(frozen=True)
class Unseen:
    """The prior rule ¬l on unseen facts (eq. 12 and 14)."""

    weight: float
    name: str = "unseen"

    def value(self, scores: BatchScores) -> Tensor:
        """Return the weight × the mean over the batch's unseen facts of f(l)²."""
        return self.weight * scores.unseen_mean(lambda g: scores.link(g).square())


@losses.register("squared")
def squared(config: ObjectiveConfig, given: Given) -> list[Term]:
    """Return what the paper asks of observed and unseen facts (eq. 13 and 14)."""
    return [Observed(), Unseen(config.negative_weight)] if given.unseen and config.negative_weight else [Observed()]
