"""Likely false: precision among the first 20, 100 and 1,000 facts, where it is known which are false.

False facts are mixed into a graph: negative links of some kind, with confidences of its other facts, so that a stored
confidence says nothing. In the synthetic world they are links whose true confidence is 0; in a benchmark graph, links
that no part of it holds (some of which may be true all the same). Printed beside the base rate: `likely false`, doubt
of any direction and doubt that is too high, and the lowest stored confidence; how far the chances are off (calibration
error over 15 bins of equal mass), and which share of the facts they take to be false.

    python benchmarks/likely_false.py --seeds 101 102            # worlds that nothing was chosen on
    python benchmarks/likely_false.py --data nl27k cn15k ppi5k --kinds mixture fitting --shares 0.1 0.3
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import numpy.typing as npt

from ukge.errors import DataError
from ukge.evidence.doubt import judge
from ukge.evidence.fitting import gather
from ukge.evidence.holding import judge_holding
from ukge.graph.catalogue import open_dataset
from ukge.graph.negatives import negative_links
from ukge.graph.synthetic import generate
from ukge.graph.uncertain import UncertainGraph, concat

AT = (20, 100, 1_000)
BINS = 15

Mixed = tuple[UncertainGraph, npt.NDArray[np.bool_]]
"""A graph, and which of its facts are false."""


def mixed(graph: UncertainGraph, false: UncertainGraph, share: float, seed: int) -> Mixed:
    """Return a graph of which a share is false, in random order, and which facts are."""
    rng = np.random.default_rng([seed, 7])
    count = min(round(share / (1.0 - share) * len(graph)), len(false))
    chosen = false[np.sort(rng.permutation(len(false))[:count])]
    both = concat([graph, chosen.with_confidence(rng.choice(graph.confidence, count))])
    order = rng.permutation(len(both))
    return both[order], order >= len(graph)


def world(share: float, kind: str, seed: int) -> Mixed:
    made = generate(600, 12_000, seed=seed)
    links = negative_links(made.graph, kind=kind, n=round(1.5 * len(made.graph)), seed=seed)
    absurd = made.true_confidence(links.head, links.relation, links.tail) == 0.0
    return mixed(made.graph, links[np.flatnonzero(absurd)], share, seed)


def benchmark(name: str, share: float, kind: str, seed: int) -> Mixed:
    dataset = open_dataset(name)
    links = negative_links(dataset, like=dataset.train, kind=kind, n=round(share / (1 - share) * len(dataset.train)))
    return mixed(dataset.train, links, share, seed)


def measure(graph: UncertainGraph, false: npt.NDArray[np.bool_], what: str) -> None:
    features = gather(graph)
    begin = time.perf_counter()
    holding = judge_holding(features)
    took = time.perf_counter() - begin
    judged = judge(features)
    too_high = np.where(graph.confidence > judged.expected, judged.surprise, -np.inf)
    orders = {
        "likely false": -holding.odds,
        "doubt, too high": too_high,
        "doubt": judged.surprise,
        "lowest stored confidence": -graph.confidence,
    }
    bins = np.array_split(np.argsort(holding.chance, kind="stable"), BINS)
    off = float(np.mean([abs(holding.chance[each].mean() - (~false[each]).mean()) for each in bins]))
    base = float(false.mean())
    for name, order in orders.items():
        worst = np.argsort(-order, kind="stable")
        found = " | ".join(f"{false[worst[:k]].mean():.2f}" for k in AT)
        more = f"{holding.false:.2f} | {off:.3f} | {took:.0f} s" if name == "likely false" else " |  | "
        print(f"| {what} | {base:.2f} | {name} | {found} | {more} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["synthetic"], help="benchmarks, or 'synthetic'")
    parser.add_argument("--shares", nargs="+", type=float, default=[0.1, 0.3, 0.5], help="shares of false facts")
    parser.add_argument("--kinds", nargs="+", default=["mixture", "fitting"], help="what false facts are like")
    parser.add_argument("--seeds", nargs="+", type=int, default=[101], help="seeds of worlds and of what is mixed in")
    asked = parser.parse_args()
    print("| graph, false facts | base rate | order | at 20 | at 100 | at 1,000 | taken to be false | error | time |")
    print("|---|--:|---|--:|--:|--:|--:|--:|--:|")
    for name in asked.data:
        for kind in asked.kinds:
            for share in asked.shares:
                for seed in asked.seeds:
                    try:
                        made = world(share, kind, seed) if name == "synthetic" else benchmark(name, share, kind, seed)
                    except DataError as error:
                        print(f"| {name}, {kind} | {share:.2f} | {error.what.splitlines()[0]} |", flush=True)
                        continue
                    measure(*made, f"{name} {seed}, {kind}")


if __name__ == "__main__":
    main()
