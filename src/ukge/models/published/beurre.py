"""BEUrRE: entities are boxes, and a fact is as confident as the tail's box is covered by the head's.

Chen, Boratko, Chen, Dasgupta, Li, McCallum: Probabilistic Box Embeddings for Uncertain Knowledge Graph Reasoning.
NAACL 2021.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ukge.errors import ConfigError, known_names
from ukge.models.arrays import Array, halves, library, side_by_side, softplus, total
from ukge.models.links import Link, links
from ukge.models.losses import BatchScores, Given, Term, losses, squared
from ukge.models.scorers.base import Part, Scorer, Start, scorers
from ukge.settings.config import ObjectiveConfig
from ukge.settings.knobs import knob
from ukge.settings.own import Settable
from ukge.settings.variants import published

if TYPE_CHECKING:
    from torch import Tensor

EULER = 0.57721566490153286
"""The mean of a Gumbel variable, so that 2γβ is what the sides of a random box lose."""

FAR = -20.0
"""Below it, log softplus(x) is x to single precision."""


class Box(NamedTuple):
    """A box by its two corners."""

    low: Any
    high: Any


@dataclass(frozen=True, slots=True)
class Boxes(Settable, Scorer):
    """g = log P(h | t) = log vol(f_r(h) ∩ g_r(t)) − log vol(g_r(t)), of boxes with Gumbel corners.

    An entity is the lower corner and the logarithm of the sides. A relation moves and stretches heads (f_r) and tails
    (g_r), each by a shift of the centre and a factor for each side.
    """

    temperature: float = knob(0.01, "β, the scale of the Gumbel corners", above=0.0, most=10.0)
    released: bool = knob(
        False, "as the released code has it: boxes grow from their lower corner, volumes are soft on another scale"
    )
    size: float = knob(1.0, "share of the sides' lengths in what λ is multiplied by", least=0.0, most=1e6)
    place: float = knob(0.001, "share of corners, shifts and factors in it", least=0.0, most=1e6)

    inner_product = False
    entity_parts = (Part("corner", Start.uniform(1e-4, 0.01)), Part("log_side", Start.uniform(-0.1, -0.001)))
    relation_parts = (
        Part("head_shift", Start.normal(0.0, 1e-4)),
        Part("head_factor", Start.normal(1.0, 0.2)),
        Part("tail_shift", Start.normal(0.0, 1e-4)),
        Part("tail_factor", Start.normal(1.0, 0.2)),
    )

    def tail_query(self, head: Array, relation: Array) -> Array:
        """Return the head's box, what its relation does to tails, and 1: the candidate is the tail."""
        return self._asked(head, relation, tail=True)

    def head_query(self, relation: Array, tail: Array) -> Array:
        """Return the tail's box, what its relation does to heads, and 0: the candidate is the head."""
        return self._asked(tail, relation, tail=False)

    def _asked(self, given: Array, relation: Array, *, tail: bool) -> Array:
        k = given.shape[-1] // 2
        ahead, behind = relation[..., : 2 * k], relation[..., 2 * k :]
        box = self.moved(given, ahead if tail else behind)
        one = box.low[..., :1] * 0 + (1.0 if tail else 0.0)
        corners = side_by_side(box.low, box.high)
        asked: Array = side_by_side(side_by_side(corners, behind if tail else ahead), one)
        return asked

    def compare(self, query: Array, candidate: Array) -> Array:
        """Return the share of the tail's volume that lies within the head's box, as a logarithm."""
        k = candidate.shape[-1] // 2
        asked = Box(query[..., :k], query[..., k : 2 * k])
        other = self.moved(candidate, query[..., 2 * k : 4 * k])
        is_tail = query[..., 4 * k]
        whole = (1.0 - is_tail) * self.log_volume(asked)
        if is_tail.any():  # most of the work where each fact has many candidates of its own: not for heads
            whole = whole + is_tail * self.log_volume(other)
        share: Array = self.log_volume(self.shared(asked, other)) - whole
        return share

    def moved(self, entity: Array, change: Array) -> Box:
        """Return the box of an entity as a relation moves and stretches it."""
        xp = library(entity)
        (corner, log_side), (shift, factor) = halves(entity), halves(change)
        side, factor = xp.exp(log_side), xp.clip(factor, 0.0, None)
        low = corner + shift
        if not self.released:
            low = low + side * ((1.0 - factor) / 2)
        return Box(low, low + side * factor)

    def shared(self, one: Box, other: Box) -> Box:
        """Return the intersection of two boxes: the expected larger lower and smaller upper Gumbel corners."""
        beta = self.temperature
        low = one.low + softplus(other.low - one.low, beta)
        return Box(low, one.high - softplus(one.high - other.high, beta))

    def log_volume(self, box: Box) -> Any:
        """Return the logarithm of the expected volume of a box, to a factor that all boxes share."""
        beta, xp = self.temperature, library(box.low)
        side = box.high - box.low - 2.0 * EULER * beta
        x = side if self.released else side / beta
        near = xp.clip(x, FAR, None)
        return total(xp.log(softplus(near)) + (x - near))

    def penalty(self, head: Tensor, relation: Tensor, tail: Tensor) -> Tensor:
        """Return the lengths of sides, corners and changes, summed over facts, each with its share."""
        k = head.shape[-1] // 2
        sides = sum(each[:, k:].exp().norm(dim=1).sum() for each in (head, tail))
        rest = sum(each.norm(dim=1).sum() for each in (head[:, :k], tail[:, :k], relation))
        lengths: Tensor = self.size * sides + self.place * rest
        return lengths


