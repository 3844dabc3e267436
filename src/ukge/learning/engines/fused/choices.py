"""Which scorers, links, losses, samplers and optimisers the kernels know, and what is minimised, as a record."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from ukge.learning.engines.fused import links, ops, optimisers, queries
from ukge.learning.engines.fused.records import Objective
from ukge.models.losses import InKernels, PoolSettings, losses
from ukge.models.scorers import scorers
from ukge.settings.config import Config
from ukge.settings.knobs import LOSSES as NAMED

LINKS = {"logistic": links.LOGISTIC_LINK, "rectifier": links.RECTIFIER_LINK, "identity": links.IDENTITY_LINK}
LOSSES = {"squared": links.SQUARED, "logistic": links.LOGISTIC, "margin": links.MARGIN, "focus": links.FOCUS}
COMPARING = ("margin", "focus")
"""Losses that compare a fact with its unseen facts, so that these have no weight of their own."""
OPTIMISERS = {
    "adam": optimisers.ADAM,
    "lazy-adam": optimisers.LAZY_ADAM,
    "adagrad": optimisers.ADAGRAD,
    "rowwise-adagrad": optimisers.ROWWISE_ADAGRAD,
}
SAMPLERS = ("independent", "none")


def in_kernels(loss: str) -> InKernels | None:
    """Return what the kernels minimise for a loss; None if they do not know it."""
    if loss in NAMED.own:
        return InKernels(loss) if loss in LOSSES else None
    found: InKernels | None = getattr(losses.get(loss), "fused", None)
    return found


def pool_of(loss: str) -> PoolSettings | None:
    """Return how a loss fills and uses a pool, if it has one."""
    return None if loss in NAMED.own else getattr(losses.get(loss), "pool", None)


def wants_rules(config: Config) -> bool:
    """Return whether ground rules count for anything."""
    return config.objective.rule_weight > 0 or config.objective.rule_prior > 0


def applies(config: Config) -> bool:
    """Return whether the kernels can minimise what `config` asks for."""
    query, comparator = scorers.get(config.model.scorer).fused or ("", "")
    loss, sampler = in_kernels(config.objective.loss), config.sampling.sampler
    pool = pool_of(config.objective.loss)
    return (
        not config.model.encodes
        and query in queries.QUERIES
        and comparator in ops.COMPARATORS
        and config.model.link in LINKS
        and loss is not None
        and config.optimiser.optimiser in OPTIMISERS
        and sampler in SAMPLERS
        and not (sampler == "none" and (pool is not None or loss.loss in COMPARING))
        # What is drawn of a pool takes the place of ground rules.
        and not (pool is not None and (wants_rules(config) or config.model.link == "identity"))
    )


def objective_of(config: Config) -> npt.NDArray[np.void]:
    """Return what is minimised, as one record."""
    objective, loss = config.objective, in_kernels(config.objective.loss) or InKernels("squared")
    weight = 1.0 if loss.loss in COMPARING else objective.negative_weight
    codes = LINKS[config.model.link], LOSSES[loss.loss]
    weights = weight, objective.l2, objective.margin, objective.rule_weight, objective.rule_prior
    own = loss.power, loss.l3, 1.0, pool_of(objective.loss) is not None
    return np.array([codes + weights + own], dtype=Objective)
