"""A data set as a directory: train, val and test files, with what a benchmark adds to them beside.

    train.tsv  val.tsv  test.tsv       head, relation, tail, confidence
    test_with_neg.tsv                  the test facts, then the negative links
    softlogic.tsv                      rule heads with the lower bound that their bodies give them
    ndcg_queries.tsv                   head, relation
    entities.tsv  relations.tsv        id, name
    claims.parquet                     the claims that the facts were made of
    dataset.json                       which relations have no direction, and which are each other's inverse
    nodes.tsv                          what is known of the entities: id (a name), label, type, description, aliases

The first three are needed, in any format that can be read; heads, relations and tails are names, or ids where the
files of names are there.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np

from ukge.errors import DataError
from ukge.graph.catalogue.names import Names, numbered, place_graph, read_names, read_queries, write_names
from ukge.graph.dataset import Dataset
from ukge.graph.nodes import Nodes
from ukge.graph.readers import ReadReport, read, read_claims, read_with_report
from ukge.graph.readers.node_files import as_nodes, with_given_nodes
from ukge.graph.uncertain import UncertainGraph, concat
from ukge.graph.undirected import AUTO, Undirected, undirected_dataset
from ukge.graph.writers import write
from ukge.graph.writers.claims import write_claims
from ukge.storage.files import replacing_directory

STEMS = {
    "train": ("train",),
    "val": ("val", "valid", "validation", "dev"),
    "test": ("test",),
    "test_with_neg": ("test_with_neg",),
    "softlogic": ("softlogic",),
    "queries": ("ndcg_queries",),
    "claims": ("claims",),
    "entities": ("entities", "entity_id", "concept_id"),
    "relations": ("relations", "relation_id"),
    "nodes": ("nodes",),
}
NEEDED = ("train", "val", "test")
NOTE, UNDIRECTED = "dataset.json", "undirected"
FACTS = (*NEEDED, "test_with_neg", "softlogic")
LAYOUT_HINT = "A data set is a directory with train, val and test files; `ukge data split` makes one of a single file."


def read_folder(
    directory: str | Path,
    *,
    name: str | None = None,
    sizes: tuple[int, int] | None = None,
    undirected: str | Sequence[str] = AUTO,
    on_report: Callable[[ReadReport], None] | None = None,
    on_undirected: Callable[[Undirected], None] | None = None,
    **reading: Any,
) -> Dataset:
    """Read the data set in `directory`; further arguments say how its files of facts are read, as for `read`.

    `sizes` (entities, relations) says how many ids there are when the facts are ids and the files of names are missing;
    the ids then stand as names. `undirected` names the relations without a direction; "auto" takes those that the
    directory says, or else finds them by their facts, "none" takes all as they stand; `on_undirected` hears of them.
    """
    folder = Path(directory)
    files = find_files(folder)
    missing = [part for part in NEEDED if part not in files]
    if missing:
        raise DataError(f"has no {' and no '.join(missing)} file", source=str(folder), hint=LAYOUT_HINT)
    raw = {part: _read(part, files[part], on_report, reading) for part in FACTS if part in files}
    entities, relations = _names(files, raw, sizes)
    parts = {part: _place(graph, entities, relations, files[part], reading) for part, graph in raw.items()}
    queries = read_queries(files["queries"], entities, relations) if "queries" in files else None
    note = _read_note(files["note"]) if "note" in files else {}
    dataset = Dataset(
        name or folder.resolve().name,
        parts["train"],
        parts["val"],
        parts["test"],
        negatives=_negatives(parts, files),
        queries=queries,
        ground_rules=parts.get("softlogic"),
        inverses=tuple((first, second) for first, second in note.get("inverses", ())),
        claims=read_claims(files["claims"]) if "claims" in files else None,
    )
    wanted = note.get(UNDIRECTED, AUTO) if undirected == AUTO else undirected
    return undirected_dataset(with_nodes(dataset, _nodes(files, raw)), wanted, on_undirected)


def with_nodes(dataset: Dataset, nodes: Any) -> Dataset:
    """Return a data set with what is known of its entities: node data, a file, a frame, or nothing new."""
    if nodes is None:
        return dataset
    source = str(nodes) if isinstance(nodes, (str, os.PathLike)) else "nodes"
    return dataset.with_nodes(with_given_nodes(dataset.train, as_nodes(nodes), source).nodes)


def _nodes(files: dict[str, Path], raw: dict[str, UncertainGraph]) -> Any:
    """Return what is known of the entities: as the directory says, else as the files of facts do."""
    if "nodes" in files:
        return files["nodes"]
    return reduce(Nodes.joined, (part.nodes for part in raw.values())) or None


def _read_note(file: Path) -> dict[str, Any]:
    try:
        note: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        _ = [(first, second) for first, second in note.get("inverses", ())], list(note.get(UNDIRECTED, ()))
    except (ValueError, TypeError, AttributeError):
        raise DataError("cannot be read", source=str(file), hint="Cut the facts again: ukge data split") from None
    return note


def find_files(folder: Path) -> dict[str, Path]:
    """Return the files of the layout that a directory holds, by what they are."""
    if not folder.is_dir():
        raise DataError("is not a directory", source=str(folder), hint=LAYOUT_HINT)
    files: dict[str, Path] = {}
    for path in sorted(folder.iterdir()):
        stem = path.name.split(".")[0]
        what = next((what for what, stems in STEMS.items() if stem in stems), None)
        what = "note" if path.name == NOTE else what
        if what is None or not path.is_file() or path.suffix == ".tmp":
            continue
        if what in files:
            hint = "Keep one of them; which one is meant cannot be told."
            raise DataError(f"{files[what].name} and {path.name} are both there", source=str(folder), hint=hint)
        files[what] = path
    return files


def save_dataset(dataset: Dataset, directory: str | Path, *, overwrite: bool = False) -> Path:
    """Write a data set as a directory that `open_dataset` reads, and return its path.

    The directory appears whole or not at all. One that holds files already is refused, unless `overwrite`: then the
    files of the layout in it are replaced, all at once, and others stay.
    """
    target = Path(directory).resolve()
    present = list(target.iterdir()) if target.is_dir() else []
    if target.exists() and not target.is_dir():
        raise DataError("is a file, not a directory", source=str(directory), hint="Choose another name.")
    if present and not overwrite:
        hint = "Choose an empty directory, or replace it: ‹overwrite=True›."
        raise DataError("holds files already", source=str(directory), hint=hint)
    others = set(present) - set(find_files(target).values()) if present else set()
    with replacing_directory(target, over=bool(present)) as making:
        _write(dataset, making)
        for path in others:
            if path.is_dir():
                shutil.copytree(path, making / path.name, copy_function=os.link, symlinks=True)
            else:
                os.link(path, making / path.name, follow_symlinks=False)
    return Path(directory)


def _write(dataset: Dataset, folder: Path) -> None:
    write_names(dataset.entities, folder / "entities")
    write_names(dataset.relations, folder / "relations")
    if len(dataset.nodes):
        dataset.nodes.to_parquet(folder / "nodes.parquet")
    facts = {**dataset.parts, "softlogic": dataset.ground_rules}
    if dataset.negatives is not None:
        facts["test_with_neg"] = dataset.test_with_negatives()
    for part, graph in facts.items():
        if graph is not None and len(graph):
            write(_by_id(graph), folder / f"{part}.tsv")
        elif graph is not None:
            (folder / f"{part}.tsv").touch()
    note = {UNDIRECTED: list(dataset.undirected), "inverses": [list(pair) for pair in dataset.inverses]}
    (folder / NOTE).write_text(json.dumps(note, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    if dataset.claims is not None:
        write_claims(dataset.claims, folder / "claims.parquet")
    if dataset.queries is not None:
        lines = (f"{head}\t{relation}\n" for head, relation in dataset.queries.tolist())
        (folder / "ndcg_queries.tsv").write_text("".join(lines), encoding="utf-8")


def _names(
    files: dict[str, Path], raw: dict[str, UncertainGraph], sizes: tuple[int, int] | None
) -> tuple[Names, Names]:
    entities = read_names(files["entities"], "entity") if "entities" in files else None
    relations = read_names(files["relations"], "relation") if "relations" in files else None
    if sizes is not None:
        entities = entities or Names(numbered(sizes[0], "entity"))
        relations = relations or Names(numbered(sizes[1], "relation"))
    if entities is None or relations is None:
        together = concat(list(raw.values()))
        entities = entities or Names(together.entities, by_id=False)
        relations = relations or Names(together.relations, by_id=False)
    return entities, relations


def _read(
    part: str, path: Path, on_report: Callable[[ReadReport], None] | None, reading: Mapping[str, Any]
) -> UncertainGraph:
    """Read one part; any but train may be an empty file, which holds no facts."""
    if part != "train" and path.stat().st_size == 0:
        return UncertainGraph.from_facts([])
    return read(path, on_report=on_report, **reading)


def _place(
    graph: UncertainGraph, entities: Names, relations: Names, path: Path, reading: Mapping[str, Any]
) -> UncertainGraph:
    try:
        return place_graph(graph, entities, relations, str(path))
    except DataError:
        if entities.by_id and relations.by_id:
            names = {"entities": entities.vocabulary, "relations": relations.vocabulary}
            read_with_report(path, **{**names, **reading})  # its error tells the lines
        raise


def _negatives(parts: dict[str, UncertainGraph], files: dict[str, Path]) -> UncertainGraph | None:
    if "test_with_neg" not in parts:
        return None
    test, asked, source = parts["test"], parts["test_with_neg"], str(files["test_with_neg"])
    hint = "It holds the rows of the test file in their order, then the negative links with confidence 0."
    if len(asked) < len(test) or not np.array_equal(asked.keys()[: len(test)], test.keys()):
        raise DataError(f"its first {len(test):,} rows are not the test facts", source=source, hint=hint)
    negatives = asked[len(test) :]
    positive = np.flatnonzero(negatives.confidence > 0)
    if len(positive):
        what = f"{len(positive):,} of its {len(negatives):,} negative links have a confidence above 0"
        raise DataError(what, source=source, hint=hint)
    return negatives


def _by_id(graph: UncertainGraph) -> UncertainGraph:
    return UncertainGraph.from_ids(
        graph.head,
        graph.relation,
        graph.tail,
        graph.confidence,
        numbered(graph.n_entities, "entity"),
        numbered(graph.n_relations, "relation"),
        source=graph.source,
    )
