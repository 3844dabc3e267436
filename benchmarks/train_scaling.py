"""How training holds up as the graph grows: facts/s and peak memory of the fused engine on synthetic graphs.

Three graphs: 0.1, 1 and 5 million facts over 10 thousand, 100 thousand and 1 million entities, whose degrees follow
Zipf's law; dimension 128, batches of 1,024 facts, 10 corrupted heads and 10 corrupted tails per fact. Row-wise Adagrad
is judged: it is the optimiser for large tables. Lazy Adam, which moves three times the memory per row, and for the
smallest graph dense Adam are shown beside it.

Each measurement is a process of its own; sizes take turns, so that noise of the machine hits them all. Speed is that of
the median group of 32 batches after the first one. Memory is the highest resident size of the process (VmHWM), beyond
the facts and three copies of the parameters; the interpreter, its libraries and the compiled code are part of it and
are shown apart. As in `ukge train`, a copy of the best weights is kept.

Exits with 1 if facts/s fall more than 2× from the smallest graph to the largest, or if memory exceeds 500 MB.

    python benchmarks/train_scaling.py [--rounds 3] [--facts 300000] [--threads 0]
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ukge.learning.data import TrainingData

MOST_FALL = 2.0
MOST_BYTES = 500_000_000
SIZES = ((10_000, 100_000), (100_000, 1_000_000), (1_000_000, 5_000_000))
JUDGED = "rowwise-adagrad"
CASES = [(JUDGED, size) for size in SIZES] + [("lazy-adam", size) for size in SIZES] + [("adam", SIZES[0])]
RELATIONS = 200
DIM = 128
BATCH = 1024
PIECE = 1 << 18


class Enough(Exception):  # noqa: N818 — not an error: it ends an epoch that has been measured for long enough
    """Raised between two groups of batches."""


def peak_bytes() -> int:
    """Return the most memory that this process has had."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text(encoding="ascii").splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def synthetic(n_entities: int, n_facts: int, seed: int = 0) -> TrainingData:
    """Return random facts; made piece by piece, so that making them needs no memory to speak of."""
    import numpy as np

    from ukge.learning.data import TrainingData

    rng = np.random.default_rng(seed)
    by_rank = rng.permutation(n_entities).astype(np.int32)
    head, relation, tail = (np.empty(n_facts, dtype=np.int32) for _ in range(3))
    confidence = np.empty(n_facts, dtype=np.float32)
    for first in range(0, n_facts, PIECE):
        piece = slice(first, min(first + PIECE, n_facts))
        size = piece.stop - piece.start
        for ends in (head, tail):
            # The logarithm of the rank is uniform, so the degree of rank k is proportional to 1/k.
            rank = (n_entities ** rng.random(size)).astype(np.int64)
            ends[piece] = by_rank[rank - 1]
        relation[piece] = rng.integers(RELATIONS, size=size)
        confidence[piece] = rng.random(size)
    return TrainingData(head, relation, tail, confidence, n_entities, RELATIONS)


def measure(optimiser: str, n_entities: int, n_facts: int, most_facts: int, threads: int) -> dict[str, Any]:
    """Return the seconds of every group of batches after the first, and the memory, of this process."""
    from ukge.learning.engines.fused import FusedEngine
    from ukge.models.model import init
    from ukge.models.scorers import scorers
    from ukge.settings.config import Config

    scorer = scorers.get("distmult")
    config = Config().replace(dim=DIM, batch_size=BATCH, optimiser=optimiser, rule_weight=0.0, threads=threads)
    small = synthetic(100, 2 * BATCH)
    FusedEngine(init(scorer, 100, RELATIONS, DIM, 0.3, seed=0), small, config).epoch(0)
    baseline = peak_bytes()

    data = synthetic(n_entities, n_facts)
    parameters = init(scorer, n_entities, RELATIONS, DIM, 0.3, seed=0)
    best = parameters.copy()
    engine = FusedEngine(parameters, data, config)
    groups: list[tuple[int, float]] = []
    began = time.perf_counter()

    def tell(facts: int) -> None:
        nonlocal began
        groups.append((facts, time.perf_counter() - began))
        if sum(done for done, _ in groups) >= most_facts:
            raise Enough
        began = time.perf_counter()

    epoch = 0
    try:
        while True:
            engine.epoch(epoch, tell)
            epoch += 1
            began = time.perf_counter()
    except Enough:
        pass
    whole = max(facts for facts, _ in groups)
    facts = sum(column.nbytes for column in (data.head, data.relation, data.tail, data.confidence))
    return {
        "group": whole,
        "seconds": [took for done, took in groups[1:] if done == whole],
        "peak": peak_bytes(),
        "baseline": baseline,
        "data": facts,
        "parameters": best.nbytes,
    }


