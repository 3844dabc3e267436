"""Where data is: a benchmark by name, the synthetic world, a directory, or one file."""

from __future__ import annotations

import difflib
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from platformdirs import user_cache_path

from ukge.errors import ConfigError, DataError, known_names
from ukge.graph.bad_rows import one_place
from ukge.graph.catalogue.benchmarks import BASE_URLS, BENCHMARKS, NEEDED, Benchmark, download_progress, fetch, verify
from ukge.graph.catalogue.claims import read_with_claims
from ukge.graph.catalogue.folder import find_files, read_folder, with_nodes
from ukge.graph.dataset import Dataset
from ukge.graph.formats import recognised
from ukge.graph.negatives import with_negatives
from ukge.graph.partitioned import is_prepared, open_prepared
from ukge.graph.readers import ReadReport
from ukge.graph.split import split
from ukge.graph.synthetic import generate
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.undirected import AUTO, NONE, Undirected, tell_as_it_stands, undirected_dataset, undirected_graph
from ukge.storage.locks import alone

VARIABLE = "UKGE_DATA"
SYNTHETIC = "synthetic"


@dataclass(frozen=True, slots=True)
class Place:
    """A directory in which a benchmark was found, and why it was looked for there."""

    path: Path
    why: str


def cache_directory() -> Path:
    """Return the directory of this user into which benchmarks are fetched."""
    return user_cache_path("ukge") / "data"


def locate(name: str) -> Place | None:
    """Return where benchmark `name` is on this machine: in the directory UKGE_DATA names, else in the cache."""
    named = os.environ.get(VARIABLE)
    if named and (Path(named) / name).is_dir():
        return Place(Path(named) / name, VARIABLE)
    cached = cache_directory() / name
    return Place(cached, "cache") if cached.is_dir() else None


def load(name: str, *, base_urls: Sequence[str] = BASE_URLS) -> Dataset:
    """Return a benchmark by name, checked: from UKGE_DATA, else from the cache, else fetched into the cache."""
    expected = benchmark(name)
    place = locate(name)
    if place is None:
        return _fetch(expected, base_urls)
    return _checked(expected, place.path)


def benchmark(name: str) -> Benchmark:
    """Return what the catalogue knows about benchmark `name`."""
    if name not in BENCHMARKS:
        raise DataError(f"unknown benchmark {name!r}", hint=known_names(name, BENCHMARKS))
    return BENCHMARKS[name]


def open_dataset(
    ref: str | Path,
    *,
    seed: int = 0,
    leak_safe: bool = False,
    undirected: str | Sequence[str] = AUTO,
    on_report: Callable[[ReadReport], None] | None = None,
    on_undirected: Callable[[Undirected], None] | None = None,
    nodes: Any = None,
    **reading: Any,
) -> Dataset:
    """Return the data set that `ref` names: a benchmark, "synthetic", a directory of parts, or one file.

    A file and the synthetic world are split with `seed`. With `leak_safe`, a data set that comes split is cut anew, so
    that no held-out fact has a twin in train, and gets new negative links if it had any. How files of facts are read is
    said as for `read`, for example `relation="interacts"`; `on_report` hears what was skipped in them. `nodes` is what
    is known of the entities of any data set, as for `read`.

    `undirected` names relations without a direction, of which a fact and its mirror are one fact; "auto" finds them,
    "none" takes all as they stand, and `on_undirected` hears what that did. Under "auto", a benchmark that is not cut
    anew stays as it was published, and so do the parts of a prepared directory, of which it hears what they look like.
    """
    path, reading = Path(ref), one_place(reading)
    named = str(ref) in (*BENCHMARKS, SYNTHETIC)
    is_file = not named and (path.is_file() or (path.is_dir() and recognised(path) is not None))
    if nodes is not None and not is_file:
        told: dict[str, Any] = {"on_report": on_report, "on_undirected": on_undirected, **reading}
        opened = open_dataset(ref, seed=seed, leak_safe=leak_safe, undirected=undirected, **told)
        return with_nodes(opened, nodes)
    if not is_file:
        refuse_reading(ref, reading)
    if str(ref) == SYNTHETIC:
        world = generate(seed=seed)
        graph = undirected_graph(world.graph, undirected, on_undirected)
        cut = split(graph, seed=seed, leak_safe=leak_safe, undirected=graph.undirected, name=SYNTHETIC)
        return with_negatives(cut, seed=seed)
    if str(ref) in BENCHMARKS or is_prepared(path):
        published = load(str(ref)) if str(ref) in BENCHMARKS else open_prepared(path).dataset()
        if leak_safe:
            return _cut(published, undirected_graph(published.whole(), undirected, on_undirected), seed)
        return _as_published(published, undirected, on_undirected, told=str(ref) not in BENCHMARKS)
    if path.is_dir() and not is_file:
        dataset = read_folder(path, undirected=undirected, on_report=on_report, on_undirected=on_undirected, **reading)
        return _cut(dataset, dataset.whole(), seed) if leak_safe else dataset
    if is_file:
        rows, claims, report = read_with_claims(path, nodes=nodes, **reading)
        if on_report is not None:
            on_report(report)
        graph = undirected_graph(rows, undirected, on_undirected)
        cut = split(graph, seed=seed, leak_safe=leak_safe, undirected=graph.undirected, name=path.name.split(".")[0])
        return replace(cut, claims=claims)
    raise DataError(f"there is no benchmark, directory or file called {str(ref)!r}", hint=_known_hint(str(ref)))


