"""The joint objective (eq. 15): terms over the scores of one batch, each a mean, added up.

Every engine minimises the same sum with the same means, so a weight keeps its meaning whatever the batch size and the
number of negatives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional

from ukge.learning.labelled import Labelled
from ukge.learning.sampling import Facts, Negatives
from ukge.logic.lukasiewicz import distance_to_satisfaction
from ukge.models.links import Link
from ukge.models.losses import BatchScores, Given, Term, losses
from ukge.models.scorers import Scorer
from ukge.settings.config import ObjectiveConfig


class RuleBatch(NamedTuple):
    """Ground rules drawn for a batch: their heads, the truth values of their bodies, and their rules' weights."""

    facts: Facts
    body: Tensor
    weight: Tensor


class Batch(NamedTuple):
    """Observed facts with their confidences, and the unseen facts and ground rules that were drawn for them."""

    facts: Facts
    confidence: Tensor
    negatives: Negatives | None = None
    rules: RuleBatch | None = None
    labelled: Labelled | None = None
    epoch: int = 0
    unlabelled: Facts | None = None
    of_unseen: Callable[[Scorer], Scorer] | None = None
    """gives the formula that the loss asks of unseen facts, where that is another one"""

    def entity_ids(self) -> list[Tensor]:
        """Return the ids of the entities that scoring needs, in its order: one look-up of rows has one gradient."""
        ids = [self.facts.head, self.facts.tail]
        if self.negatives is not None:
            ids += self.negatives.entities
        if self.unlabelled is not None:
            ids += [self.unlabelled.head, self.unlabelled.tail]
        for others in (self.labelled, self.rules):
            if others is not None:
                ids += [others.facts.head, others.facts.tail]
        return ids


@dataclass(frozen=True)
class Rules:
    """Ground rules, and the prior rule ¬l on their heads (eq. 10 and 14)."""

    weight: float
    prior: float
    name: str = "rules"

    def value(self, scores: BatchScores) -> Tensor:
        """Return, over the batch's ground rules, weight × mean of (w_γ·max(0, body − f))² + prior × mean of f²."""
        if scores.rules is None or scores.rule_plausibility is None:
            return scores.plausibility.new_zeros(())
        estimate = scores.link(scores.rule_plausibility)
        distance: Tensor = distance_to_satisfaction(scores.rules.body, estimate)
        return self.weight * (scores.rules.weight * distance).square().mean() + self.prior * estimate.square().mean()


@dataclass(frozen=True)
class L2:
    """The regulariser, on the rows of the batch's observed facts: of most scorers half their squares."""

    weight: float
    name: str = "l2"

    def value(self, scores: BatchScores) -> Tensor:
        """Return λ × the mean over the batch's facts of what the scorer is penalised for."""
        return self.weight * scores.penalty / len(scores.plausibility)


@dataclass(frozen=True)
class Logistic:
    """The logistic loss of deterministic baselines: on plausibilities, blind to confidences."""

    weight: float
    name: str = "logistic"

    def value(self, scores: BatchScores) -> Tensor:
        """Return the mean of softplus(−g) over facts + weight × the mean of softplus(g) over unseen facts."""
        observed = functional.softplus(-scores.plausibility).mean()
        return observed + self.weight * scores.unseen_mean(functional.softplus)


@dataclass(frozen=True)
class Margin:
    """The margin loss of deterministic baselines: on plausibilities, blind to confidences."""

    margin: float
    name: str = "margin"

    def value(self, scores: BatchScores) -> Tensor:
        """Return the mean over facts l and their unseen facts l⁻ of max(0, γ − g(l) + g(l⁻))."""
        return scores.unseen_mean(lambda g: (self.margin - scores.plausibility[:, None] + g).clamp(min=0.0))


@dataclass(frozen=True)
class Softmax:
    """Each fact among those that share its query, head or tail side: with every entity as an unseen one, 1-vs-all."""

    name: str = "softmax"

    def value(self, scores: BatchScores) -> Tensor:
        """Return the mean over facts of s × Σ over both sides of log(e^g + Σ e^g⁻) − g."""
        unseen, own = scores.unseen_plausibility, scores.plausibility
        if unseen is None:
            return own.new_zeros(())
        counts = None if scores.unseen_counts is None else scores.unseen_counts.view(len(own), 2, -1)
        missed = torch.logaddexp(log_total(unseen.view(len(own), 2, -1), counts), own[:, None]) - own[:, None]
        return (scores.confidence * missed.sum(dim=1)).mean()


