"""ssCDL: a network says how the confidence of a fact is distributed, another one how facts are ordered.

Wu, Zhu, Wang, Xu, Qi, Wang: Uncertain Knowledge Graph Completion via Semi-Supervised Confidence Distribution Learning.
NeurIPS 2025.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ukge.errors import ConfigError
from ukge.models.arrays import Array, library, side_by_side, total
from ukge.models.links import Link, links
from ukge.models.losses import BatchScores, Given, Redrawn, Term, losses
from ukge.models.scorers.base import BLOCK, Scorer, SharedPart, Start, scorers
from ukge.settings.config import ObjectiveConfig
from ukge.settings.knobs import knob
from ukge.settings.own import Settable
from ukge.settings.variants import published

if TYPE_CHECKING:
    from torch import Generator, Tensor

BINS = 101
"""Values from 0 to 1 that a confidence may have."""

SPREAD = 0.6
"""Deviation of the normal distribution that stands for a confidence."""

CONFIDENCE, RANKING, GENERATOR = "confidence", "ranking", "generator"
"""The networks: FCN1, FCN2 and PCDG."""

OUTPUTS = {CONFIDENCE: BINS, RANKING: 1, GENERATOR: BINS}


def target(confidence: Array) -> Array:
    """Return N(c, 0.6²) at the bins, as chances that add up to 1."""
    distance = (_bins(confidence) - confidence[..., None]) / SPREAD
    heights: Array = library(confidence).exp(-0.5 * distance * distance)
    return heights / total(heights)[..., None]


def _bins(like: Any) -> Any:
    if isinstance(like, np.ndarray):
        return np.linspace(0.0, 1.0, BINS, dtype=like.dtype)
    return library(like).linspace(0.0, 1.0, BINS, dtype=like.dtype, device=like.device)


LEAST, MOST = 0.1, 1.0
LOW, HIGH = (float(total(target(np.array([c])) * np.linspace(0.0, 1.0, BINS))[0]) for c in (LEAST, MOST))
"""The means of the distributions that stand for 0.1 and for 1: 0.4156 and 0.6045, because they end at 0 and 1."""


@dataclass(frozen=True, slots=True)
class Distribution(Settable, Scorer):
    """g is the mean of what FCN1 says of h, r and t side by side; or, with `ranking`, what FCN2 says of them.

    A network has two hidden layers with rectifiers. The first one adds up parts of h, r and t, so that a query holds
    the sum of two of them, and which one is missing: 1 for the tail, 0 for the head.
    """

    wide: int = knob(1024, "width of the first hidden layer", least=1, most=65_536)
    narrow: int = knob(512, "width of the second", least=1, most=65_536)
    drop_wide: float = knob(0.5, "share of the first layer that is left out while it learns", least=0.0, most=0.99)
    drop_narrow: float = knob(0.3, "share of the second", least=0.0, most=0.99)
    ranking: bool = knob(False, "answer by the ranking network; give the link 'logistic' with it")
    tables: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    generator: Any = field(default=None, repr=False, compare=False)

    inner_product = False
    distance = False

    def shared_parts(self, dim: int) -> tuple[SharedPart, ...]:
        """Return weights and biases of three networks, which start as PyTorch's own layers do."""
        found = []
        for net, outputs in OUTPUTS.items():
            sizes = 3 * dim, self.wide, self.narrow, outputs
            for layer, (n_in, n_out) in enumerate(pairwise(sizes), start=1):
                start = Start.uniform(-(n_in**-0.5), n_in**-0.5)
                found.append(SharedPart(f"{net}_weight{layer}", (n_in, n_out), start))
                found.append(SharedPart(f"{net}_bias{layer}", (n_out,), start))
        return tuple(found)

    def bound(self, shared: Mapping[str, Any]) -> Self:
        """Return the formula with its networks."""
        return replace(self, tables=shared)

    def learning(self, generator: Generator) -> Self:
        """Return the formula with dropout, drawn from a generator."""
        return replace(self, generator=generator)

    @property
    def _net(self) -> str:
        return RANKING if self.ranking else CONFIDENCE

    def tail_query(self, head: Array, relation: Array) -> Array:
        """Return the parts of head and relation, and 1."""
        (as_head, as_relation, _), bias = self._first(self._net, head.shape[-1])
        summed: Array = head @ as_head + relation @ as_relation + bias
        return _asked(summed, 1.0)

    def head_query(self, relation: Array, tail: Array) -> Array:
        """Return the parts of relation and tail, and 0."""
        (_, as_relation, as_tail), bias = self._first(self._net, tail.shape[-1])
        summed: Array = relation @ as_relation + tail @ as_tail + bias
        return _asked(summed, 0.0)

    def _first(self, net: str, dim: int) -> tuple[tuple[Any, Any, Any], Any]:
        """Return what makes parts of heads, relations and tails, and what is added to their sum."""
        weight = self.tables[f"{net}_weight1"]
        return (weight[:dim], weight[dim : 2 * dim], weight[2 * dim :]), self.tables[f"{net}_bias1"]

    def compare(self, query: Array, candidate: Array) -> Array:
        """Return what the network says with the candidate's part; while it learns, block by block."""
        found: Array = self._answer(query, candidate) if self.generator is None else self._learn(query, candidate)
        return found

    def compare_all(self, query: Array, candidates: Array) -> Array:
        """Compare block by block; while it learns, each pair has a dropout of its own."""
        if self.generator is None:
            return Scorer.compare_all(self, query, candidates)
        found: Array = self._learn(query[:, None], candidates)
        return found

    def _answer(self, query: Array, candidate: Array, seed: int | None = None) -> Array:
        summed = query[..., :-1] + self._part(candidate, query[..., -1:])
        found = self.from_first(self._net, summed, seed)
        return found[..., 0] if self.ranking else mean(found)

    def _part(self, candidate: Array, is_tail: Array) -> Array:
        """Return a candidate's part of the first layer, as a tail or as a head; both only where both are asked for."""
        (as_head, _, as_tail), _ = self._first(self._net, candidate.shape[-1])
        if bool((is_tail == 1).all()):
            part: Array = candidate @ as_tail
        elif bool((is_tail == 0).all()):
            part = candidate @ as_head
        else:
            part = is_tail * (candidate @ as_tail) + (1.0 - is_tail) * (candidate @ as_head)
        return part

    def _learn(self, query: Any, candidate: Any) -> Any:
        """Compare blocks, which are computed again for the gradient rather than kept, with the same dropout."""
        import torch  # noqa: PLC0415 — loaded by now
        from torch.utils.checkpoint import checkpoint  # noqa: PLC0415

        lead = torch.broadcast_shapes(query.shape[:-1], candidate.shape[:-1])  # type: ignore[no-untyped-call]
        query, candidate = (rows.expand(*lead, rows.shape[-1]) for rows in (query, candidate))
        step = max(1, BLOCK // (self.wide * max(1, lead[1:].numel())))
        found = []
        for asked, rows in zip(torch.split(query, step), torch.split(candidate, step), strict=True):
            if torch.is_grad_enabled() and len(candidate) > step:
                again: dict[str, Any] = {"use_reentrant": False, "preserve_rng_state": False}
                found.append(checkpoint(self._answer, asked, rows, self._seed(), **again))
            else:
                found.append(self._answer(asked, rows, self._seed()))
        return torch.cat(found)

    def outputs(self, net: str, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        """Return what a network says of facts, before a softmax."""
        (as_head, as_relation, as_tail), bias = self._first(net, head.shape[-1])
        summed: Tensor = head @ as_head + relation @ as_relation + tail @ as_tail + bias
        return self.from_first(net, summed, self._seed())

    def distribution(self, head: Array, relation: Array, tail: Array) -> Array:
        """Return the chance of each bin, from 0 to 1. It is as wide as the targets are, and no doubt of the model's."""
        asked = replace(self, ranking=False)
        query = asked.tail_query(head, relation)
        return chances(asked.from_first(CONFIDENCE, query[..., :-1] + asked._part(tail, query[..., -1:])))

    def from_first(self, net: str, summed: Array, seed: int | None = None) -> Array:
        """Return what a network makes of sums of its first layer; with a seed, with dropout."""
        xp, tables = library(summed), self.tables
        flat: Any = summed.reshape(-1, summed.shape[-1])
        shares = self.drop_wide, self.drop_narrow
        drawn = None if seed is None else xp.Generator(device=flat.device).manual_seed(seed)
        for layer, share in enumerate(shares, start=2):
            flat = xp.clip(flat, 0.0, None)
            if drawn is not None and share > 0.0:
                flat = flat * xp.empty_like(flat).bernoulli_(1.0 - share, generator=drawn) / (1.0 - share)
            flat = flat @ tables[f"{net}_weight{layer}"] + tables[f"{net}_bias{layer}"]
        found: Array = flat.reshape(*summed.shape[:-1], flat.shape[-1])
        return found

    def _seed(self) -> int | None:
        """Return where the dropout of one block starts; None while nothing is learnt."""
        if self.generator is None:
            return None
        import torch  # noqa: PLC0415 — loaded by now

        return int(torch.randint(1 << 62, (), generator=self.generator, device=self.generator.device))


def _asked(summed: Array, is_tail: float) -> Array:
    return side_by_side(summed, summed[..., :1] * 0 + is_tail)


def chances(outputs: Array) -> Array:
    """Return the softmax of outputs."""
    xp = library(outputs)
    heights: Array = xp.exp(outputs - xp.amax(outputs, axis=-1, keepdims=True))
    shares: Array = heights / total(heights)[..., None]
    return shares


def mean(outputs: Array) -> Array:
    """Return E, the mean of the bins under the softmax of outputs."""
    weighed: Array = chances(outputs) * _bins(outputs)
    return total(weighed)


def rescaled(expected: Array) -> Array:
    """Return the confidence that a mean E stands for: the line through (0.4156, 0.1) and (0.6045, 1)."""
    confidence: Array = LEAST + (expected - LOW) * ((MOST - LEAST) / (HIGH - LOW))
    return confidence


@dataclass(frozen=True, slots=True)
class Expectation(Link):
    """φ = the confidence that a mean stands for, cut off at 0 and 1 where it is told. It has no w and b."""

    def forward(self, plausibility: Array, weight: Array, bias: Array) -> Array:  # noqa: ARG002
        """Return the confidence, not cut off."""
        return rescaled(plausibility)

    def predict(self, plausibility: Array, weight: Array, bias: Array) -> Array:
        """Return the confidence, within [0, 1]."""
        bounded: Array = library(plausibility).clip(self.forward(plausibility, weight, bias), 0.0, 1.0)
        return bounded

    def ranking_sign(self, weight: float) -> float:  # noqa: ARG002
        """Return 1: w takes no part."""
        return 1.0


def _errors(outputs: Tensor, wanted: Tensor, log_wanted: Tensor, confidence: Tensor) -> Tensor:
    """Return ½(KL(wanted ‖ said) + (E − c)²) of each fact, with E as a confidence."""
    said: Tensor = outputs.log_softmax(-1)
    divergence = (wanted * (log_wanted - said)).sum(-1)
    expected: Tensor = (said.exp() * _bins(said)).sum(-1)
    return 0.5 * (divergence + (rescaled(expected) - confidence).square())


def _labelled(nets: Distribution, rows: tuple[Tensor, Tensor, Tensor], confidence: Tensor) -> Tensor:
    """Return the mean error on facts whose confidence is known."""
    wanted = target(confidence)
    return _errors(nets.outputs(CONFIDENCE, *rows), wanted, wanted.log(), confidence).mean()


def _guessed(nets: Distribution, rows: tuple[Tensor, Tensor, Tensor], outputs: Tensor) -> Tensor:
    """Return the error on each fact that the generator labels, given what it says."""
    wanted = outputs.softmax(-1)
    confidence = rescaled((wanted * _bins(wanted)).sum(-1))
    return _errors(nets.outputs(CONFIDENCE, *rows), wanted, outputs.log_softmax(-1), confidence)


@dataclass(frozen=True, slots=True)
class _Part:
    """One term, by what it is called and how it is found; 0 where a batch has nothing for it."""

    name: str
    found: Callable[[Distribution, BatchScores], Tensor | None]

    def value(self, scores: BatchScores) -> Tensor:
        """Return the term's value on a batch."""
        found = self.found(_nets(scores.scorer), scores)
        return scores.confidence.new_zeros(()) if found is None else found


def _nets(scorer: Scorer) -> Distribution:
    if not isinstance(scorer, Distribution):
        raise ConfigError(
            "the distribution loss trains the networks of one scorer", hint="Give ‹scorer='distribution'›."
        )
    return scorer


@dataclass(frozen=True, slots=True)
class SelfTraining(Settable):
    """The loss of ssCDL: a distribution for each fact, an order among its corruptions, and labels of its own making."""

    ranking: float = knob(2.5, "weight of the order: ½ · 0.1 · 50 corruptions", least=0.0, most=1e6)
    margin: float = knob(
        0.1, "by how much the score of a fact shall lie above those of its corruptions", least=0.0, most=1e6
    )
    guesses: float = knob(0.7, "ω, the weight of corruptions that the generator labels", least=0.0, most=1e6)
    threshold: float = knob(0.0111, "how likely the likeliest bin of a label must be", least=0.0, most=1.0)
    since: int = knob(30, "epoch from which on corruptions are labelled", least=0, most=1_000_000_000)
    every: int = knob(5, "epochs after which they are drawn again", least=1, most=1_000_000_000)
    step: float = knob(4.0, "length of the step after which the generator's labels are judged", least=0.0, most=1e6)

    learns_confidence = True

    @property
    def redrawn(self) -> Redrawn:
        """When corruptions are drawn."""
        return Redrawn(self.since, self.every)

    def of_unseen(self, scorer: Scorer) -> Scorer:
        """Return the ranking network: unseen facts are there to be ranked below others."""
        return replace(_nets(scorer), ranking=True)

    def __call__(self, config: ObjectiveConfig, given: Given) -> list[Term]:  # noqa: ARG002
        """Return the terms."""
        given.need_unseen("distribution")
        return [
            _Part("observed", lambda nets, scores: _labelled(nets, scores.rows, scores.confidence)),
            _Part("unseen", self._order),
            _Part("guesses", self._guesses),
            _Part("generator", self._look_ahead),
        ]

    def _order(self, nets: Distribution, scores: BatchScores) -> Tensor:
        """Return the weight × the mean over corruptions of c · max(0, 0.1 + s(l⁻) − s(l))."""
        own = nets.outputs(RANKING, *scores.rows)[:, 0].sigmoid()
        due = self.margin - own[:, None]
        return self.ranking * scores.unseen_mean(
            lambda g: scores.confidence[:, None] * (due + g.sigmoid()).clamp(min=0.0)
        )

    def _guesses(self, nets: Distribution, scores: BatchScores) -> Tensor | None:
        """Return ω × the error on corruptions whose label is sharp enough, over the number of facts."""
        if scores.unlabelled is None:
            return None
        sure = replace(nets, generator=None).outputs(GENERATOR, *scores.unlabelled).detach()
        kept = sure.softmax(-1).amax(-1) > self.threshold
        return self.guesses * (kept * _guessed(nets, scores.unlabelled, sure)).mean()

    def _look_ahead(self, nets: Distribution, scores: BatchScores) -> Tensor | None:
        """Return the error on the facts after a step that the generator's labels take part in.

        Nothing but the generator learns from it. All of its labels are judged, so that none is lost for good.
        """
        import torch  # noqa: PLC0415 — loaded by now

        if scores.unlabelled is None:
            return None
        own = {name: table.detach() for name, table in nets.tables.items() if name.startswith(CONFIDENCE)}
        now = {name: table.requires_grad_() for name, table in own.items()}
        before = replace(nets, tables={**nets.tables, **now})
        head, relation, tail, *others = (each.detach() for each in (*scores.rows, *scores.unlabelled))
        unlabelled = others[0], others[1], others[2]
        guessed = _guessed(before, unlabelled, before.outputs(GENERATOR, *unlabelled)).mean()
        error = _labelled(before, (head, relation, tail), scores.confidence) + self.guesses * guessed
        slopes = torch.autograd.grad(error, list(now.values()), create_graph=True)
        moved = {name: now[name] - self.step * slope for name, slope in zip(now, slopes, strict=True)}
        after = replace(nets, tables={**nets.tables, **moved})
        return _labelled(after, (head, relation, tail), scores.confidence)


scorers.register("distribution")(Distribution())
links.register("expectation")(Expectation())
losses.register("distribution")(SelfTraining())
published(
    "sscdl",
    "ssCDL: networks that tell a distribution of the confidence and an order, with labels of their own making",
    scorer="distribution",
    link="expectation",
    loss="distribution",
    dim=128,
    lr=0.001,
    l2=0.0,
    batch_size=4096,
    negatives=25,
    filter_observed=True,
    negative_weight=0.0,
    rule_weight=0.0,
    metric="mse-positives",
    epochs=1200,
)