def _as_published(
    published: Dataset,
    undirected: str | Sequence[str],
    on_undirected: Callable[[Undirected], None] | None,
    *,
    told: bool,
) -> Dataset:
    if undirected != AUTO:
        return undirected_dataset(published, undirected, on_undirected)
    if told:
        tell_as_it_stands(published, on_undirected)
    return published


def reference_to(ref: str | Path) -> str:
    """Return what opens the same data from any directory: the name of the catalogue, or the whole path."""
    return str(ref) if str(ref) in (*BENCHMARKS, SYNTHETIC) else str(Path(ref).resolve())


def refuse_reading(ref: str | Path, reading: Mapping[str, Any]) -> None:
    """Refuse to be told how files are read where `ref` names none, or where it would be wrong."""
    if not reading:
        return
    path = Path(ref)
    files = path.is_dir() and not is_prepared(path) and str(ref) not in (*BENCHMARKS, SYNTHETIC)
    if files and reading.get("scale") is not None:
        raise ConfigError(
            f"‹scale› would change the weights of each part of {path} by itself",
            hint="Normalise the facts before they are cut: ukge data split FILE --normalise SCALE --out DIR",
        )
    if not files and (path.exists() or str(ref) in (*BENCHMARKS, SYNTHETIC)):
        given = ", ".join(f"‹{name}›" for name in reading)
        raise ConfigError(f"{str(ref)!r} is no file of facts: {given} cannot say how it is read", hint="Leave it out.")


def _cut(dataset: Dataset, whole: UncertainGraph, seed: int) -> Dataset:
    cut = split(whole, seed=seed, leak_safe=True, undirected=whole.undirected, name=f"{dataset.name} leak-safe")
    cut = replace(cut, claims=dataset.claims)
    return cut if dataset.negatives is None else with_negatives(cut, seed=seed)


def _checked(expected: Benchmark, path: Path) -> Dataset:
    dataset = read_folder(path, name=expected.name, sizes=(expected.entities, expected.relations), undirected=NONE)
    verify(dataset, expected, find_files(path))
    return dataset


def _fetch(expected: Benchmark, base_urls: Sequence[str]) -> Dataset:
    """Fetch a benchmark into the cache; of several processes that want it, one does, and the others wait for it.

    Its files arrive in a directory beside, which takes its place when all are there and right. What a fetch that was
    killed has brought is gone on with.
    """
    target = cache_directory() / expected.name
    arriving = target.with_name(f"{expected.name}.part")
    with alone(arriving, wait=True):
        if target.is_dir():
            return _checked(expected, target)
        try:
            with download_progress(expected.name) as advance:
                fetch(expected.name, arriving, base_urls=base_urls, advance=advance)
        except DataError as error:
            what = f"{expected.name} is not on this machine and {error.what}"
            raise DataError(what, hint=_place_hint(expected)) from None
        try:
            dataset = _checked(expected, arriving)
        except DataError:
            shutil.rmtree(arriving)  # what is wrong once would stay wrong: the next attempt starts afresh
            raise
        os.replace(arriving, target)
    return dataset


def _place_hint(expected: Benchmark) -> str:
    return (
        f"With a network, try again: what arrived is kept. Without, put {', '.join(NEEDED)} (and, if you have them, "
        f"softlogic.tsv, ndcg_queries.tsv, entities.tsv, relations.tsv) into {cache_directory() / expected.name}, or "
        f"into the directory {expected.name} of a directory that the environment variable {VARIABLE} names."
    )


def _known_hint(ref: str) -> str:
    known = [*BENCHMARKS, SYNTHETIC]
    folder = Path(ref).parent
    here = [str(folder / path.name) for path in folder.iterdir()] if folder.is_dir() else []
    near = difflib.get_close_matches(ref, [*known, *here], n=1, cutoff=0.75)
    start = f"Did you mean '{near[0]}'? " if near else ""
    return f"{start}Benchmarks: {', '.join(BENCHMARKS)}; '{SYNTHETIC}' is made on the spot; anything else is a path."
