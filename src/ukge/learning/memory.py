"""What training will need, before it takes it."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ukge.errors import ConfigError
from ukge.models.encoders import encoders
from ukge.models.scorers import scorers
from ukge.settings.config import Config
from ukge.storage.memory import free_memory

FLOAT = 4
KEPT_OF_EDGES = 4
"""Rows that the gradient of an encoder needs for each edge: more of them, but many edges share theirs."""
MOMENTS = {"adam": 2.0, "lazy-adam": 2.0, "adagrad": 1.0, "rowwise-adagrad": 0.0}


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """Bytes by purpose."""

    parameters: int
    optimiser: int
    best: int
    data: int
    batch: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.parameters + self.optimiser + self.best + self.data + self.batch


def estimate(config: Config, n_entities: int, n_relations: int, n_facts: int, n_rules: int = 0) -> MemoryEstimate:
    """Return what training with `config` on a graph of this size needs at its peak."""
    scorer = scorers.get(config.model.scorer)
    width = scorer.entity_width(config.model.dim)
    relations = FLOAT * n_relations * scorer.relation_width(config.model.dim)
    shared = FLOAT * sum(math.prod(part.shape) for part in scorer.shared_parts(config.model.dim))
    table = FLOAT * n_entities * width + relations + shared
    held = relations + shared if config.runtime.memory_map else table
    moments = MOMENTS.get(config.optimiser.optimiser, 2.0)
    sampling, size = config.sampling, config.optimiser.batch_size
    drawn = {"none": 0, "exhaustive": 2 * n_entities}.get(sampling.sampler, 2 * sampling.negatives)
    batch = FLOAT * size * (6 * width + 4 * drawn)
    encoder = encoders.get(config.model.encoder)
    if encoder is not None:
        # It has rows of its own besides what it makes of them, matrices, and what it keeps of a batch's edges.
        own = sum(FLOAT * each.rows * each.columns for each in encoder.tables(width))
        table += own
        held += table
        batch += (
            FLOAT
            * KEPT_OF_EDGES
            * min(n_facts, n_entities + size * (2 + drawn) * max(1, n_facts // n_entities))
            * width
        )
    return MemoryEstimate(
        parameters=held,
        optimiser=int(moments * table),
        best=held,
        data=n_facts * (3 * 4 + 4 + 8) + n_rules * (3 * 4 + 8),
        batch=batch,
    )


def refuse_if_too_large(needed: MemoryEstimate, processes: int = 1) -> None:
    """Raise `ConfigError` with a suggestion if less memory is free than training needs in each of some processes."""
    available, of = free_memory()
    free = available // processes
    if needed.total <= free:
        return
    tables = needed.parameters + needed.optimiser + needed.best
    raise ConfigError(
        f"training needs about {_size(needed.total)} of memory, and {_size(free)} of {of} are free "
        f"(weights {_size(needed.parameters)}, optimiser {_size(needed.optimiser)}, best weights {_size(needed.best)}, "
        f"facts {_size(needed.data)}, batch {_size(needed.batch)})",
        hint=(
            "Lower ‹batch_size› or ‹negatives›, or choose ‹sampler='shared'›."
            if needed.batch > tables
            else "Lower ‹dim›, choose ‹optimiser='rowwise-adagrad'› (one number per row), or ‹memory_map=True›."
        ),
    )


def _size(n_bytes: int) -> str:
    return f"{n_bytes / 2**30:.1f} GiB" if n_bytes >= 2**30 else f"{n_bytes / 2**20:.0f} MiB"
