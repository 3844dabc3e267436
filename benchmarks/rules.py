"""Rules: the paper's hit ratios, the authors' ground rules, and how fast mining is.

Without arguments: the paper's rules and speed on the three benchmark graphs, and synthetic worlds of up to a million
facts. `--facts 10000000` goes on to ten million.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ukge.errors import DataError
from ukge.graph.aggregate import aggregate
from ukge.graph.catalogue import open_dataset
from ukge.graph.dataset import Dataset
from ukge.graph.synthetic import generate
from ukge.graph.uncertain import UncertainGraph
from ukge.logic.engine import connect
from ukge.logic.grounding import GroundingSettings, ground
from ukge.logic.measures import measure
from ukge.logic.mining import MiningSettings, mine
from ukge.logic.syntax import parse_rule

TAU = {"cn15k": 0.85, "nl27k": 0.85, "ppi5k": 0.70}
ATHLETE = '"concept:athleteplaysforteam"(A, B) & "concept:athleteplayssport"(A, C) -> "concept:teamplayssport"(B, C)'
PAPER = (
    ("cn15k", "relatedto(A, B) & relatedto(B, C) -> relatedto(A, C)", 0.370),
    ("cn15k", "causes(A, B) & causes(B, C) -> causes(A, C)", 0.356),
    ("nl27k", ATHLETE, 0.429),
    ("ppi5k", "binding(A, B) & binding(B, C) -> binding(A, C)", 0.808),
)


@dataclass(frozen=True)
class Reproduction:
    """How the authors' softlogic.tsv of a data set comes about: rules, settings, and what they took off the bound."""

    data: str
    rules: tuple[str, ...]
    settings: GroundingSettings
    taken_off: float = 0.0


AS_THE_AUTHORS = {"unseen_only": False, "distinct": False}
SOFTLOGIC = (
    Reproduction(
        "cn15k",
        ("relatedto(A, B) & relatedto(B, C) -> relatedto(A, C)", "synonym(A, B) & synonym(B, C) -> synonym(A, C)"),
        GroundingSettings(strong=0.85, min_body=0.8, **AS_THE_AUTHORS),
        taken_off=0.5,
    ),
    Reproduction(
        "nl27k",
        ('"concept:competeswith"(A, B) & "concept:competeswith"(B, C) -> "concept:competeswith"(A, C)',),
        GroundingSettings(strong=0.9, **AS_THE_AUTHORS),
    ),
    Reproduction(
        "ppi5k",
        ("binding(A, B) & binding(B, C) -> binding(A, C)",),
        GroundingSettings(strong=0.9, **AS_THE_AUTHORS),
    ),
)


@dataclass(frozen=True)
class Agreement:
    """Our ground rules beside the authors'."""

    ours: int
    authors: int
    precision: float
    recall: float
    largest_difference: float
    off: int
    """ground rules of the authors whose bound is not ours, to three digits"""


def compare(dataset: Dataset, wanted: Reproduction) -> Agreement:
    """Compare triples, and the bounds of the triples that both have: each bound of theirs with our nearest."""
    authors = dataset.ground_rules
    assert authors is not None
    # The authors let each row of a repeated triple be a fact, so its highest confidence decides; here it is the mean.
    train = aggregate(dataset.train, "max").graph
    found = ground(train, [parse_rule(text) for text in wanted.rules], wanted.settings).heads(train)
    ours, theirs = found.keys(), authors.keys()
    both = np.intersect1d(ours, theirs)
    apart = list(_differences(found, authors, both, wanted.taken_off))
    return Agreement(
        len(found),
        len(authors),
        len(both) / len(np.unique(ours)),
        len(both) / len(np.unique(theirs)),
        max(apart, default=np.nan),
        sum(difference > 5.01e-4 for difference in apart),
    )


def _differences(
    found: UncertainGraph, authors: UncertainGraph, both: np.ndarray[tuple[int], np.dtype[np.int64]], off: float
) -> Iterator[float]:
    bounds: dict[int, list[float]] = {}
    for key, body in zip(found.keys().tolist(), found.confidence.tolist(), strict=True):
        bounds.setdefault(key, []).append(body - off)
    shared = set(both.tolist())
    for key, bound in zip(authors.keys().tolist(), authors.confidence.tolist(), strict=True):
        if key in shared:
            yield min(abs(bound - ours) for ours in bounds[key])


