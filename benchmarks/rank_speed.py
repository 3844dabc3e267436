"""Filtered ranking of a benchmark's test facts on both sides: ours beside PyKEEN's evaluator.

Both rank with the same DistMult weights (dimension 128, drawn at random: speed does not depend on what was learnt) and
must find the same metrics. Each measurement is a process of its own, timed without its imports and without reading the
data; ours includes finding the known answers of every query. Both take turns. PyKEEN gets the batch size that ranks the
first 2,048 facts fastest; its environment is the one of benchmarks/train_speed.py. The first run of ours compiles its
kernel, or loads it from the cache; it is not counted.

Exits with 1 if ours is less than 20 times faster on ppi5k, takes more than 15 s on nl27k or more than 1 GB anywhere, or
if the metrics differ.

    UKGE_DATA=… python benchmarks/rank_speed.py [--rounds 3] [--no-pykeen] [--cache DIR]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

LEAST_RATIO = 20.0
MOST_SECONDS = 15.0
MOST_BYTES = 1_000_000_000
DIM = 128
BATCH_SIZES = (64, 256, 1024)
TRIED = 2048
METRICS = ("mr", "mrr", "hits_1", "hits_3", "hits_10")


def rank_with_ukge(data: str, weights: str, _batch: int, _facts: int) -> dict[str, Any]:
    """Return the seconds and the metrics of ours."""
    import numpy as np

    from ukge.evaluation.ranking import RankedFacts, link_metrics
    from ukge.graph.catalogue import open_dataset
    from ukge.graph.index import FactIndex
    from ukge.graph.queries import SIDES
    from ukge.models.links import links
    from ukge.models.model import Model
    from ukge.models.scorers import scorers
    from ukge.models.tables import Parameters

    dataset = open_dataset(data)
    arrays = np.load(weights)
    parameters = Parameters(arrays["entity"], arrays["relation"])
    model = Model(parameters, scorers.get("distmult"), links.get("logistic"))
    test, whole = dataset.test, dataset.whole()
    started = time.perf_counter()
    known, ranks = FactIndex(whole), []
    for side in SIDES:
        facts = RankedFacts.of(test, side)
        ranks.append(facts.ranks(model, known.answers(facts.queries)).filtered)
    seconds = time.perf_counter() - started
    found = link_metrics(*ranks, confidence=test.confidence)
    return {"seconds": seconds, "metrics": {name: getattr(found, name) for name in METRICS}}


def rank_with_pykeen(_data: str, weights: str, batch_size: int, facts: int) -> dict[str, Any]:
    """Return the seconds and the metrics of PyKEEN's evaluator on the first `facts` test facts (0 for all)."""
    import numpy as np
    import torch
    from pykeen.evaluation import RankBasedEvaluator  # type: ignore[import-not-found, unused-ignore]
    from pykeen.models import DistMult  # type: ignore[import-not-found, unused-ignore]
    from pykeen.triples import CoreTriplesFactory  # type: ignore[import-not-found, unused-ignore]

    arrays = np.load(weights)
    parts = {name: torch.from_numpy(arrays[name]) for name in ("train", "val", "test")}
    entity, relation = (torch.from_numpy(arrays[name]) for name in ("entity", "relation"))
    factory = CoreTriplesFactory(parts["train"], num_entities=len(entity), num_relations=len(relation))
    model = DistMult(triples_factory=factory, embedding_dim=DIM)
    model.entity_representations[0]._embeddings.weight.data = entity
    model.relation_representations[0]._embeddings.weight.data = relation
    evaluator = RankBasedEvaluator(filtered=True)
    model.eval()
    started = time.perf_counter()
    results = evaluator.evaluate(
        model,
        parts["test"][: facts or None],
        batch_size=batch_size,
        additional_filter_triples=list(parts.values()),
        use_tqdm=False,
    )
    seconds = time.perf_counter() - started
    names = {"mr": "mr", "mrr": "mrr", "hits_1": "hits@1", "hits_3": "hits@3", "hits_10": "hits@10"}
    found = {ours: results.get_metric(f"both.realistic.{theirs}") for ours, theirs in names.items()}
    return {"seconds": seconds, "metrics": found}


RANKERS = {"ukge": rank_with_ukge, "pykeen": rank_with_pykeen}


def write_weights(data: str, path: Path) -> None:
    """Write random weights and the triples of a benchmark, for both to read."""
    import numpy as np

    from ukge.graph.catalogue import open_dataset
    from ukge.models.model import init
    from ukge.models.scorers import scorers

    dataset = open_dataset(data)
    weights = init(scorers.get("distmult"), len(dataset.entities), len(dataset.relations), DIM, 0.3, 0)
    train, val, test = (
        np.stack([part.head, part.relation, part.tail], axis=1).astype(np.int64) for part in dataset.parts.values()
    )
    np.savez(path, entity=weights.entity, relation=weights.relation, train=train, val=val, test=test)


