"""The benchmark graphs of the UKGE paper: what they hold, how to tell a copy from the real thing, where to get one."""

from __future__ import annotations

import hashlib
import http.client
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn

from ukge.errors import DataError
from ukge.graph.dataset import Dataset
from ukge.graph.uncertain import UncertainGraph
from ukge.progress.safe_console import SafeConsole
from ukge.storage.files import replacing

BASE_URLS = (
    "https://raw.githubusercontent.com/stasl0217/UKGE/master/data",
    "https://raw.githubusercontent.com/stasl0217/beurre/HEAD/data",  # the same authors' later copy, with names
)
NEEDED = ("train.tsv", "val.tsv", "test.tsv", "test_with_neg.tsv")
OPTIONAL = (
    ("softlogic.tsv",),
    ("ndcg_queries.tsv",),
    ("entities.tsv", "entity_id.csv", "concept_id.csv"),
    ("relations.tsv", "relation_id.csv"),
)
TIMEOUT = 30.0
CHUNK = 1 << 16

Advance = Callable[[str, int, int | None], None]


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


class NotFoundError(Exception):
    """The server answers, and does not have the file."""


def fetch(name: str, into: Path, *, base_urls: Sequence[str] = BASE_URLS, advance: Advance | None = None) -> None:
    """Fetch the files of benchmark `name` into the directory `into`.

    Every file arrives under another name and takes its own when it is complete, so a second attempt continues with the
    files that are still missing. `advance` is called with a file name, the bytes so far and the bytes in all, if known.
    """
    into.mkdir(parents=True, exist_ok=True)
    tell = advance or _silent
    for file in NEEDED:
        if not (into / file).is_file() and not _first(name, (file,), into, base_urls[:1], tell):
            raise DataError(
                f"{base_urls[0]}/{name}/{file} does not exist",
                source=name,
                hint=f"Put the file into {into} by hand, or name a directory that has it in UKGE_DATA.",
            )
    for alternatives in OPTIONAL:
        if not any((into / file).is_file() for file in alternatives):
            _first(name, alternatives, into, base_urls, tell)


def _first(name: str, alternatives: Sequence[str], into: Path, base_urls: Sequence[str], tell: Advance) -> bool:
    for base in base_urls:
        for file in alternatives:
            try:
                _download(f"{base}/{name}/{file}", into / file, tell)
            except NotFoundError:
                continue
            return True
    return False


def _download(url: str, target: Path, tell: Advance) -> None:
    request = urllib.request.Request(url, headers={"User-Agent": "ukge"})
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as answer, replacing(target) as file:
            length = answer.headers.get("Content-Length")
            total = int(length) if length else None
            done = 0
            while chunk := answer.read(CHUNK):
                file.write(chunk)
                done += len(chunk)
                tell(target.name, done, total)
            if total is not None and done != total:
                raise DataError(
                    f"only {done:,} of {total:,} bytes arrived", source=url, hint="Try again; what is complete is kept."
                )
    except urllib.error.HTTPError as error:
        if error.code == http.client.NOT_FOUND:
            raise NotFoundError from None
        raise DataError(
            f"the server answered {error.code} {error.reason}", source=url, hint="Try again later."
        ) from None
    except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
        reason = getattr(error, "reason", None) or error
        raise DataError(
            f"could not be fetched: {reason}", source=url, hint="Is this machine online? Try again."
        ) from None


def _silent(file: str, done: int, total: int | None) -> None:
    """Say nothing."""


@contextmanager
def download_progress(title: str) -> Iterator[Advance]:
    """Show one bar per file while the block runs; yields what `fetch` calls to advance them."""
    console = SafeConsole(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        tasks: dict[str, TaskID] = {}

        def advance(file: str, done: int, total: int | None) -> None:
            if file not in tasks:
                tasks[file] = progress.add_task(f"{title}/{file}", total=total)
            progress.update(tasks[file], completed=done, total=total)

        yield advance