def paper() -> None:
    print("## Hit ratios of the paper's rules\n")
    print("| data | rule | paper | train, τ of the data | whole graph, τ 0.9 | mined (train, hit ratio ≥ 0.1) |")
    print("|---|---|---|---|---|---|")
    for data, text, published in PAPER:
        dataset, rule = open_dataset(data), parse_rule(text)
        (ours,) = measure(dataset.train, [rule], strong=TAU[data])
        (near,) = measure(dataset.whole(), [rule], strong=0.9)
        mined = mine(dataset.train, MiningSettings(strong=TAU[data], min_hit_ratio=0.1))
        place = [one.canonical() for one in mined.rules].index(rule.canonical()) + 1
        hits = " | ".join(
            f"{one.measures.hit_ratio:.1%} ({one.measures.support:,} of {one.measures.implied:,})"
            for one in (ours, near)
        )
        print(f"| {data} | `{text}` | {published:.1%} | {hits} | place {place:,} of {len(mined):,} |")
    print()


def softlogic() -> None:
    print("## The authors' softlogic.tsv, grounded again\n")
    print("| data | ground rules, ours | authors' | precision | recall | largest difference of bounds | bounds off |")
    print("|---|---|---|---|---|---|---|")
    for wanted in SOFTLOGIC:
        told = compare(open_dataset(wanted.data), wanted)
        shares = f"{told.precision:.1%} | {told.recall:.1%} | {told.largest_difference:.1e}"
        print(f"| {wanted.data} | {told.ours:,} | {told.authors:,} | {shares} | {told.off:,} |")
    print()


def speed() -> None:
    print("## Mining all rules of one and two body atoms (best of 3)\n")
    print("| data | facts | strong | neighbours looked up | rules | seconds | CPU seconds |")
    print("|---|---|---|---|---|---|---|")
    for data, strong in TAU.items():
        train = open_dataset(data).train
        runs = [_timed(train, MiningSettings(strong=strong)) for _ in range(3)]
        print(f"| {data} {min(runs)[2]}")
    print()


def scaling(most: int, memory: str) -> None:
    print(f"## Mining a synthetic world (DuckDB limited to {memory})\n")
    print("| data | facts | strong | neighbours looked up | rules | seconds | CPU seconds | peak memory, GB |")
    print("|---|---|---|---|---|---|---|---|")
    size = 100_000
    while size <= most:
        world = generate(size // 20, size, seed=0).graph
        row = _timed(world, MiningSettings(), memory)[2]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"| synthetic {row} {peak:.1f} |", flush=True)
        size *= 10
    print()


def _timed(graph: UncertainGraph, settings: MiningSettings, memory: str | None = None) -> tuple[float, float, str]:
    wall, cpu = time.perf_counter(), time.process_time()
    with connect("duckdb", memory=memory) as engine:
        mined = mine(graph, settings, engine=engine)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    report = mined.report
    left_out = f" ({report.left_out:,} left out)" if report.widest is not None else ""
    counts = f"| {report.facts:,} | {report.strong_facts:,} | {report.looked_at:,}{left_out} | {len(mined):,} "
    return wall, cpu, f"{counts}| {wall:.1f} | {cpu:.1f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--facts", type=int, default=1_000_000, help="facts of the largest synthetic world")
    parser.add_argument("--memory", default="8GB", help="what DuckDB holds before it spills")
    parser.add_argument("--only", choices=("paper", "softlogic", "speed", "scaling"), help="one of the tables")
    asked = parser.parse_args()
    try:
        for name, table in (("paper", paper), ("softlogic", softlogic), ("speed", speed)):
            if asked.only in (None, name):
                table()
    except DataError as error:
        print(f"without the benchmark graphs: {error.what}", file=sys.stderr)
    if asked.only in (None, "scaling"):
        scaling(asked.facts, asked.memory)


if __name__ == "__main__":
    main()
