"""Two ranks against one process: the same model, objective, optimiser and settings on PPI5k and NL27k.

One process trains with the PyTorch engine, two ranks (gloo, one thread each) under torchrun with `--distributed`;
both with shared negatives and row-wise Adagrad. Both runs are judged by the paper's protocol. Printed are also the time
and the highest memory of all processes of a training together.

Exits with 1 if the two ranks' MSE is more than 3 % or their nDCG more than 0.01 worse than the single process's.

    python benchmarks/distributed.py [--graphs ppi5k nl27k] [--epochs 60] [--batch-size 1024] [--ranks 2] [--keep DIR]

Needs the graphs in the directory that UKGE_DATA names, and TorchRec (docs/distributed.md).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import psutil

MOST_MSE = 1.03
MOST_NDCG = 0.01
L2 = {"ppi5k": 0.0005, "nl27k": 0.005}
UKGE = [sys.executable, "-c", "from ukge.cli import main; main()"]


class Cost(NamedTuple):
    seconds: float
    memory: int


class Judged(NamedTuple):
    mse: float
    mae: float
    ndcg: float
    epoch_seconds: float
    seconds: float
    memory: int


def train(graph: str, ranks: int, epochs: int, batch_size: int, out: Path) -> Cost:
    settings = ["--optimiser", "rowwise-adagrad", "--sampler", "shared", "--negatives", "128", "--lr", "0.1"]
    settings += [
        "--l2",
        str(L2.get(graph, 0.005)),
        "--batch-size",
        str(batch_size),
        "--epochs",
        str(epochs),
        "--every",
        "10",
    ]
    settings += ["--patience", "100", "--threads", "1", "--checkpoint-seconds", "60", "--quiet", "--out", str(out)]
    command = [*UKGE, "train", graph, *settings, "--engine", "torch"]
    if ranks > 1:
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
        command = [*launcher, "--no-python", *command, "--distributed"]
    started = time.monotonic()
    most = 0
    with tempfile.TemporaryFile("w+") as told:
        process = psutil.Popen(command, stdout=told, stderr=told, env={**os.environ, "OMP_NUM_THREADS": "1"})
        while process.poll() is None:
            most = max(most, resident(process))
            time.sleep(0.2)
        if process.returncode:
            told.seek(0)
            sys.exit(told.read())
    return Cost(time.monotonic() - started, most)


def resident(process: psutil.Popen) -> int:
    """Return the bytes in memory of a process and all it started; pages that they share count each time."""
    total = 0
    try:
        for each in (process, *process.children(recursive=True)):
            total += each.memory_info().rss
    except psutil.NoSuchProcess:
        return 0
    return total


def judge(run: Path, cost: Cost) -> Judged:
    from ukge.evaluation.evaluate import measure, prepare
    from ukge.evaluation.metric import Bootstrap
    from ukge.evaluation.protocols import Settings
    from ukge.runs.learnt import open_run

    opened = open_run(run)
    plan = prepare(opened.dataset, "paper", Settings(tau=opened.tau))
    (row,) = measure(plan, {"run": opened.model}, Bootstrap(0))
    found = {figure.metric.name: figure.value for figures in row.figures.values() for figure in figures}
    epochs = [line["seconds"] for line in opened.run.trace()]
    return Judged(found["mse"], found["mae"], found["linear"], sorted(epochs)[len(epochs) // 2], *cost)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graphs", nargs="+", default=["ppi5k", "nl27k"])
    parser.add_argument("--epochs", type=int, default=60)
    parser.add_argument("--batch-size", type=int, default=1024)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--keep", type=Path, help="where the runs stay; else they are removed")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if importlib.util.find_spec("torchrec") is None:
        print("TorchRec is not installed (docs/distributed.md): nothing to compare")
        return
    if "UKGE_DATA" not in os.environ:
        print("UKGE_DATA does not name a directory with the benchmark graphs: nothing to compare")
        return
    missed = False
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.keep or Path(temporary)
        for graph in arguments.graphs:
            results = {}
            for ranks in (1, arguments.ranks):
                run = folder / f"{graph}-{ranks}"
                results[ranks] = judge(run, train(graph, ranks, arguments.epochs, arguments.batch_size, run))
                one = results[ranks]
                print(
                    f"{graph}  {ranks} rank{'s' if ranks > 1 else ' '}  MSE {one.mse:.5f}  MAE {one.mae:.5f}  "
                    f"nDCG {one.ndcg:.4f}  {one.epoch_seconds:.2f} s/epoch  "
                    f"{one.seconds:.0f} s and {one.memory / 2**30:.2f} GiB in all",
                    flush=True,
                )
            alone, together = results[1], results[arguments.ranks]
            ratio, fall = together.mse / alone.mse, alone.ndcg - together.ndcg
            fits = ratio <= MOST_MSE and fall <= MOST_NDCG
            missed |= not fits
            print(f"{graph}  MSE × {ratio:.3f} (at most {MOST_MSE}), nDCG {-fall:+.4f} (at least −{MOST_NDCG})")
            if arguments.json:
                print(json.dumps({graph: {str(ranks): one._asdict() for ranks, one in results.items()}}))
    sys.exit(missed)


if __name__ == "__main__":
    main()