def log_total(plausibility: Tensor, counts: Tensor | None) -> Tensor:
    """Return log Σ e^g over the last dimension, of the entries that count; far below any g where none does."""
    found: Tensor = _LogTotal.apply(plausibility, counts)  # type: ignore[no-untyped-call]
    return found


class _LogTotal(Function):
    """The sum that a softmax divides by, with each table written as seldom as possible.

    With every entity for every fact of a batch these tables are hundreds of megabytes, and PyTorch's own composition of
    mask, maximum, difference, exponential and sum writes a new one for each, and again on the way back.
    """

    @staticmethod
    def forward(ctx: Any, plausibility: Tensor, counts: Tensor | None) -> Tensor:
        if counts is None:
            share = plausibility.clone()
        else:
            # Finite, because nothing but minus infinity has a maximum from which no number is a distance.
            share = plausibility.masked_fill(~counts, torch.finfo(plausibility.dtype).min / 2)
        top = share.amax(dim=-1, keepdim=True)
        total = share.sub_(top).exp_().sum(dim=-1, keepdim=True)
        ctx.save_for_backward(share, total)
        return (top + total.log()).squeeze(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        share, total = ctx.saved_tensors
        return share * (gradients[0].unsqueeze(-1) / total), None


@losses.register("logistic")
def _logistic(config: ObjectiveConfig, given: Given) -> list[Term]:
    return [Logistic(config.negative_weight if given.unseen else 0.0)]


@losses.register("margin")
def _margin(config: ObjectiveConfig, given: Given) -> list[Term]:
    given.need_unseen("margin")
    return [Margin(config.margin)]


@losses.register("softmax")
def _softmax(config: ObjectiveConfig, given: Given) -> list[Term]:  # noqa: ARG001
    given.need_unseen("softmax")
    return [Softmax()]


def build_objective(config: ObjectiveConfig, *, unseen: bool, rules: bool, relations: Sequence[str] = ()) -> list[Term]:
    """Return the terms that take part, given whether batches have unseen facts (else UKGE n−) and rules (else UKGE p−).

    A term whose weight is 0 is left out. `relations` are their names, for losses that ask something of some of them.
    """
    terms = losses.get(config.loss)(config, Given(unseen, relations))
    if rules and (config.rule_weight or config.rule_prior):
        terms.append(Rules(config.rule_weight, config.rule_prior))
    if config.l2:
        terms.append(L2(config.l2))
    return terms


class Weights(NamedTuple):
    """What the scores of a batch are computed from: rows of `Batch.entity_ids`, the relations' table, w and b."""

    entity_rows: Tensor
    relation: Tensor
    link: Tensor


def score_batch(scorer: Scorer, link: Link, weights: Weights, batch: Batch) -> BatchScores:
    """Score a batch's facts, unseen facts and ground rules."""
    head, tail, *rows = torch.split_with_sizes(weights.entity_rows, [len(ids) for ids in batch.entity_ids()])
    relation = weights.relation.index_select(0, batch.facts.relation)
    tail_query = scorer.tail_query(head, relation)
    unseen = None
    others: list[Tensor | None] = []
    for drawn in (batch.rules, batch.labelled):  # the last rows first
        found = None
        if drawn is not None:
            *rows, other_head, other_tail = rows
            kinds = weights.relation.index_select(0, drawn.facts.relation)
            found = scorer.plausibility(other_head, kinds, other_tail)
        others.append(found)
    unlabelled = None
    if batch.unlabelled is not None:
        *rows, other_head, other_tail = rows
        unlabelled = other_head, weights.relation.index_select(0, batch.unlabelled.relation), other_tail
    if batch.negatives is not None:
        other = scorer if batch.of_unseen is None else batch.of_unseen(scorer)
        asked = tail_query if other is scorer else other.tail_query(head, relation)
        unseen = batch.negatives.plausibility(other, other.head_query(relation, tail), asked, *rows)
    weight, bias = weights.link.unbind()
    return BatchScores(
        link=lambda plausibility: link.forward(plausibility, weight, bias),
        plausibility=scorer.compare(tail_query, tail),
        confidence=batch.confidence,
        rows=(head, relation, tail),
        relations=batch.facts.relation,
        kinds=weights.relation,
        scorer=scorer,
        epoch=batch.epoch,
        unseen_plausibility=unseen,
        unseen_counts=None if batch.negatives is None else batch.negatives.counts,
        rule_plausibility=others[0],
        rules=batch.rules,
        labelled_plausibility=others[1],
        labelled_confidence=None if batch.labelled is None else batch.labelled.confidence,
        unlabelled=unlabelled,
    )
