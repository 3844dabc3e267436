"""A training that ends with one prediction for everything: how that is noticed, and what it likely comes from.

The best epoch is asked for the confidence of validation facts and of as many random links. Where the answers hardly
differ, the numbers of the run say why: embeddings that shrank to nothing, or grew beyond all bounds, or hardly moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from ukge.graph.uncertain import UncertainGraph
from ukge.models.links import links
from ukge.models.model import Model
from ukge.models.scorers import Part, scorers
from ukge.models.tables import Floats, Parameters
from ukge.runs.directory import Progress
from ukge.runs.learnt import Collapse
from ukge.settings.config import Config

if TYPE_CHECKING:
    from ukge.learning.validation import Validation

SAMPLE = 2000
"""Validation facts that are asked for at most."""

SAME = 0.01
"""Predictions are the same if they spread by no more than this share of what they should."""

NEARLY = 0.15
"""They are nearly the same up to this share, if they are no better than a constant either."""

AS_A_CONSTANT = 0.05
"""By how much of a constant's error a model may differ from it and still be no better (or not yet as good)."""

SAME_SCORES = 1e-3
"""Spread of scores, which mean nothing but an order, that puts nothing in order."""

SHRUNK, GROWN = 0.5, 3.0
"""Sizes of embeddings, as shares of their first one, that tell too much regularisation and too long steps."""

SMALL = 0.1
"""Deviations of the first embeddings below which products of three of them are next to nothing."""

STEEP = {"adam": 0.1, "lazy-adam": 0.1}
"""Learning rates above which steps are longer than anything that is learnt; 1 for the other optimisers."""

FIRST_SIZE = 0.88
"""Deviation of the normal distribution that embeddings start from, which is cut off at two deviations."""


class _Size(NamedTuple):
    """Embeddings as shares of the size they started with."""

    entity: float
    relation: float


def find_collapse(
    parameters: Parameters, config: Config, validation: Validation, progress: Progress
) -> Collapse | None:
    """Return what is wrong with a model that predicts the same for everything, None if it does not.

    A model that learns an order is asked for its scores, since its confidences mean nothing.
    """
    known = validation.val if len(validation.val) else validation.train
    if len(known) == 0:
        return None
    rng = np.random.Generator(np.random.Philox(config.runtime.seed))
    facts = known[np.sort(rng.choice(len(known), min(len(known), SAMPLE), replace=False))]
    model, size = _looked_up(parameters, config, facts, rng)
    places = np.arange(2 * len(facts))
    asked = places, np.tile(facts.relation, 2), places + len(places)
    learns = config.objective.learns_confidence
    predicted = model.confidence(*asked) if learns else model.plausibility(*asked)
    dead = predicted.std() <= SAME_SCORES
    if learns:
        dead = _are_one_number(predicted, facts.confidence, config, stuck=progress.best_epoch < progress.epoch)
    if not dead:
        return None
    low, high = (f"{round(float(end), 3) + 0.0:.3f}" for end in (predicted.min(), predicted.max()))
    noun, part = "predictions" if learns else "scores", "validation" if len(validation.val) else "training"
    seen = f"the {noun} of {len(facts):,} {part} facts and as many random links all lie between {low} and {high}"
    learnt = np.concatenate([validation.train.confidence, validation.val.confidence])
    if learns and learnt.std() < SAME and np.abs(predicted - learnt.mean()).max() < AS_A_CONSTANT:
        cause = f"the confidences of the data are all {learnt.mean():.3g}, so there is nothing else to learn"
        return Collapse(seen, cause, "Nothing has to be done.", harmless=True)
    return Collapse(seen, *_cause(config, size, progress))


def _looked_up(
    parameters: Parameters, config: Config, facts: UncertainGraph, rng: np.random.Generator
) -> tuple[Model, _Size]:
    """Return a model of the rows that facts and as many random links need: heads first, then tails."""
    scorer = scorers.get(config.model.scorer)
    drawn = rng.integers(len(parameters.entity), size=(2, len(facts)))
    rows = parameters.entity[np.concatenate([facts.head, drawn[0], facts.tail, drawn[1]])]
    model = Model(replace(parameters, entity=rows), scorer, links.get(config.model.link))
    relation = parameters.relation[np.unique(facts.relation)]
    return model, _Size(_size(rows, scorer.entity_parts, config), _size(relation, scorer.relation_parts, config))


def _size(rows: Floats, parts: Sequence[Part], config: Config) -> float:
    """Return the size of rows as a share of their first one; 1 where they do not start from that distribution."""
    if not parts or any(part.start is not None for part in parts):
        return 1.0
    return float(np.sqrt(np.mean(np.square(rows, dtype=np.float64)))) / (FIRST_SIZE * config.model.init_scale)


def _are_one_number(predicted: Floats, confidence: npt.NDArray[np.float64], config: Config, *, stuck: bool) -> bool:
    """Return whether predictions, of facts and then of as many random links, are no more than one constant.

    A model on its way learns the constant first; it is only held to be one where its last epochs brought nothing.
    """
    told_apart = config.sampling.sampler != "none" and config.objective.negative_weight > 0
    wanted = np.concatenate([confidence, np.zeros(len(confidence))]) if told_apart else confidence
    spread, due = float(predicted.std()), float(wanted.std())
    if spread <= SAME * due or max(spread, due) < SAME:
        return True
    error = float(np.mean((predicted[: len(wanted)] - wanted) ** 2))
    return stuck and spread <= NEARLY * due and abs(error - due**2) <= AS_A_CONSTANT * due**2


def _cause(config: Config, size: _Size, progress: Progress) -> tuple[str, str]:
    """Return the likely cause and what to do about it."""
    lr, l2, scale = config.optimiser.lr, config.objective.l2, config.model.init_scale
    steep = STEEP.get(config.optimiser.optimiser, 1.0)
    if max(size) > GROWN or lr > steep:
        grown = f" and the embeddings have grown to {max(size):.0f} times their first size" if max(size) > GROWN else ""
        return (
            f"the steps of ‹lr={lr:g}› are too long{grown}",
            f"Train again with shorter ones: ‹lr={min(lr, steep) / 10:g}›.",
        )
    if scale < SMALL:
        return (
            f"embeddings that start as small as ‹init_scale={scale:g}› hardly learn",
            f"Train again with larger ones: ‹init_scale={Config().model.init_scale:g}›.",
        )
    if l2 > 0.0 and min(size) < SHRUNK:
        return (
            f"the embeddings have shrunk to {_percent(min(size))} of their first size, so ‹l2={l2:g}› is too high",
            f"Train again with a tenth of it: ‹l2={l2 / 10:g}›.",
        )
    if progress.best_epoch >= progress.epoch:
        return (
            f"after epoch {progress.epoch}, the last one, it was still learning",
            f"Train again with more epochs: ‹epochs={10 * progress.epoch}›.",
        )
    return (
        "its numbers do not say why",
        f"Try another ‹lr› (now {lr:g}), a lower ‹l2› (now {l2:g}) or a larger ‹dim› (now {config.model.dim}); "
        "`ukge tune` searches for them.",
    )


def _percent(share: float) -> str:
    return f"{100 * share:,.0f} %" if share >= 0.01 else "less than 1 %"
