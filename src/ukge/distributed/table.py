"""The entity table in row-wise shards: a TorchRec collection with its optimiser fused into the backward pass."""

from __future__ import annotations

import logging
import warnings
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Shard

from ukge.distributed.world import World
from ukge.errors import ConfigError
from ukge.settings.config import OptimiserConfig

NAME = "entity"
ON_CPU = ("rowwise-adagrad", "adagrad")
ON_GPU = (*ON_CPU, "lazy-adam")


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
