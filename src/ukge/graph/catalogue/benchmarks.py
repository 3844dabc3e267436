"""The benchmark graphs of the UKGE paper: what they hold, and how to tell that a copy is the real thing."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ukge.errors import DataError
from ukge.graph.dataset import Dataset
from ukge.graph.uncertain import UncertainGraph


@dataclass(frozen=True)
class Benchmark:
    """A public data set. `sums` gives, for each part, the fingerprints that its copies may have (see `fingerprint`)."""

    name: str
    title: str
    entities: int
    relations: int
    rows: Mapping[str, tuple[int, ...]]
    sums: Mapping[str, tuple[str, ...]]


def fingerprint(graph: UncertainGraph, *, confidences: bool = True) -> str:
    """Return a SHA-256 of the facts by id, whatever their order, with confidences rounded to 6 digits or left out."""
    rounded = np.rint(graph.confidence * 1e6) if confidences else np.zeros(len(graph))
    columns = [graph.head, graph.relation, graph.tail, rounded]
    order = np.lexsort((rounded, graph.tail, graph.head, graph.relation))
    hasher = hashlib.sha256()
    for column in columns:
        hasher.update(column[order].astype("<i4").tobytes())
    return hasher.hexdigest()


def verify(dataset: Dataset, expected: Benchmark, files: Mapping[str, Path]) -> None:
    """Raise `DataError`, naming the file, unless `dataset`, read from `files`, is the benchmark it says it is."""
    for kind, known, wanted in (
        ("entities", len(dataset.entities), expected.entities),
        ("relations", len(dataset.relations), expected.relations),
    ):
        if known != wanted:
            raise _mismatch(files[kind], f"holds {known:,} names where {expected.name} has {wanted:,}")
    if dataset.negatives is None:
        raise _mismatch(files["test"], f"stands without a test_with_neg file, which {expected.name} has")
    for part, graph in {**dataset.parts, "test_with_neg": dataset.negatives}.items():
        rows = expected.rows[part]
        if len(graph) not in rows:
            wanted_rows = " or ".join(f"{n:,}" for n in rows)
            what = "negative links" if part == "test_with_neg" else "rows"
            raise _mismatch(files[part], f"holds {len(graph):,} {what} where {expected.name} has {wanted_rows}")
        # The public copies of a train file differ in the digits of their confidences, so its triples alone must agree.
        if fingerprint(graph, confidences=part != "train") not in expected.sums[part]:
            raise _mismatch(files[part], f"holds other facts than {expected.name} does")


def _mismatch(file: Path, what: str) -> DataError:
    hint = "Fetch it anew, or open its directory by path to use it as a data set of your own."
    return DataError(what, source=str(file), hint=hint)


BENCHMARKS: dict[str, Benchmark] = {
    each.name: each
    for each in (
        Benchmark(
            "cn15k",
            "ConceptNet (English)",
            entities=15_000,
            relations=36,
            rows={"train": (204_984,), "val": (16_881,), "test": (19_293,), "test_with_neg": (19_293,)},
            sums={
                "train": ("7744635726cf6bf8bb3a2be6a99ad41c5ca5698cf9953e0c2cf05e6859c12750",),
                "val": ("43712cdea99c02ba54164f2dc929ef1310469a4b5dcf2a9a28be827e70e0deb1",),
                "test": ("27d20a0e0ba9b799e333a7024a2aa2f6f356ee8d97cef264e710e49a295be1ab",),
                "test_with_neg": ("0e104e58ffc4f3b8b6f47a2fcdc6eaf5345323f570c191c6e195c1489d077790",),
            },
        ),
        Benchmark(
            "nl27k",
            "NELL",
            entities=27_221,
            relations=417,
            # Public copies of its train file have 12 validation and test facts appended; the second entry is without.
            rows={"train": (149_112, 149_100), "val": (12_278,), "test": (14_034,), "test_with_neg": (14_034,)},
            sums={
                "train": (
                    "fbc8515f21d8e50307f558231352d39f368fd087e751daf1bbc61252040386d1",
                    "9e33348fee41bf05639ccfb6f0fa200cddd204c41b99ee8b4416af8aa6d8e7c9",
                ),
                "val": ("d6100458258bc6d60184eb81ade6061b42218f0211366499a98f9702592410f7",),
                "test": ("4d553f85e4ee0187b9724b2a52ab2dd1bb8616b1c3bc6507b251fc7034155215",),
                "test_with_neg": ("450215043939b75c92c893b9b3915040cac08c82142e30a7f5eee8e18751d815",),
            },
        ),
        Benchmark(
            "ppi5k",
            "STRING (protein interactions)",
            entities=4_999,
            relations=7,
            rows={"train": (230_929,), "val": (19_017,), "test": (21_720,), "test_with_neg": (21_720,)},
            sums={
                "train": ("91b9b8eef73a98943a146260c3b3330d92c80d1f8913aeb44cc2b94afbe4b2f7",),
                "val": ("4ac3d7bfefe3d0862340ceff9559ecfb3c0f58774db7ef1d24b5d0bbe0c2b5b5",),
                "test": ("4fa6579c2149cfa98b907c652855687986e0a559bd64cc035799032d1e8b6919",),
                "test_with_neg": ("7bc4f476a9121e55fed84a94f27eea98995720571c5fa2894c85bc11dbc24794",),
            },
        ),
    )
}
