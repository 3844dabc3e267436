"""The entity table in row-wise shards: how ranks train it, and how the model on the first rank asks all of them.

It is a TorchRec collection with its optimiser fused into the backward pass.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard

from ukge.distributed.world import World
from ukge.errors import ConfigError
from ukge.models.scorers import Scorer
from ukge.models.tables import Ids, Questions
from ukge.models.tensors import TensorTables
from ukge.settings.config import OptimiserConfig

NAME = "entity"
ON_CPU = ("rowwise-adagrad", "adagrad")
ON_GPU = (*ON_CPU, "lazy-adam")
STOP, ROWS, SCORES, BEST = range(4)


def check_optimiser(name: str, device: torch.device) -> None:
    """Refuse an optimiser that cannot be fused with sharded look-ups on this device."""
    known = ON_GPU if device.type == "cuda" else ON_CPU
    if name not in known:
        raise ConfigError(
            f"the optimiser '{name}' does not train sharded tables on {device.type}",
            hint=f"Give ‹optimiser› one of: {', '.join(known)}.",
        )


class EntityTable:
    """The rows of all entities, `ceil(n / ranks)` of them on each rank, in order.

    `rows` looks up any ids from any rank. The backward pass through it applies the optimiser to the touched rows, once
    per row with the mean over the ranks of its summed gradients. All ranks must look up, and go backward, together.
    """

    def __init__(self, n_entities: int, width: int, config: OptimiserConfig, world: World) -> None:
        check_optimiser(config.optimiser, world.device)
        self.world = world
        self.shape = (n_entities, width)
        self._sharded = _shard(n_entities, width, config, world)
        self.block = -(-n_entities // world.size)
        self.first = min(world.rank * self.block, n_entities)
        self.stop = min(self.first + self.block, n_entities)

    @property
    def local(self) -> Tensor:
        """This rank's rows, `first` to `stop`, as they are stored; writing to them changes the table."""
        return self._local(self._sharded.state_dict()[f"embeddings.{NAME}.weight"], self.shape[1:])

    def rows(self, ids: Tensor) -> Tensor:
        """Return the rows of the ids, in their order."""
        from torchrec import KeyedJaggedTensor  # noqa: PLC0415 — slow to load, and loaded by now

        # One bag of all ids, so that ranks may ask for different numbers of rows, and for none.
        lengths = torch.tensor([len(ids)], dtype=torch.int32, device=ids.device)
        asked = KeyedJaggedTensor(keys=[NAME], values=ids, lengths=lengths)
        found: Tensor = self._sharded(asked).wait()[NAME].values()
        return found

    def moments(self) -> dict[str, Tensor]:
        """Return the optimiser's state by name, as it is stored: this rank's rows as parts of those of all ranks."""
        state = self._sharded.fused_optimizer.state_dict()["state"][f"embeddings.{NAME}.weight"]
        moments = {}
        for name, value in state.items():
            sharded = hasattr(value, "local_shards")
            own = self.as_global(self._local(value, tuple(value.metadata().size)[1:])) if sharded else value
            moments[name.rpartition(".")[2]] = own
        return moments

    def as_global(self, local: Tensor) -> DTensor:
        """Return a tensor with this rank's rows as a part of the one over all ranks."""
        shape = (self.shape[0], *local.shape[1:])
        strides = torch.empty(shape, device="meta").stride()
        mesh = DeviceMesh(self.world.device.type, list(range(self.world.size)))
        return DTensor.from_local(local, mesh, [Shard(0)], run_check=False, shape=torch.Size(shape), stride=strides)

    def _local(self, value: Any, rest: tuple[int, ...]) -> Tensor:
        shards = value.local_shards()
        if not shards:
            return torch.empty((0, *rest), device=self.world.device)
        tensor: Tensor = shards[0].tensor.detach()
        return tensor


