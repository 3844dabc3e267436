"""How many facts per second training takes, beside what users would pick instead: the same work on the same machine.

The work: PPI5k's training facts (from the directory that UKGE_DATA names, else a random graph of the same size),
DistMult with dimension 128, batches of 1,024 facts, 20 corruptions per fact, Adam. It is done by

    fused      our engine for CPUs: squared loss on confidences, 10 corrupted heads and 10 corrupted tails per fact
    torch      our PyTorch engine, the same
    pykeen     PyKEEN from PyPI: DistMult, sLCWA with 20 negatives per fact, squared loss on 0 and 1, no regulariser
    openukge   OpenUKGE from PyPI: its UKGE model and trainer, 10 corrupted heads and 10 corrupted tails per fact

PyKEEN and OpenUKGE get a virtual environment each, in a cache directory; that takes minutes the first time. Each of the
four is a process of its own that warms up (and compiles) with one epoch that is not counted; then they take turns, so
that noise of the machine hits them all, while the others sleep. Compared are the medians of the rounds.

Exits with 1 if the fused engine does not reach 10 times PyKEEN's speed and 5 times that of our PyTorch engine.
OpenUKGE is only shown, and left out with a word where it cannot be installed or run.

    python benchmarks/train_speed.py [--rounds 5] [--epochs 1] [--skip-pykeen] [--skip-openukge] [--cache DIR]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ENTITIES, RELATIONS, FACTS = 4_999, 7, 230_929
DIM, BATCH, NEGATIVES = 128, 1024, 20
LEAST_SECONDS = 2.0
TARGETS = {"pykeen": 10.0, "torch": 5.0}
OPTIONAL = "openukge"
# torch is named exactly: a range would pull gigabytes of CUDA libraries on machines without a GPU.
PACKAGES = {"pykeen": ("torch==2.13.0", "pykeen==1.11.1"), "openukge": ("torch==2.13.0", "OpenUKGE==1.0.2")}

Epoch = Callable[[], int]
"""Runs one epoch and returns how many facts it has seen."""


def facts_file(directory: Path) -> tuple[Path, str]:
    """Write the training facts as arrays; return the file and where they are from."""
    import numpy as np

    named = os.environ.get("UKGE_DATA")
    source = Path(named, "ppi5k", "train.tsv") if named else None
    if source is not None and source.is_file():
        table = np.loadtxt(source, delimiter="\t")
        ids, confidence = table[:, :3].astype(np.int32), table[:, 3].astype(np.float32)
        words = f"PPI5k, {len(ids):,} training facts"
    else:
        rng = np.random.default_rng(0)
        ids = rng.integers((ENTITIES, RELATIONS, ENTITIES), size=(FACTS, 3)).astype(np.int32)
        confidence = rng.random(FACTS, dtype=np.float32)
        words = (
            f"a random graph of PPI5k's size ({FACTS:,} facts), because UKGE_DATA does not name a directory with ppi5k"
        )
    path = directory / "facts.npz"
    np.savez(path, ids=ids, confidence=confidence)
    return path, words


def our_engine(name: str, ids: Any, confidence: Any) -> Epoch:
    """Return an epoch of one of our engines."""
    from ukge.learning.data import TrainingData
    from ukge.learning.engines import engines
    from ukge.models.model import init
    from ukge.models.scorers import scorers
    from ukge.settings.config import Config

    head, relation, tail = (ids[:, i].copy() for i in range(3))
    data = TrainingData(head, relation, tail, confidence, ENTITIES, RELATIONS)
    config = Config().replace(dim=DIM, batch_size=BATCH, negatives=NEGATIVES // 2, optimiser="adam", engine=name)
    parameters = init(scorers.get("distmult"), ENTITIES, RELATIONS, DIM, 0.3, seed=0)
    engine = engines.get(name)(parameters, data, config)
    number = 0

    def epoch() -> int:
        nonlocal number
        engine.epoch(number)
        number += 1
        return len(data)

    return epoch


def pykeen(ids: Any, confidence: Any) -> Epoch:  # noqa: ARG001 — it has no use for confidences
    """Return an epoch of PyKEEN's DistMult; constraints and regulariser are left out, to its advantage."""
    import torch
    from pykeen.models import DistMult  # type: ignore[import-not-found, unused-ignore]
    from pykeen.training import SLCWATrainingLoop  # type: ignore[import-not-found, unused-ignore]
    from pykeen.triples import CoreTriplesFactory  # type: ignore[import-not-found, unused-ignore]

    factory = CoreTriplesFactory(torch.as_tensor(ids, dtype=torch.long), ENTITIES, RELATIONS)
    model = DistMult(
        triples_factory=factory,
        embedding_dim=DIM,
        loss="mse",
        entity_constrainer=None,
        regularizer=None,
        random_seed=0,
    )
    loop = SLCWATrainingLoop(
        model=model,
        triples_factory=factory,
        optimizer=torch.optim.Adam(model.parameters(), lr=0.001),
        negative_sampler="basic",
        negative_sampler_kwargs={"num_negs_per_pos": NEGATIVES},
    )

    losses: list[float] = []

    def epoch() -> int:
        nonlocal losses
        # It counts epochs from the beginning, and does nothing where it has run that many before.
        wanted = len(losses) + 1
        losses = loop.train(
            factory,
            num_epochs=wanted,
            continue_training=wanted > 1,
            batch_size=BATCH,
            use_tqdm=False,
            num_workers=0,
            pin_memory=False,
        )
        if len(losses) != wanted:
            raise RuntimeError("PyKEEN did not train")
        return int(factory.num_triples)

    return epoch


