"""What was added to a finished run after its training: facts, names, vectors. What was trained stays as it is.

added/journal.jsonl         a sealed line for each addition, and for each time that some were undone
added/000001.parquet        the facts of an addition by name, as they were given
added/000001.safetensors    rows of the models for names that the training had not seen, by model; see `Rows`
added/sums.safetensors      sums over all facts that stand, so that opening need not make them; whatever else is missing
                            an addition, this alone may be

An addition exists when its line does: its files are there before it, so that a kill leaves all of it or nothing. Files
whose addition never came to be, or was undone, are removed by whoever writes next.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ukge.errors import RunError
from ukge.graph.arrow import from_numpy
from ukge.graph.dataset import Dataset
from ukge.graph.keys import contains
from ukge.graph.uncertain import UncertainGraph, concat
from ukge.graph.vocabulary import Ids, Vocabulary
from ukge.models.tables import Parameters
from ukge.runs.journal import JOURNAL, Addition, Journal, Undoing, has_additions, now
from ukge.storage.arrays import Arrays, Expected, StoredArrays, checked, save_arrays
from ukge.storage.files import DAMAGED, remove_leftovers_in, sha256, write_atomically, writing

SUMS = "sums.safetensors"
OWN = "run"
"""The name of the run's own model among those that rows are kept for."""

ROWS = ("entity", "relation")
BeforeLine = Callable[[str], None]
"""Does what must be done before a line is there, told the checksum that the journal will have."""

