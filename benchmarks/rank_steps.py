"""What a step of sharded training costs: the constants of docs/distributed.md.

Ranks (gloo, one thread each) take steps on random facts over a million entities, with batches of several sizes. The
quickest of the steps counts, by the clock and by the processor's time of the first rank: others on the machine can only
slow a step down, and hardly touch the latter. A line through the sizes, each weighed by its relative error, gives a
fixed cost per step and a cost per fact, in processor time. Also measured: the memory that a rank takes for its shard,
what a process and the reading of facts take, and how fast weights are drawn at the start and hashed at the end.

    python benchmarks/rank_steps.py [--entities 1000000] [--dims 64 128 256] [--ranks 2]
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ukge.distributed.engine import DistributedEngine
    from ukge.distributed.world import World

NEGATIVES = 128
BATCHES = (1024, 4096, 16384)
STEPS = 30
RELATIONS = 100
READ = 20_000_000
"""Facts that all ranks together read from Parquet."""


def quickest(work: Callable[[], object], times: int) -> tuple[float, float]:
    """Return the seconds of the quickest of several calls, by the clock and of processor time."""
    clock, processor = [], []
    for _ in range(times):
        started, used = time.perf_counter(), time.process_time()
        work()
        clock.append(time.perf_counter() - started)
        processor.append(time.process_time() - used)
    return min(clock), min(processor)


def measure(n_entities: int, dims: list[int]) -> None:
    """Take steps as one of the ranks; the first one prints."""
    import torch

    from ukge.distributed.world import joined

    torch.set_num_threads(1)
    with joined("cpu") as world:
        reading(world)
        # All tables stay: else one would take the memory that another has left, and its own would not be seen.
        kept = [steps_of(world, n_entities, dim) for dim in dims]
        if world.first:
            rates()
        del kept


def steps_of(world: World, n_entities: int, dim: int) -> DistributedEngine:
    import numpy as np
    import psutil
    import torch

    from ukge.distributed.engine import DistributedEngine
    from ukge.learning.data import TrainingData
    from ukge.settings.config import Config

    rng = np.random.default_rng(world.rank)
    n_facts = max(BATCHES)
    head, tail = rng.integers(n_entities, size=(2, n_facts), dtype=np.int32)
    relation = rng.integers(RELATIONS, size=n_facts, dtype=np.int32)
    confidence = rng.random(n_facts, dtype=np.float32)
    data = TrainingData(head, relation, tail, confidence, n_entities, RELATIONS)
    settings = {"dim": dim, "sampler": "shared", "negatives": NEGATIVES, "optimiser": "rowwise-adagrad"}
    before, started = psutil.Process().memory_info().rss, time.perf_counter()
    engine = DistributedEngine(data, Config().replace(**settings), world)
    taken = psutil.Process().memory_info().rss - before
    width = engine.table.shape[1]
    if world.first:
        expected = (4 * width + 4) * engine.table.block
        print(
            f"{world.size} ranks, {n_entities:,} entities × {dim}: start {time.perf_counter() - started:.1f} s, "
            f"{taken / 2**20:.0f} MiB taken by a rank, {expected / 2**20:.0f} computed"
        )
    points = []
    for batch in BATCHES:
        drawn = engine.draw(torch.arange(batch // world.size), torch.Generator().manual_seed(0))
        rows = len(torch.unique(torch.cat(drawn.entity_ids())))
        seconds, processor = quickest(partial(engine.step, drawn), STEPS)
        points.append((batch, processor))
        if world.first:
            sent = rows * (world.size - 1) / world.size * (2 * 4 * width + 8)
            print(
                f"batch {batch:>6,}: {1e3 * seconds:7.2f} ms a step ({1e3 * processor:.2f} of the processor), "
                f"{batch / seconds:,.0f} facts/s, "
                f"{rows:,} rows looked up and {sent / 2**20:.2f} MiB sent per rank"
            )
    if world.first:
        batches, used = np.array(points).T
        slope, fixed = np.polyfit(batches, used, 1, w=1 / used)
        print(f"fixed {1e3 * fixed:.2f} ms a step, {1e6 * slope * world.size:.2f} µs per fact of a rank", flush=True)
    return engine


def reading(world: World) -> None:
    """Print what a process takes before it holds anything, and what each fact of its share takes at most while read."""
    import resource

    import numpy as np
    import psutil
    import pyarrow as pa
    import pyarrow.parquet as pq

    from ukge.graph.partitioned import COLUMNS, FACTS, Prepared

    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder)
        (path / "train").mkdir()
        with pq.ParquetWriter(path / "train" / "part-0.parquet", FACTS) as writer:
            for _ in range(READ // (1 << 18)):
                ids = rng.integers(1000, size=(3, 1 << 18), dtype=np.int32)
                columns = [*(pa.array(each) for each in ids), pa.array(rng.random(1 << 18))]
                writer.write_table(pa.table(dict(zip(COLUMNS, columns, strict=True)), schema=FACTS))
        facts = READ // (1 << 18) * (1 << 18)
        before = psutil.Process().memory_info().rss
        share = Prepared(path, 1000, 1000, {"train": facts}).share("train", world.rank, world.size)
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    if world.first:
        print(
            f"a process {before / 1e9:.2f} GB; {(most - before) / len(share.head):.0f} bytes per fact of a rank "
            "while they are read",
            flush=True,
        )


def rates() -> None:
    import numpy as np

    from ukge.models.model import normal_rows

    block = next(normal_rows(np.random.default_rng(0), 8192, 128, 0.3))[1]
    _, drawing = quickest(lambda: next(normal_rows(np.random.default_rng(0), 8192, 128, 0.3)), 5)
    _, hashing = quickest(lambda: hashlib.sha256(block.tobytes()).digest(), 5)
    print(f"draws {block.size / drawing / 1e6:.0f} million weights/s, hashes {block.nbytes / hashing / 1e6:.0f} MB/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entities", type=int, default=1_000_000)
    parser.add_argument("--dims", type=int, nargs="+", default=[64, 128, 256])
    parser.add_argument("--ranks", type=int, default=2)
    arguments = parser.parse_args()
    if "RANK" in os.environ:
        measure(arguments.entities, arguments.dims)
        return
    if importlib.util.find_spec("torchrec") is None:
        print("TorchRec is not installed (docs/distributed.md): nothing to measure")
        return
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={arguments.ranks}"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    sys.exit(subprocess.run([*launcher, *sys.argv], check=False, env=environment).returncode)


if __name__ == "__main__":
    main()