def openukge(ids: Any, confidence: Any) -> Epoch:
    """Return an epoch of OpenUKGE's UKGE; it leaves out the last batch, which is not full."""
    import torch
    from openukge.data.ukg_data_module import UKGDataModule  # type: ignore[import-not-found, unused-ignore]
    from openukge.data.ukg_sampler import UKGSampler  # type: ignore[import-not-found, unused-ignore]
    from openukge.loss import UKGELoss  # type: ignore[import-not-found, unused-ignore]
    from openukge.models import UKGE  # type: ignore[import-not-found, unused-ignore]
    from openukge.training import OptimBuilder, UKGETrainer  # type: ignore[import-not-found, unused-ignore]

    facts = [(*triple, value) for triple, value in zip(ids.tolist(), confidence.tolist(), strict=True)]
    few = facts[:100]
    parts: dict[str, Any] = {"train": facts, "val": few, "test": few, "test_neg": few, "all_true": set()}
    parts |= {"soft_logic": [], "hr_map": {}, "hr_map_val": {}, "ratio_psl": 0.0}
    parts |= {"num_ent": ENTITIES, "num_rel": RELATIONS}
    sampler = UKGSampler(parts, NEGATIVES // 2, high_threshold=0.8, num_partitions=5)
    module = UKGDataModule(sampler=sampler, batch_size=BATCH, num_workers=0)
    torch.manual_seed(0)
    optimiser = OptimBuilder({"optimizer": {"type": "Adam", "lr": 0.001}})
    trainer = UKGETrainer(module, UKGE(ENTITIES, RELATIONS, emb_dim=DIM), UKGELoss(), optimiser)

    def epoch() -> int:
        trainer.fit(epochs=1, eval_freq=2)
        return len(facts) // BATCH * BATCH

    return epoch


CONTENDERS: dict[str, Callable[[Any, Any], Epoch]] = {
    "fused": lambda ids, confidence: our_engine("fused", ids, confidence),
    "torch": lambda ids, confidence: our_engine("torch", ids, confidence),
    "pykeen": pykeen,
    "openukge": openukge,
}


def child(name: str, file: str, epochs: int) -> None:
    """Warm up, then answer every line of standard input with the facts/s of some epochs."""
    import numpy as np

    with np.load(file) as arrays, contextlib.redirect_stdout(sys.stderr):
        epoch = CONTENDERS[name](arrays["ids"], arrays["confidence"])
        epoch()
    print(json.dumps("ready"), flush=True)
    for _ in sys.stdin:
        seen, done = 0, 0
        began = time.perf_counter()
        with contextlib.redirect_stdout(sys.stderr):
            while done < epochs or time.perf_counter() - began < LEAST_SECONDS:
                seen += epoch()
                done += 1
        print(json.dumps(seen / (time.perf_counter() - began)), flush=True)


class Contender:
    """A process that has warmed up and waits for its turn."""

    def __init__(self, python: Path, name: str, facts: Path, epochs: int) -> None:
        self.name = name
        self.log = tempfile.TemporaryFile()  # noqa: SIM115 — closed in `end`, with the process
        command = [str(python), __file__, "--child", name, str(facts), "--epochs", str(epochs)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True
        )
        self.answer()

    def answer(self) -> Any:
        """Return its next line, or say what it died of."""
        if self.process.stdout is None:
            raise AssertionError("standard output is a pipe")
        line = self.process.stdout.readline()
        if not line:
            code = self.process.wait()
            self.log.seek(0)
            last = self.log.read().decode(errors="replace").strip().splitlines()[-1:]
            raise RuntimeError(f"{self.name} ended with code {code}: {' '.join(last) or 'no message'}")
        return json.loads(line)

    def go(self) -> float:
        """Let it run; return its facts/s."""
        if self.process.stdin is None:
            raise AssertionError("standard input is a pipe")
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        return float(self.answer())

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()
        self.log.close()


def environment(cache: Path, name: str) -> Path:
    """Return the Python of a contender's own virtual environment, made if it is not there."""
    home = cache / f"{name}-venv"
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp, wanted = home / "installed.txt", " ".join(PACKAGES[name])
    if stamp.is_file() and stamp.read_text(encoding="utf-8") == wanted:
        return python
    print(f"installing {wanted} into {home} …", flush=True)
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    install = [str(python), "-m", "pip", "install", "--quiet", *PACKAGES[name]]
    done = subprocess.run(install, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{name} could not be installed: {done.stderr.strip().splitlines()[-1]}")
    stamp.write_text(wanted, encoding="utf-8")
    return python


def start(name: str, facts: Path, cache: Path, epochs: int) -> Contender:
    """Start a contender, in its own environment if it needs one."""
    python = environment(cache, name) if name in PACKAGES else Path(sys.executable)
    return Contender(python, name, facts, epochs)


def take_turns(names: list[str], facts: Path, cache: Path, rounds: int, epochs: int) -> dict[str, list[float]]:
    """Return the facts/s of every contender in every round; OpenUKGE may fail, the others may not."""
    contenders: dict[str, Contender] = {}
    speeds: dict[str, list[float]] = {name: [] for name in names}

    def drop(name: str, error: RuntimeError) -> None:
        if name != OPTIONAL:
            raise SystemExit(str(error)) from None
        print(f"without OpenUKGE: {error}", flush=True)
        speeds.pop(name)
        if name in contenders:
            contenders.pop(name).end()

    try:
        for name in names:
            try:
                contenders[name] = start(name, facts, cache, epochs)
            except RuntimeError as error:
                drop(name, error)
        for _ in range(rounds):
            for name, contender in list(contenders.items()):
                try:
                    speeds[name].append(contender.go())
                except RuntimeError as error:
                    drop(name, error)
    finally:
        for contender in contenders.values():
            contender.end()
    return speeds


def report(speeds: dict[str, list[float]]) -> int:
    """Print the table and return the exit code."""
    fused = statistics.median(speeds["fused"])
    print(f"{'':10} {'facts/s, median':>16} {'fused is':>10}   every round")
    passed = True
    for name, found in speeds.items():
        ratio = fused / statistics.median(found)
        target = TARGETS.get(name)
        judged = "" if target is None else f"   at least {target:g}×: {'passed' if ratio >= target else 'FAILED'}"
        passed &= target is None or ratio >= target
        every = " ".join(f"{speed / 1000:.1f}k" for speed in found)
        print(f"{name:10} {statistics.median(found):16,.0f} {f'{ratio:.1f}×':>10}   {every}{judged}")
    return 0 if passed else 1


def main() -> int:
    cached = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5, help="turns of each contender")
    parser.add_argument("--epochs", type=int, default=1, help="epochs per turn; more, if they take less than 2 s")
    parser.add_argument("--skip-pykeen", action="store_true", help="do not install or run PyKEEN")
    parser.add_argument("--skip-openukge", action="store_true", help="do not install or run OpenUKGE")
    parser.add_argument("--cache", type=Path, default=cached / "ukge-bench", help="where the environments are kept")
    parser.add_argument("--child", nargs=2, metavar=("CONTENDER", "FACTS"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        name, file = given.child
        child(name, file, given.epochs)
        return 0
    skipped = {name for name in PACKAGES if vars(given)[f"skip_{name}"]}
    names = [name for name in CONTENDERS if name not in skipped]
    with tempfile.TemporaryDirectory() as directory:
        facts, words = facts_file(Path(directory))
        print(
            f"{words}; DistMult, dimension {DIM}, batches of {BATCH:,}, {NEGATIVES} corruptions per fact, Adam; "
            f"{os.cpu_count()} CPU cores",
            flush=True,
        )
        return report(take_turns(names, facts, given.cache, given.rounds, given.epochs))


if __name__ == "__main__":
    sys.exit(main())
