"""The ranks of one training: how they find each other, how a process joins them, and what they tell each other.

torchrun keeps one store for all its restarts. What a rank wrote there before it died, its address too, is still there
when the ranks are started again, and one that is quicker than another would call the dead one. A count of restarts
does not tell the old from the new: every machine's launcher counts its own. So each start gets a name that no start
before it had, and keeps all it writes under that name (`agreed_name`).
"""

from __future__ import annotations

import importlib.util
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from ukge.errors import ConfigError, RunError, UkgeError
from ukge.models.tensors import resolve_device

PATIENCE = timedelta(minutes=30)
"""How long a rank waits for the others: longer than one of them may read data, build a metric or write a run."""

PAUSE = 0.01
"""Seconds between two looks of the first rank for the others."""

LAUNCH_HINT = "For example: torchrun --nproc-per-node 2 --no-python ukge train DATA --distributed --out RUN"
LOST_HINT = "A rank has ended. What has ended it stands above or in the system's log; memory is the usual reason."
INSTALL_HINT = (
    "pip install 'ukge[distributed]', then on a machine without a GPU: "
    "pip install --no-deps torchrec==1.8.0 fbgemm-gpu-cpu==1.8.0; with one: pip install torchrec==1.8.0"
)


class FirstRankError(UkgeError):
    """Raised on the other ranks when the first one met an error, which it tells itself."""


@dataclass(frozen=True)
class World:
    """Who takes part, and where this rank computes."""

    rank: int
    size: int
    device: torch.device
    local_size: int
    """How many ranks share this machine."""
    launch: Store
    """What torchrun keeps for the ranks for as long as it runs, also when it starts them again."""

    @property
    def first(self) -> bool:
        """Whether this is the rank that reads, writes and speaks for all."""
        return self.rank == 0

    def broadcast(self, value: float) -> float:
        """Return the first rank's value on every rank."""
        box = torch.tensor([value], dtype=torch.float64, device=self._box())
        dist.broadcast(box, src=0)
        return float(box.item())

    def broadcast_text(self, text: str) -> str:
        """Return the first rank's text on every rank."""
        content = np.frombuffer(text.encode(), dtype=np.uint8)
        size = int(self.broadcast(len(content)))
        box = torch.zeros(max(size, 1), dtype=torch.uint8, device=self._box())
        if self.first and size:
            box[:size] = torch.from_numpy(content.copy())
        dist.broadcast(box, src=0)
        return box[:size].cpu().numpy().tobytes().decode()

    def mean_(self, tensor: Tensor) -> Tensor:
        """Replace a tensor by its mean over the ranks."""
        dist.all_reduce(tensor)
        return tensor.div_(self.size)

    def gathered(self, value: int) -> list[int]:
        """Return every rank's number, in the order of the ranks."""
        box = torch.zeros(self.size, dtype=torch.int64, device=self._box())
        box[self.rank] = value
        dist.all_reduce(box)
        return [int(each) for each in box.tolist()]

    def barrier(self) -> None:
        """Wait for the others."""
        dist.all_reduce(torch.zeros(1, device=self._box()))

    def by_first(self, work: Callable[[], None]) -> None:
        """Let the first rank do something and the others wait for it. Its error ends them all, told once."""
        error: UkgeError | OSError | None = None
        if self.first:
            try:
                work()
            except (UkgeError, OSError) as met:
                error = met
        failed = self.broadcast(float(error is not None)) > 0
        if error is not None:
            raise error
        if failed:
            raise FirstRankError("the first rank met an error")

    def _box(self) -> torch.device:
        return self.device if self.device.type == "cuda" else torch.device("cpu")


@contextmanager
def joined(device: str) -> Iterator[World]:
    """Join the ranks that `torchrun` started, for the time of the block: gloo between CPUs, NCCL between GPUs."""
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        raise ConfigError("ranks are started by torchrun, and these were not", hint=LAUNCH_HINT)
    require_torchrec()
    place = resolve_device(device)
    if place.type == "cuda":
        place = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
        torch.cuda.set_device(place)
    elif place.type != "cpu":
        raise ConfigError(f"ranks compute on CPUs or CUDA devices, not on '{place}'", hint="Give ‹device='cpu'›.")
    # The ranks' own store, not the one of `init_process_group`, which would find what dead ranks left in it.
    shared, rank, size = next(rendezvous("env://", timeout=PATIENCE))
    shared.set_timeout(PATIENCE)
    launch = PrefixStore("ukge", shared)
    own = PrefixStore(agreed_name(launch, rank, size, PATIENCE), launch)
    backend = "nccl" if place.type == "cuda" else "gloo"
    dist.init_process_group(backend, store=own, rank=rank, world_size=size, timeout=PATIENCE)
    try:
        yield World(rank, size, place, int(os.environ.get("LOCAL_WORLD_SIZE", size)), launch)
    except RuntimeError as error:
        if not _of_the_line(error):
            raise
        raise RunError(f"rank {rank} lost the others: {error}", hint=LOST_HINT) from None
    finally:
        dist.destroy_process_group()


def agreed_name(store: Store, rank: int, size: int, patience: timedelta) -> str:
    """Return a name of this start of the ranks, the same on each and never used before in the store.

    Every rank but the first asks under a token of its own, and takes the answer to that token only. The first rank
    cannot tell whether it reads the question of a rank that is dead, so it answers until the one that lives confirms.
    """
    token = uuid.uuid4().hex
    if rank:
        store.set(f"asked/{rank}", token)
        name = store.get(f"answer/{token}").decode()
        store.set(f"heard/{name}/{rank}", "")
        return name
    deadline = time.monotonic() + patience.total_seconds()
    missing = list(range(1, size))
    while missing:
        for other in missing:
            if store.check([f"asked/{other}"]):
                store.set(f"answer/{store.get(f'asked/{other}').decode()}", token)
        missing = [other for other in missing if not store.check([f"heard/{token}/{other}"])]
        if missing and time.monotonic() > deadline:
            names = ", ".join(map(str, missing))
            raise RunError(f"rank {names} did not come within {patience}", hint="See what torchrun says of it.")
        time.sleep(PAUSE if missing else 0)
    return token


def require_torchrec() -> None:
    """Raise `ConfigError` with the commands to run if TorchRec is not installed."""
    if importlib.util.find_spec("torchrec") is None or importlib.util.find_spec("fbgemm_gpu") is None:
        raise ConfigError("TorchRec, which shards the entity table, is not installed", hint=INSTALL_HINT)


def _of_the_line(error: RuntimeError) -> bool:
    """Return whether an error tells of the connection between ranks: gloo has no type of error of its own."""
    return isinstance(error, dist.DistError) or "gloo/transport" in str(error)