Names = tuple[Vocabulary, Vocabulary]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of one model for names that its training had not seen: ids that rise, and a row for each."""

    entity_id: Ids
    entity: npt.NDArray[np.float32]
    relation_id: Ids
    relation: npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Added:
    """All additions to a run that stand, as one."""

    trained: Names
    names: Names
    """those that were trained, then the added ones in the order in which they came"""
    facts: UncertainGraph
    """the facts that stand: a later addition's replaces an earlier one's"""
    rows: tuple[Mapping[str, Rows], ...]
    additions: tuple[Addition, ...]
    print: str = ""
    """the checksum of the journal"""

    def __len__(self) -> int:
        return len(self.additions)

    @cached_property
    def keys(self) -> npt.NDArray[np.int64]:
        """The keys of the facts, sorted."""
        return np.sort(self.facts.keys())

    def dataset(self, base: Dataset) -> Dataset:
        """Return a data set over all names with what was added: it is known, and no held-out fact any more."""
        train, val, test = (
            part[~contains(self.keys, part.keys())] if len(self.facts) else part for part in base.parts.values()
        )
        facts = self.facts.taken_as_undirected(train.undirected)
        whole = concat([train, facts]) if len(facts) else train
        return replace(base, train=whole, val=val, test=test)

    def parameters(self, model: str, trained: Parameters) -> Parameters:
        """Return the weights of a model with rows for the added names."""
        tables = {
            kind: self._extended(model, kind, table, len(names))
            for kind, table, names in zip(ROWS, (trained.entity, trained.relation), self.names, strict=True)
        }
        return Parameters(tables["entity"], tables["relation"], trained.link, trained.shared)

    def _extended(self, model: str, kind: str, trained: npt.NDArray[np.float32], size: int) -> npt.NDArray[np.float32]:
        known = len(trained)
        if size == known:
            return trained
        table = np.concatenate([trained, np.full((size - known, trained.shape[1]), np.nan, dtype=np.float32)])
        for each in self.rows:
            rows = each.get(model)
            if rows is None:
                raise RunError(
                    f"what was added has no rows for the model '{model}'",
                    hint="Undo the additions (ukge undo RUN --all), or take them into the training (ukge refresh RUN).",
                )
            ids, values = getattr(rows, f"{kind}_id"), getattr(rows, kind)
            if len(ids) and (ids[0] < known or ids[-1] >= size or values.shape[1] != table.shape[1]):
                raise RunError(f"the rows that were added for the model '{model}' do not fit it", hint=DAMAGED)
            table[ids] = values
        if np.isnan(table[known:]).any():
            raise RunError(f"the rows that were added for the model '{model}' are not complete", hint=DAMAGED)
        return table


def read_added(run: Path, trained: Names, weights: str, undirected: Sequence[str]) -> Added | None:
    """Return what stands added to a run; None where nothing does.

    Each file is checked against its checksum in the journal. `trained` are the names of the training, `weights` the
    checksum of its weights, `undirected` its relations without a direction.
    """
    if not has_additions(run):
        return None
    journal = Journal(run)
    standing = journal.standing
    strange = next((each for each in standing if each.base != weights), None)
    if strange is not None:
        raise RunError(f"{journal.file} tells of additions to another training than that of {run}", hint=DAMAGED)
    if not standing:
        return None
    tables = [_facts_of(journal.folder, each) for each in standing]
    graph = joined(trained, tables, undirected)
    rows = tuple(_rows_of(journal.folder, each) for each in standing)
    return Added(trained, (graph.entities, graph.relations), graph, rows, standing, journal.print)


def joined(trained: Names, tables: Sequence[pa.Table], undirected: Sequence[str]) -> UncertainGraph:
    """Return the facts of additions, by name and in their order, as one graph over all names, the trained ones first.

    Of a fact that several additions say, the last one's counts; one addition may say it twice.
    """
    whole = pa.concat_tables([table.select(["head", "relation", "tail", "confidence"]) for table in tables])
    entities = with_names(trained[0], [table[end] for table in tables for end in ("head", "tail")])
    relations = with_names(trained[1], [table["relation"] for table in tables])
    nothing = UncertainGraph.from_ids([], [], [], [], entities, relations).taken_as_undirected(undirected)
    head, tail = (entities.encode(whole[end]) for end in ("head", "tail"))
    graph = nothing.with_facts(head, relations.encode(whole["relation"]), tail, whole["confidence"].to_numpy())
    number = np.repeat(np.arange(len(tables)), [len(table) for table in tables])
    _, place = np.unique(graph.keys(), return_inverse=True)
    last = np.full(int(place.max(initial=-1)) + 1, -1)
    np.maximum.at(last, place, number)
    kept = last[place] == number
    sources = [table["source"] if "source" in table.column_names else pa.nulls(len(table)) for table in tables]
    source = pa.concat_arrays([chunk.cast(pa.large_string()) for each in sources for chunk in _chunks(each)])
    if source.null_count < len(source):
        columns = graph.head, graph.relation, graph.tail, graph.confidence
        graph = UncertainGraph.from_ids(*columns, entities, relations, source=source).taken_as_undirected(undirected)
    return graph if kept.all() else graph[kept]


def _chunks(column: pa.Array | pa.ChunkedArray) -> list[pa.Array]:
    return list(column.chunks) if isinstance(column, pa.ChunkedArray) else [column]


def with_names(known: Vocabulary, columns: Sequence[pa.ChunkedArray]) -> Vocabulary:
    """Return a vocabulary with the unknown names of some columns at its end, in the order in which they come."""
    said = pa.chunked_array(
        [chunk.cast(pa.large_string()) for each in columns for chunk in each.chunks], pa.large_string()
    )
    unknown = said.take(from_numpy(np.flatnonzero(known.encode(said) < 0))).unique()
    if not len(unknown):
        return known
    return Vocabulary.trusted(pa.concat_arrays([known.names, unknown]), known.kind)


def _checked(folder: Path, addition: Addition, ending: str) -> Path:
    name = f"{addition.number:06}{ending}"
    file = folder / name
    if not file.is_file():
        raise RunError(f"{file} is missing", hint=DAMAGED)
    if sha256(file) != addition.files[name]:
        raise RunError(f"{file} is damaged: its content does not match its checksum", hint=DAMAGED)
    return file


def _facts_of(folder: Path, addition: Addition) -> pa.Table:
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415 — most runs have no additions

    file = _checked(folder, addition, ".parquet")
    try:
        table = ParquetFile(file, page_checksum_verification=True).read()
        columns = {name: table[name].cast(kind) for name, kind in _COLUMNS.items()}
        columns["source"] = (
            table["source"].cast(_TEXT) if "source" in table.column_names else pa.nulls(len(table), _TEXT)
        )
    except (pa.ArrowException, OSError, KeyError) as error:
        raise RunError(f"{file} cannot be used: {error}", hint=DAMAGED) from None
    if any(columns[name].null_count for name in _COLUMNS):
        raise RunError(f"{file} cannot be used: a fact lacks a name or its confidence", hint=DAMAGED)
    return pa.table(columns)


_TEXT = pa.large_string()
_COLUMNS = {"head": _TEXT, "relation": _TEXT, "tail": _TEXT, "confidence": pa.float64()}


def _rows_of(folder: Path, addition: Addition) -> dict[str, Rows]:
    file = _checked(folder, addition, ".safetensors")
    arrays = StoredArrays(file, copied=True)
    found = {}
    for model in sorted({name.partition(".")[0] for name in arrays}):
        expected = {
            f"{model}.{kind}{part}": each
            for kind in ROWS
            for part, each in (
                ("_id", Expected("int32", (kind,), low=0, rising=True)),
                ("", Expected("float32", (kind, None))),
            )
        }
        own = {name: arrays[name] for name in arrays if name.startswith(f"{model}.")}
        there = checked(file, own, expected)
        found[model] = Rows(**{name.partition(".")[2]: array for name, array in there.items()})
    return found


def write_addition(
    run: Path, addition: Addition, facts: pa.Table, rows: Mapping[str, Rows], before_line: BeforeLine | None = None
) -> Addition:
    """Write an addition: its files, and then its line. Who calls holds the run `alone`.

    `before_line` is called with the content that the journal will have.
    """
    from pyarrow.parquet import write_table  # noqa: PLC0415

    journal = Journal(run)
    with writing(journal.folder):
        journal.folder.mkdir(exist_ok=True)
    tidy(run)
    parquet, tables = (journal.folder / f"{addition.number:06}{ending}" for ending in (".parquet", ".safetensors"))
    sink = pa.BufferOutputStream()
    write_table(facts, sink, compression="zstd", write_page_checksum=True)
    write_atomically(parquet, sink.getvalue().to_pybytes())
    arrays: Arrays = {
        f"{model}.{each.name}": getattr(found, each.name) for model, found in rows.items() for each in fields(Rows)
    }
    save_arrays(tables, arrays)
    whole = replace(addition, files={file.name: sha256(file) for file in (parquet, tables)})
    _write_line(journal, whole, before_line)
    return whole


def write_undoing(run: Path, undone: Sequence[int], who: str, before_line: BeforeLine | None = None) -> Undoing:
    """Write that some additions are undone. Who calls holds the run `alone`."""
    journal = Journal(run)
    event = Undoing(journal.next, now(), who, tuple(undone))
    _write_line(journal, event, before_line)
    return event


def _write_line(journal: Journal, event: Addition | Undoing, before_line: BeforeLine | None) -> None:
    content = journal.with_line(event)
    if before_line is not None:
        before_line(hashlib.sha256(content).hexdigest())
    write_atomically(journal.file, content)


def tidy(run: Path) -> None:
    """Remove files whose addition never came to be or was undone, and what was left in the making."""
    journal = Journal(run)
    remove_leftovers_in(journal.folder)
    kept = {JOURNAL, SUMS} | {name for each in journal.standing for name in each.files}
    for file in journal.folder.iterdir() if journal.folder.is_dir() else ():
        if file.name not in kept and not file.name.startswith(".") and file.suffix in (".parquet", ".safetensors"):
            file.unlink(missing_ok=True)