@dataclass(frozen=True, slots=True)
class Exponential(Link):
    """φ = exp(g): plausibilities are logarithms of probabilities. It has no w and b."""

    def forward(self, plausibility: Array, weight: Array, bias: Array) -> Array:  # noqa: ARG002
        """Return exp(g)."""
        chance: Array = library(plausibility).exp(plausibility)
        return chance

    def predict(self, plausibility: Array, weight: Array, bias: Array) -> Array:
        """Return exp(g), at most 1."""
        bounded: Array = library(plausibility).clip(plausibility, None, 0.0)
        return self.forward(bounded, weight, bias)

    def ranking_sign(self, weight: float) -> float:  # noqa: ARG002
        """Return 1: w takes no part."""
        return 1.0


@dataclass(frozen=True, slots=True)
class _Logic:
    """What some relations are held to: that facts go on through them."""

    weight: float
    transitive: tuple[int, ...]
    composed: tuple[tuple[int, int, int], ...]
    name: str = "logic"

    def value(self, scores: BatchScores) -> Tensor:
        """Return the weight × the mean over the batch's facts of how far their boxes are from what must hold."""
        head, _, tail = scores.rows
        found = head.new_zeros(())
        if scores.relations is None or scores.kinds is None:
            return found
        boxes = scores.scorer
        if not isinstance(boxes, Boxes):
            raise ConfigError("relations are transitive or composed as boxes", hint="Give ‹scorer='boxes'›.")
        k, kinds = head.shape[-1] // 2, scores.kinds
        for each in self.transitive:
            # Who is a tail of one fact is the head of the next: as a tail it must lie where it lies as a head.
            for entity in (rows[scores.relations == each] for rows in (head, tail)):
                own = kinds[each].expand(len(entity), -1)
                as_head = boxes.moved(entity, own[:, : 2 * k])
                as_tail = boxes.moved(entity, own[:, 2 * k :])
                found = found + (1.0 - _covered(boxes, as_tail, as_head)).sum()
        for first, second, whole in self.composed:
            for part, rows in ((slice(2 * k), head), (slice(2 * k, 4 * k), tail)):
                entity = rows[scores.relations == (first if part.start is None else second)]
                steps = [kinds[each, part] for each in (first, second, whole)]
                both = _twice(boxes, entity, steps[0], steps[1])
                alone = boxes.moved(entity, steps[2].expand(len(entity), -1))
                found = found + (2.0 - _covered(boxes, alone, both) - _covered(boxes, both, alone)).sum()
        return self.weight * found / len(head)


def _covered(boxes: Boxes, one: Box, other: Box) -> Tensor:
    """Return the share of the other box that one covers."""
    share = boxes.log_volume(boxes.shared(one, other)) - boxes.log_volume(other)
    covered: Tensor = share.clamp(max=0.0).exp()
    return covered


def _twice(boxes: Boxes, entity: Tensor, first: Tensor, second: Tensor) -> Box:
    """Return the box of entities as two relations move and stretch it, one after the other."""
    k = entity.shape[-1] // 2
    shift = first[:k] + second[:k]
    factor = first[k:].clamp(min=0.0) * second[k:].clamp(min=0.0)
    return boxes.moved(entity, library(entity).concat((shift, factor)).expand(len(entity), -1))


@dataclass(frozen=True, slots=True)
class BoxLogic(Settable):
    """The squared loss, and what is known of relations by name: `boxes:transitive=isa|partof,composed=a*b=c`.

    r is transitive if r(x, y) and r(y, z) give r(x, z), and a*b=c says that a(x, y) and b(y, z) give c(x, z). The
    paper asks both of the relations' boxes themselves, not of facts.
    """

    weight: float = knob(0.1, "weight of what must hold", least=0.0, most=1e6)
    transitive: str = knob("", "names of transitive relations, with | between them")
    composed: str = knob("", "compositions, as a*b=c, with | between them")

    learns_confidence = True

    def __call__(self, config: ObjectiveConfig, given: Given) -> list[Term]:
        """Return the terms of the squared loss, and one for the relations."""
        terms = squared(config, given)
        ids = {name: at for at, name in enumerate(given.relations)}

        def place(name: str) -> int:
            if name not in ids:
                raise ConfigError(f"there is no relation '{name}'", hint=known_names(name, ids))
            return ids[name]

        transitive = tuple(place(name) for name in self.transitive.split("|") if name)
        composed = []
        for each in filter(None, self.composed.split("|")):
            names = each.replace("=", "*").split("*")
            if len(names) != 3:
                hint = "It is two relations joined by *, an equals sign, and the third."
                raise ConfigError(f"'{each}' is no composition", hint=hint)
            composed.append((place(names[0]), place(names[1]), place(names[2])))
        if transitive or composed:
            terms.append(_Logic(self.weight, transitive, tuple(composed)))
        return terms


scorers.register("boxes")(Boxes())
links.register("exponential")(Exponential())
losses.register("boxes")(BoxLogic())
published(
    "beurre",
    "BEUrRE: boxes with Gumbel corners",
    scorer="boxes",
    link="exponential",
    dim=64,
    loss="boxes",
    l2=0.001,
    lr=0.001,
    batch_size=1024,
    negatives=30,
    filter_observed=True,
    rule_weight=0.0,
)
