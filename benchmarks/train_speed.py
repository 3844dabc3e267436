"""Facts per second in training: our fused engine, our PyTorch engine and PyKEEN, in turn on the same work.

The work: PPI5k's training facts, DistMult, k 128, batches of 1,024 facts, 20 negatives per fact, Adam. Without the data
(UKGE_DATA) a random graph of the same size stands in, and the output says so. Each measurement is a process of its own;
the contestants take turns, so that noise of the machine hits all of them; one epoch warms up (and compiles), the next
ones count. PyKEEN comes from the registry into an environment of its own, see `peers.py`.

OpenUKGE is not among them: its published trainer cannot be given this batch size and sampler without changing its code.

Exits with 1 if the fused engine is less than 10× PyKEEN or less than 5× our PyTorch engine.

    python benchmarks/train_speed.py [--rounds 3] [--epochs 2] [--skip-pykeen]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

TARGETS = {"pykeen": 10.0, "torch": 5.0}
N_ENTITIES, N_RELATIONS, N_FACTS = 4_999, 7, 230_929

OURS = """
import sys, time
import numpy as np
from ukge.config import Config
from ukge.engines import engines
from ukge.engines.base import TrainingData
from ukge.model import init
from ukge.scoring import scorers

engine_name, file, epochs = sys.argv[1], sys.argv[2], int(sys.argv[3])
facts = np.load(file)
n, r = (int(x) for x in facts["sizes"])
data = TrainingData(facts["head"], facts["relation"], facts["tail"], facts["confidence"], n, r)
config = Config().replace(engine=engine_name, dim=128, batch_size=1024, negatives=10, optimiser="adam")
engine = engines.get(engine_name)(init(scorers.get("distmult"), n, r, 128, 0.3, 0), data, config)
engine.epoch(0)
started = time.perf_counter()
for number in range(1, epochs + 1):
    engine.epoch(number)
print(epochs * len(data) / (time.perf_counter() - started))
"""

PYKEEN = """
import sys, time
import numpy as np, torch
from pykeen.models import DistMult
from pykeen.training import SLCWATrainingLoop
from pykeen.triples import CoreTriplesFactory

file, epochs = sys.argv[2], int(sys.argv[3])
facts = np.load(file)
n, r = (int(x) for x in facts["sizes"])
triples = torch.from_numpy(np.stack([facts["head"], facts["relation"], facts["tail"]], axis=1).astype(np.int64))
factory = CoreTriplesFactory(triples, num_entities=n, num_relations=r)
model = DistMult(triples_factory=factory, embedding_dim=128, random_seed=0)
loop = SLCWATrainingLoop(
    model=model,
    triples_factory=factory,
    optimizer=torch.optim.Adam(model.parameters(), lr=0.001),
    negative_sampler_kwargs={"num_negs_per_pos": 20},
)
quiet = {"batch_size": 1024, "use_tqdm": False, "use_tqdm_batch": False}
loop.train(factory, num_epochs=1, **quiet)
started = time.perf_counter()
loop.train(factory, num_epochs=1 + epochs, continue_training=True, **quiet)
print(epochs * len(triples) / (time.perf_counter() - started))
"""


def facts_file(directory: Path) -> Path:
    """Write PPI5k's training facts, or a random graph of its size, for every contestant to read."""
    root = Path(os.environ.get("UKGE_DATA", ""))
    source = root / "ppi5k" / "train.tsv"
    if source.is_file():
        columns = np.loadtxt(source, delimiter="\t", dtype=np.float64)
        head, relation, tail, confidence = columns.T
    else:
        print("UKGE_DATA does not name the benchmarks: a random graph of PPI5k's size stands in", file=sys.stderr)
        rng = np.random.default_rng(0)
        head, tail = rng.integers(N_ENTITIES, size=(2, N_FACTS))
        relation, confidence = rng.integers(N_RELATIONS, size=N_FACTS), rng.random(N_FACTS)
    file = directory / "facts.npz"
    np.savez(
        file,
        head=head.astype(np.int32),
        relation=relation.astype(np.int32),
        tail=tail.astype(np.int32),
        confidence=confidence.astype(np.float32),
        sizes=np.array([N_ENTITIES, N_RELATIONS]),
    )
    return file


def facts_per_second(python: str, program: str, name: str, file: Path, epochs: int) -> float:
    """Run one contestant in a process of its own."""
    done = subprocess.run(
        [python, "-c", program, name, str(file), str(epochs)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{name} failed:\n{done.stderr[-2000:]}")
    return float(done.stdout.split()[-1])


def main() -> int:
    """Measure, print and judge."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--skip-pykeen", action="store_true")
    options = parser.parse_args()
    contestants = {"fused": (sys.executable, OURS), "torch": (sys.executable, OURS)}
    if not options.skip_pykeen:
        sys.path.insert(0, str(Path(__file__).parent.parent))
        from benchmarks.peers import peer_python

        contestants["pykeen"] = (str(peer_python("pykeen")), PYKEEN)
    found: dict[str, list[float]] = {name: [] for name in contestants}
    with tempfile.TemporaryDirectory() as directory:
        file = facts_file(Path(directory))
        for number in range(options.rounds):
            for name, (python, program) in contestants.items():
                found[name].append(facts_per_second(python, program, name, file, options.epochs))
                print(f"round {number + 1}  {name:7} {found[name][-1]:>10,.0f} facts/s", flush=True)
    median = {name: statistics.median(speeds) for name, speeds in found.items()}
    missed = 0
    print(f"\n{'':7} {'facts/s':>10}  fused is")
    for name, speed in median.items():
        ratio = median["fused"] / speed
        target = TARGETS.get(name)
        verdict = "" if target is None else f" (asked: ≥ {target:g}×)"
        missed += target is not None and ratio < target
        print(f"{name:7} {speed:>10,.0f}  {ratio:.1f}×{verdict}")
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
