"""The engine of one rank: its share of the facts, rows from all shards, one step together with the other ranks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ukge.distributed.table import EntityTable
from ukge.distributed.world import World
from ukge.errors import ConfigError
from ukge.learning.data import TrainingData
from ukge.learning.engines import EpochResult
from ukge.learning.engines.torch_engine import Batches
from ukge.learning.engines.torch_optimisers import Gradient, optimisers
from ukge.learning.objective import Batch, Weights, score_batch
from ukge.learning.sampling import epoch_generator, epoch_order
from ukge.models.links import links
from ukge.models.losses import losses
from ukge.models.model import first_rows, init_rest
from ukge.models.scorers import scorers
from ukge.models.tables import Floats, State
from ukge.settings.config import Config

REPLICATED = ("relation", "link")
LANES = 4
"""The sharded tables want rows of a multiple of so many numbers."""


class DistributedEngine:
    """Minimises the objective of `ukge.learning.objective` over the facts of all ranks.

    A step takes `batch_size` facts, from each rank its share. Every rank draws its own unseen facts and ground rules
    for its share, and the objective is the mean over the facts of all, so the number of ranks changes who computes
    what, not what is minimised. Relations and link are replicated; their gradients are averaged. With one thread per
    rank, an epoch is a function of the state, the seed, its number and the number of ranks.
    """

    def __init__(self, data: TrainingData, config: Config, world: World) -> None:
        _check(config, world)
        self.world = world
        self._config = config
        self._data = data
        self.scorer = scorers.get(config.model.scorer)
        self.link = links.get(config.model.link)
        self.undirected = data.undirected
        self.table = EntityTable(data.n_entities, self.scorer.entity_width(config.model.dim), config.optimiser, world)
        self.replicated = self._init()
        self._batches = Batches(data, config, world.device)
        self._optimiser = optimisers.get(config.optimiser.optimiser)(self.replicated, config.optimiser)
        self._seed = _rank_seed(config.runtime.seed, world.rank)
        self._shares = world.gathered(len(data))
        self._n_facts = sum(self._shares)
        if min(self._shares) == 0:
            raise ConfigError(f"{self._n_facts:,} facts are too few for {world.size} ranks", hint="Start fewer ranks.")
        self._steps = min(-(-self._n_facts // config.optimiser.batch_size), *self._shares, self._n_facts)

    def epoch(self, number: int, on_facts: Callable[[int], None] | None = None) -> EpochResult:
        """Run epoch `number` (from 0) together with the other ranks; the losses are those of all ranks' facts."""
        order = torch.from_numpy(epoch_order(len(self._data), self._seed, number)).to(self.world.device)
        generator = epoch_generator(self._seed, number, self.world.device)
        total = torch.zeros(len(self._batches.terms), dtype=torch.float64, device=self.world.device)
        done = 0
        for step in range(self._steps):
            first, stop = self._bounds(len(order), step)
            total += self.step(self.draw(order[first:stop], generator, number), self._weight(step))
            if on_facts is not None:
                on_facts(self._n_facts * (step + 1) // self._steps - done)
                done = self._n_facts * (step + 1) // self._steps
        means = (self.world.mean_(total) / self._steps).tolist()
        return EpochResult(
            self._n_facts, {term.name: mean for term, mean in zip(self._batches.terms, means, strict=True)}
        )

    def draw(self, picks: Tensor, generator: torch.Generator, epoch: int = 0) -> Batch:
        """Return this rank's part of a batch."""
        return self._batches.draw(picks, generator, epoch)

    def step(self, batch: Batch, weight: float = 1.0) -> Tensor:
        """Take one step together with the other ranks; return the values of this rank's terms × `weight`."""
        wanted, inverse = torch.unique(torch.cat(batch.entity_ids()), return_inverse=True)
        leaves = {name: table.detach().requires_grad_() for name, table in self.replicated.items()}
        # Each row travels once, however often the batch needs it.
        rows = self.table.rows(wanted).index_select(0, inverse)
        scores = score_batch(self.scorer, self.link, Weights(rows, leaves["relation"], leaves["link"]), batch)
        values = torch.stack([term.value(scores) for term in self._batches.terms]) * weight
        torch.autograd.backward(values.sum())
        gradients = {name: leaf.grad for name, leaf in leaves.items() if leaf.grad is not None}
        if gradients:
            mean = self.world.mean_(torch.cat([gradient.flatten() for gradient in gradients.values()]))
            parts = torch.split(mean, [gradient.numel() for gradient in gradients.values()])
            averaged = zip(gradients.items(), parts, strict=True)
            self._optimiser.step({name: Gradient(part.view_as(own)) for (name, own), part in averaged})
        return values.detach().double()

    def state(self) -> State:
        """Return the state of the replicated tables' optimiser; that of the entities' is in `table.moments()`."""
        return self._optimiser.state()

    def load_state(self, state: State) -> None:
        """Take up what `state` gave."""
        self._optimiser.load_state(state)

    def _bounds(self, n_facts: int, step: int) -> tuple[int, int]:
        """Return which of a rank's facts, in their order, a step takes: as many as any other step, or one more."""
        return n_facts * step // self._steps, n_facts * (step + 1) // self._steps

    def _weight(self, step: int) -> float:
        """Return what a rank's mean counts for, so that the mean over the ranks is the mean over the step's facts."""
        taken = [stop - first for first, stop in (self._bounds(n, step) for n in self._shares)]
        return taken[self.world.rank] * self.world.size / sum(taken)

    def _init(self) -> dict[str, Tensor]:
        """Start from the weights that one process would start from, whatever the number of ranks."""
        model, data, table = self._config.model, self._data, self.table
        rng = np.random.Generator(np.random.Philox(self._config.runtime.seed))
        local = table.local
        parts = self.scorer.entity_parts
        for rows, values in first_rows(rng, parts, data.n_entities, model.dim, model.init_scale):
            low, high = max(rows.start, table.first), min(rows.stop, table.stop)
            if low < high:
                part = torch.from_numpy(values[low - rows.start : high - rows.start])
                local[low - table.first : high - table.first] = part.to(local.device)

        def looked_up(ids: npt.NDArray[np.int64]) -> Floats:
            with torch.no_grad():
                return table.rows(torch.from_numpy(ids).to(local.device)).cpu().numpy()

        rest = init_rest(rng, self.scorer, data.n_entities, data.n_relations, model.dim, model.init_scale, looked_up)
        return {name: torch.from_numpy(array).to(local.device) for name, array in zip(REPLICATED, rest, strict=True)}


def _check(config: Config, world: World) -> None:
    sampling, dim = config.sampling, config.model.dim
    width = scorers.get(config.model.scorer).entity_width(dim)
    if width % LANES:
        raise ConfigError(f"sharded rows hold a multiple of {LANES} numbers, not {width}", hint="Change ‹dim›.")
    if scorers.get(config.model.scorer).shared_parts(dim):
        raise ConfigError(
            "ranks train the rows of entities and relations, not the tables that all facts share",
            hint="Train this model in one process.",
        )
    if config.runtime.memory_map:
        raise ConfigError("ranks hold their shards in memory, not in mapped files", hint="Leave out ‹memory_map›.")
    if getattr(losses.get(config.objective.loss), "pool", None) is not None:
        raise ConfigError("ranks keep no pool of unseen facts", hint="Train this model in one process.")
    if config.model.encodes or getattr(losses.get(config.objective.loss), "pseudo", None) is not None:
        raise ConfigError("ranks train neither encoders nor students", hint="Train this model in one process.")
    if sampling.sampler == "exhaustive":
        raise ConfigError(
            "the sampler 'exhaustive' needs every entity's row on every rank", hint="Try ‹sampler='shared'›."
        )
    if world.size > 1 and (sampling.filter_observed or sampling.in_range):
        raise ConfigError(
            "a rank knows its own share of the facts only: it can neither filter observed facts nor tell ranges",
            hint="Give ‹filter_observed=False› and ‹in_range=False›.",
        )


def _rank_seed(seed: int, rank: int) -> int:
    """Return a seed of a rank's own; the first keeps the run's."""
    return seed if rank == 0 else int(np.random.SeedSequence([seed, rank]).generate_state(1, np.uint32)[0])
