"""A graph as a directory of Parquet parts by id, of which every reader takes only its share.

    prepared.json                 how many entities, relations and facts there are, SHA-256 of every file
    entities/*.parquet            id, name
    relations/*.parquet           id, name
    train/  val/  test/           head, relation, tail (ids) and confidence
    links/                        negative links like the validation facts, with confidence 0

`ukge data prepare` makes one from Parquet files by name, without holding names or facts on one machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ukge.errors import DataError, RunError
from ukge.graph.dataset import Dataset
from ukge.graph.uncertain import FactArrays, UncertainGraph
from ukge.graph.vocabulary import Vocabulary
from ukge.storage.files import replacing_directory, sha256, write_atomically
from ukge.storage.sealed import sealed, unsealed

FORMAT = 2
READ = (1, 2)
"""Formats that are read; the first has no checksums."""
NOTE = "prepared.json"
PARTS = ("train", "val", "test", "links")
COLUMNS = ("head", "relation", "tail", "confidence")
FACTS = pa.schema([("head", pa.int32()), ("relation", pa.int32()), ("tail", pa.int32()), ("confidence", pa.float64())])
NAMES = pa.schema([("id", pa.int32()), ("name", pa.large_string())])
HINT = "Prepare the directory again: ukge data prepare SOURCE DIRECTORY"


@dataclass(frozen=True)
class Prepared:
    """A prepared directory that was opened; nothing but its note has been read."""

    path: Path
    n_entities: int
    n_relations: int
    facts: Mapping[str, int]
    files: Mapping[str, str] | None = None
    """SHA-256 of its files, if they are known"""
    made_of: str | None = None
    """a digest of the files and settings that it was made of, if they are known"""

    def share(self, part: str, rank: int = 0, size: int = 1) -> FactArrays:
        """Return, by id, the rank's share of a part's facts: the rank-th of `size` stretches that are equally long.

        Only the row groups that hold it are read.
        """
        total = self.facts.get(part, 0)
        first, stop = total * rank // size, total * (rank + 1) // size
        found: list[pa.Table] = []
        at = 0
        for file in _files(self.path / part):
            with _opened(file) as parquet:
                sound = False
                for group in range(parquet.num_row_groups):
                    rows = parquet.metadata.row_group(group).num_rows
                    low, high = max(first, at), min(stop, at + rows)
                    if low < high:
                        sound = sound or self._sound(file)
                        table = parquet.read_row_group(group, columns=list(COLUMNS)).cast(FACTS)
                        found.append(table.slice(low - at, high - low))
                    at += rows
        if at != total:
            raise DataError(f"holds {at:,} facts, not {total:,}", source=str(self.path / part), hint=HINT)
        table = pa.concat_tables(found) if found else FACTS.empty_table()
        return self._checked(part, FactArrays(*(table[name].to_numpy() for name in COLUMNS)))

    def vocabulary(self, kind: str) -> Vocabulary:
        """Return the names of the entities (`kind` is "entity") or relations, in the order of their ids."""
        folder, size = ("entities", self.n_entities) if kind == "entity" else ("relations", self.n_relations)
        tables = []
        for file in _files(self.path / folder):
            with _opened(file) as parquet:
                self._sound(file)
                tables.append(parquet.read(columns=["id", "name"]).cast(NAMES))
        table = pa.concat_tables(tables) if tables else NAMES.empty_table()
        ids = table["id"].to_numpy()
        places = np.full(size, -1, dtype=np.int64)
        inside = ids[(ids >= 0) & (ids < size)]
        if len(inside) == len(ids):
            places[ids] = np.arange(len(ids))
        if len(ids) != size or (places < 0).any():
            raise DataError(f"does not name the ids 0…{size - 1} once each", source=str(self.path / folder), hint=HINT)
        return Vocabulary.trusted(table["name"].combine_chunks().take(pa.array(places)), kind)

    def graph(self, part: str, entities: Vocabulary, relations: Vocabulary) -> UncertainGraph:
        """Return all facts of a part as a graph of this process."""
        return UncertainGraph.from_ids(*self.share(part), entities, relations)

    def dataset(self) -> Dataset:
        """Return the whole as a data set of this process."""
        names = self.vocabulary("entity"), self.vocabulary("relation")
        train, val, test = (self.graph(part, *names) for part in ("train", "val", "test"))
        return Dataset(self.path.resolve().name, train, val, test)

    def _sound(self, file: Path) -> bool:
        """Return that a file is what was written; it is hashed by whoever reads of it."""
        if self.files is not None and self.files.get(file.relative_to(self.path).as_posix()) != sha256(file):
            raise DataError("its content does not match its checksum", source=str(file), hint=HINT)
        return True

    def _checked(self, part: str, facts: FactArrays) -> FactArrays:
        bounds = {"head": self.n_entities, "relation": self.n_relations, "tail": self.n_entities}
        for column, bound in bounds.items():
            ids = getattr(facts, column)
            if len(ids) and (ids.min() < 0 or ids.max() >= bound):
                what = f"column {column} holds ids outside 0…{bound - 1}"
                raise DataError(what, source=str(self.path / part), hint=HINT)
        if len(facts.confidence) and not ((facts.confidence >= 0) & (facts.confidence <= 1)).all():
            raise DataError("confidences lie outside [0, 1]", source=str(self.path / part), hint=HINT)
        return facts


def is_prepared(path: str | Path) -> bool:
    """Return whether `path` is a prepared directory."""
    return (Path(path) / NOTE).is_file()


def open_prepared(path: str | Path) -> Prepared:
    """Open a prepared directory."""
    file = Path(path) / NOTE
    try:
        note = unsealed(file.read_bytes(), file, strict=False)
    except OSError:
        raise DataError(f"is not a prepared directory: it has no {NOTE}", source=str(path), hint=HINT) from None
    except RunError as error:
        raise DataError(error.what, hint=HINT) from None
    if note.get("format") not in READ:
        raise DataError(f"is of format {note.get('format')}, this version reads {FORMAT}", source=str(file), hint=HINT)
    sizes, facts, files = [note.get("entities"), note.get("relations")], note.get("facts"), note.get("files")
    counts = [*sizes, *facts.values()] if isinstance(facts, dict) else [None]
    listed = isinstance(files, dict) or note["format"] == READ[0]
    if not listed or not all(type(count) is int and count >= 0 for count in counts):
        raise DataError("does not say how much there is of what", source=str(file), hint=HINT)
    return Prepared(Path(path), note["entities"], note["relations"], note["facts"], files, note.get("made_of"))


def write_note(
    path: Path, n_entities: int, n_relations: int, facts: Mapping[str, int], made_of: str | None = None
) -> None:
    """Write the note that makes a directory of parts a prepared one; `made_of` tells what it was asked for."""
    files = {file.relative_to(path).as_posix(): sha256(file) for file in _files(path)}
    sizes = {"entities": n_entities, "relations": n_relations, "facts": dict(facts)}
    write_atomically(
        path / NOTE, (sealed({"format": FORMAT, **sizes, "files": files, "made_of": made_of}) + "\n").encode()
    )


def save_prepared(dataset: Dataset, links: UncertainGraph | None, directory: str | Path) -> Prepared:
    """Write a data set that is in memory as a prepared directory; one that is there is replaced."""
    target = Path(directory)
    with replacing_directory(target, over=True) as making:
        for folder, vocabulary in (("entities", dataset.entities), ("relations", dataset.relations)):
            ids = pa.array(np.arange(len(vocabulary), dtype=np.int32))
            _write(making / folder, pa.table([ids, vocabulary.names], schema=NAMES))
        graphs = {**dataset.parts, **({} if links is None else {"links": links})}
        for part, graph in graphs.items():
            columns = [graph.head, graph.relation, graph.tail, graph.confidence]
            _write(making / part, pa.table([pa.array(column) for column in columns], schema=FACTS))
        counts = {part: len(graph) for part, graph in graphs.items()}
        write_note(making, len(dataset.entities), len(dataset.relations), counts)
    return open_prepared(target)


def _write(folder: Path, table: pa.Table) -> None:
    folder.mkdir(parents=True)
    target = folder / "part-0.parquet"
    pq.write_table(table, target, compression="zstd", row_group_size=1 << 18, write_page_checksum=True)


def _files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.parquet"))


def _opened(file: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(file, page_checksum_verification=True)
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"is no readable Parquet file: {error}", source=str(file), hint=HINT) from None