class ShardedTables(TensorTables):
    """The tables of all ranks, as the first one's model asks them: inside `answering`, while the others answer.

    For a query, each rank scores the entities of its own shard, and scores travel, not rows; for the k best, k scores
    of each rank do.
    """

    rows_at_once = scores_at_once = 1 << 24

    def __init__(self, table: EntityTable, replicated: Mapping[str, Tensor]) -> None:
        super().__init__(table.local, replicated["relation"], replicated["link"])
        self._table = table
        self._world = table.world

    @property
    def shape(self) -> tuple[int, int]:
        """How many entities there are on all ranks, and how wide their rows."""
        return self._table.shape

    @torch.no_grad()
    def rows(self, ids: Ids) -> Tensor:
        """Look rows up, from whichever rank has them."""
        self._tell(ROWS)
        return self._table.rows(self.ids(ids))

    def scores(self, scorer: Scorer, asked: Questions) -> Tensor:
        """Return a score of every entity for each query, each rank's from its own shard."""
        return self._all_scores(scorer, self._ask(SCORES, 0, asked))

    def best(self, scorer: Scorer, asked: Questions, k: int) -> tuple[Tensor, Tensor]:
        """Return the k best entities of each query: the best of each rank's k best."""
        return self._best_of_all(scorer, self._ask(BEST, k, asked), k)

    @contextmanager
    def answering(self, scorer: Scorer) -> Iterator[None]:
        """On the first rank, let the block ask; on the others, first answer until that block has ended."""
        if not self._world.first:
            while self._answer(scorer):
                pass
            yield
            return
        try:
            yield
        finally:
            self._tell(STOP)

    def _answer(self, scorer: Scorer) -> bool:
        what, k, n, n_both, turned = self._tell(STOP)
        if what == ROWS:
            with torch.no_grad():  # this rank looks nothing up, but a look-up is everybody's work
                self._table.rows(self.ids(np.empty(0, dtype=np.int64)))
        elif what != STOP:
            empty = self.entity.new_empty
            both = np.empty(n_both, dtype=np.int64)
            width = self.shape[1]
            asked = self._sent(Questions(empty(n, width), both, empty(n_both, width), -1.0 if turned else 1.0))
            self._all_scores(scorer, asked) if what == SCORES else self._best_of_all(scorer, asked, k)
        return what != STOP

    def _ask(self, what: int, k: int, asked: Questions) -> Questions:
        self._tell(what, k, len(asked.query), len(asked.both), int(asked.sign < 0))
        return self._sent(asked)

    def _tell(self, *header: int) -> list[int]:
        """Send what is asked, k, how many queries, how many of both directions and their sign to the other ranks."""
        box = torch.tensor([*header, 0, 0, 0, 0][:5], device=self._world.device)
        dist.broadcast(box, src=0)
        return [int(number) for number in box.tolist()]

    def _sent(self, asked: Questions) -> Questions:
        """Send questions from the first rank to the others."""
        both = self.ids(asked.both)
        for part in (asked.query, both, asked.back):
            dist.broadcast(part.contiguous(), src=0)
        return asked._replace(both=both.cpu().numpy())

    def _all_scores(self, scorer: Scorer, asked: Questions) -> Tensor:
        own = super().scores(scorer, asked)
        return self._gathered(own, self._table.block)[:, : self.shape[0]]

    def _best_of_all(self, scorer: Scorer, asked: Questions, k: int) -> tuple[Tensor, Tensor]:
        own = super().scores(scorer, asked)
        best = own.topk(min(k, own.shape[1]), dim=1)
        width = min(k, self._table.block)
        found = self._gathered(best.values, width, fill=-torch.inf)
        places = self._gathered(best.indices + self._table.first, width)
        top = found.topk(min(k, found.shape[1]), dim=1)
        return places.gather(1, top.indices), top.values

    def _gathered(self, part: Tensor, width: int, fill: float = 0.0) -> Tensor:
        """Return the ranks' parts side by side, each filled up to the same width; only the first rank needs them."""
        padded = part.new_full((len(part), width), fill)
        padded[:, : part.shape[1]] = part
        parts = [torch.empty_like(padded) for _ in range(self._world.size)] if self._world.first else None
        dist.gather(padded, parts, dst=0)
        return padded if parts is None else torch.cat(parts, dim=1)


def _shard(n_entities: int, width: int, config: OptimiserConfig, world: World) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from fbgemm_gpu.split_embedding_configs import EmbOptimType  # noqa: PLC0415 — slow to load
        from torchrec import EmbeddingCollection, EmbeddingConfig  # noqa: PLC0415
        from torchrec.distributed.embedding import EmbeddingCollectionSharder  # noqa: PLC0415
        from torchrec.distributed.embedding_types import EmbeddingComputeKernel  # noqa: PLC0415
        from torchrec.distributed.sharding_plan import construct_module_sharding_plan, row_wise  # noqa: PLC0415
        from torchrec.distributed.types import ShardingEnv  # noqa: PLC0415

    # TorchRec asks at every look-up whether it is being traced, and PyTorch tells every rank's user about it.
    logging.getLogger("torch.fx._symbolic_trace").setLevel(logging.ERROR)
    kinds = {
        "rowwise-adagrad": EmbOptimType.EXACT_ROWWISE_ADAGRAD,
        "adagrad": EmbOptimType.EXACT_ADAGRAD,
        "lazy-adam": EmbOptimType.ADAM,
    }
    fused = {"optimizer": kinds[config.optimiser], "learning_rate": config.lr, "eps": config.eps}
    if config.optimiser == "lazy-adam":
        fused |= {"beta1": config.beta1, "beta2": config.beta2}
    sharder = EmbeddingCollectionSharder(fused_params=fused)
    table = EmbeddingConfig(name=NAME, embedding_dim=width, num_embeddings=n_entities, feature_names=[NAME])
    collection = EmbeddingCollection(tables=[table], device=torch.device("meta"))
    plan = construct_module_sharding_plan(
        collection,
        per_param_sharding={NAME: row_wise(compute_kernel=EmbeddingComputeKernel.FUSED.value)},
        sharder=sharder,
        local_size=world.local_size,
        world_size=world.size,
        device_type=world.device.type,
    )
    group = dist.group.WORLD
    return sharder.shard(collection, plan, ShardingEnv.from_process_group(group), world.device)