def in_fresh_process(optimiser: str, size: tuple[int, int], most_facts: int, threads: int) -> dict[str, Any]:
    """Measure one case in a process of its own."""
    arguments = ["--child", optimiser, str(size[0]), str(size[1])]
    command = [sys.executable, __file__, "--facts", str(most_facts), "--threads", str(threads), *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{optimiser}, {size[0]:,} entities: {done.stderr.strip()}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def compare(rounds: int, most_facts: int, threads: int) -> int:
    """Print the table and return the exit code."""
    in_fresh_process(JUDGED, SIZES[0], BATCH, threads)  # compiles, if nothing has yet
    found: dict[tuple[str, tuple[int, int]], list[dict[str, Any]]] = {case: [] for case in CASES}
    for _ in range(rounds):
        for case in CASES:
            found[case].append(in_fresh_process(*case, most_facts, threads))
    print(
        f"{'optimiser':16} {'entities':>9} {'facts':>9} {'facts/s':>8} {'of the smallest':>15} "
        f"{'peak':>8} {'facts':>7} {'3 × weights':>11} {'beyond':>7} {'of it libraries':>15}"
    )
    fall, most = 0.0, 0
    for (optimiser, size), results in found.items():
        speed = speed_of(results)
        slower = speed_of(found[optimiser, SIZES[0]]) / speed
        peak = max(result["peak"] for result in results)
        data, weights, baseline = results[0]["data"], 3 * results[0]["parameters"], results[0]["baseline"]
        beyond = peak - data - weights
        if optimiser == JUDGED:
            fall, most = max(fall, slower), max(most, beyond)
        print(
            f"{optimiser:16} {size[0]:9,} {size[1]:9,} {speed:8,.0f} {f'1/{slower:.2f}':>15} "
            f"{peak / 1e6:5,.0f} MB {data / 1e6:4,.0f} MB {weights / 1e6:8,.0f} MB {beyond / 1e6:4,.0f} MB "
            f"{baseline / 1e6:12,.0f} MB"
        )
    passed = fall <= MOST_FALL and most <= MOST_BYTES
    print(
        f"{JUDGED}: facts/s fall {fall:.2f}× (at most {MOST_FALL:g}×), memory beyond facts and three copies of the "
        f"weights {most / 1e6:,.0f} MB (at most {MOST_BYTES / 1e6:,.0f}): {'passed' if passed else 'FAILED'}"
    )
    return 0 if passed else 1


def speed_of(results: list[dict[str, Any]]) -> float:
    """Return facts/s in the median group of all rounds."""
    seconds = statistics.median(took for result in results for took in result["seconds"])
    return float(results[0]["group"] / seconds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each size")
    parser.add_argument("--facts", type=int, default=300_000, help="facts per measurement at least")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0 takes all cores")
    parser.add_argument("--child", nargs=3, metavar=("OPTIMISER", "ENTITIES", "FACTS"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        optimiser, n_entities, n_facts = given.child
        print(json.dumps(measure(optimiser, int(n_entities), int(n_facts), given.facts, given.threads)))
        return 0
    return compare(given.rounds, given.facts, given.threads)


if __name__ == "__main__":
    sys.exit(main())
