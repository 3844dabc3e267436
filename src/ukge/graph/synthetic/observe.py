"""What the world lets us see: a sample of its facts, region by region, with noisy confidences.

Sure facts are seen more often than weak ones, and most triples have a true confidence of 0 and are never seen.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from ukge.errors import ConfigError
from ukge.graph.columns import Confidences
from ukge.graph.synthetic.latent import TYPES, Latent
from ukge.graph.synthetic.schema import RELATIONS
from ukge.graph.vocabulary import Ids

LEAST_SEEN = 0.05
"""Facts below this true confidence are never observed."""

_SURE = 0.8
_STEEPNESS = 4
_FAINT = 0.02
_LOWEST_OBSERVED = 0.01
# Keeps the random numbers of this module apart from those of the others.
_STREAM = 2


class Observed(NamedTuple):
    """Some observed facts by id, in random order."""

    head: Ids
    relation: Ids
    tail: Ids
    confidence: Confidences


def observe(latent: Latent, region: int, n_facts: int, seed: int, noise: float) -> Observed:
    """Return `n_facts` facts of a region, drawn without repeats by weight (f / 0.8)⁴, at least 0.02 and at most 1.

    Observed confidence = true confidence + normal noise of the given deviation, clipped to [0.01, 1].
    """
    rng = np.random.default_rng([seed, _STREAM, region])
    head, relation, tail, true = _possible(latent, region)
    if n_facts > len(true):
        raise ConfigError(
            f"a world of {latent.layout.n_entities:,} entities holds about "
            f"{len(true) * latent.layout.n_regions:,} facts, fewer than asked",
            hint="Ask for fewer facts or for more entities; about 20 facts per entity is a good number.",
        )
    weight = np.maximum(np.minimum(1.0, true / _SURE) ** _STEEPNESS, _FAINT)
    # The n smallest exponential waiting times are a weighted sample without repeats.
    waiting = rng.standard_exponential(len(true)) / weight
    chosen = np.argpartition(waiting, n_facts - 1)[:n_facts] if n_facts < len(true) else np.arange(len(true))
    chosen = rng.permutation(chosen)
    seen = true[chosen]
    if noise > 0.0:
        seen = np.clip(seen + rng.normal(0.0, noise, n_facts), _LOWEST_OBSERVED, 1.0)
    return Observed(head[chosen], relation[chosen], tail[chosen], seen)


def _possible(latent: Latent, region: int) -> tuple[Ids, Ids, Ids, Confidences]:
    """Return every triple of a region that may be observed, with its true confidence."""
    columns: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int32], npt.NDArray[np.int64], Confidences]] = []
    for number, kind in enumerate(RELATIONS):
        heads = latent.layout.members(TYPES.index(kind.head_type), region)
        tails = latent.layout.members(TYPES.index(kind.tail_type), region)
        true = latent.confidence(number, heads[:, None], tails[None, :])
        at_head, at_tail = np.nonzero(true >= LEAST_SEEN)
        relation = np.full(len(at_head), number, dtype=np.int32)
        columns.append((heads[at_head], relation, tails[at_tail], true[at_head, at_tail]))
    head, relation, tail, true = (np.concatenate(column) for column in zip(*columns, strict=True))
    return head.astype(np.int32), relation, tail.astype(np.int32), true