def peak_bytes() -> int:
    """Return the most memory that this process has had (VmHWM)."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def in_fresh_process(
    python: str, ranker: str, data: str, weights: Path, batch_size: int = 0, facts: int = 0
) -> dict[str, Any]:
    """Return what one ranking found, in a process of its own."""
    command = [python, __file__, "--child", ranker, data, str(weights), str(batch_size), str(facts)]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{ranker} failed on {data}:\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def show(what: str, results: list[dict[str, Any]]) -> float:
    """Print one line and return the median of the seconds."""
    seconds = [float(each["seconds"]) for each in results]
    peak = max(each["peak"] for each in results) / 1e9
    times = " ".join(f"{second:.2f}" for second in seconds)
    metrics = "  ".join(f"{name} {value:.4f}" for name, value in results[0]["metrics"].items())
    print(
        f"{what:22} {times:24} median {statistics.median(seconds):7.2f} s   peak {peak:.2f} GB   {metrics}", flush=True
    )
    return statistics.median(seconds)


def same(left: dict[str, float], right: dict[str, float]) -> bool:
    """Return whether metrics agree up to the rounding of scores, which may turn neighbours around."""
    return all(abs(left[name] - right[name]) <= 1e-4 * max(1.0, abs(left[name])) for name in METRICS)


def against_pykeen(weights: Path, rounds: int, cache: Path) -> bool:
    """Compare on ppi5k and return whether the aims are met; `cache` holds PyKEEN's environment."""
    from benchmarks.train_speed import environment

    python = str(environment(cache, "pykeen"))
    tried = {size: in_fresh_process(python, "pykeen", "ppi5k", weights, size, TRIED) for size in BATCH_SIZES}
    for size, result in tried.items():
        print(f"pykeen, batch {size}: {result['seconds']:.1f} s for {TRIED:,} facts", flush=True)
    best = min(tried, key=lambda size: float(tried[size]["seconds"]))
    theirs, ours = [], []
    for _ in range(rounds):
        ours.append(in_fresh_process(sys.executable, "ukge", "ppi5k", weights))
        theirs.append(in_fresh_process(python, "pykeen", "ppi5k", weights, best))
    ratio = show(f"pykeen, batch {best}", theirs) / show("ukge", ours)
    agree = same(ours[0]["metrics"], theirs[0]["metrics"])
    small = max(each["peak"] for each in ours) <= MOST_BYTES
    print(f"ppi5k: {ratio:.0f} times faster (at least {LEAST_RATIO:g}), metrics {'agree' if agree else 'DIFFER'}")
    return ratio >= LEAST_RATIO and agree and small


def alone(data: str, weights: Path, rounds: int) -> bool:
    """Measure ours on one benchmark and return whether the aims are met."""
    results = [in_fresh_process(sys.executable, "ukge", data, weights) for _ in range(rounds)]
    seconds = show(f"ukge on {data}", results)
    peak = max(each["peak"] for each in results)
    print(f"{data}: {seconds:.2f} s (at most {MOST_SECONDS:g}), {peak / 1e9:.2f} GB (at most 1)")
    return seconds <= MOST_SECONDS and peak <= MOST_BYTES


def main() -> int:
    cached = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="measurements of each")
    parser.add_argument("--no-pykeen", action="store_true", help="measure ours alone")
    parser.add_argument("--cache", type=Path, default=cached / "ukge-bench", help="where PyKEEN's environment is kept")
    parser.add_argument("--child", nargs=5, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        ranker, data, weights, batch_size, facts = arguments.child
        result = RANKERS[ranker](data, weights, int(batch_size), int(facts))
        print(json.dumps({**result, "peak": peak_bytes()}))
        return 0
    with tempfile.TemporaryDirectory() as directory:
        files = {data: Path(directory) / f"{data}.npz" for data in ("ppi5k", "nl27k", "cn15k")}
        for data, path in files.items():
            write_weights(data, path)
        first = in_fresh_process(sys.executable, "ukge", "ppi5k", files["ppi5k"])
        print(f"first run of ours, not counted: {first['seconds']:.2f} s")
        passed = [alone(data, path, arguments.rounds) for data, path in files.items()]
        if not arguments.no_pykeen:
            passed.append(against_pykeen(files["ppi5k"], arguments.rounds, arguments.cache))
    print("passed" if all(passed) else "FAILED")
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
