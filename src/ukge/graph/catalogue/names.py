"""Files of names, and facts and queries that speak in their ids or in the names themselves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

from ukge.errors import SHOWN, DataError, Problem
from ukge.graph.readers import read_vocabulary
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Ids, Vocabulary

NAMES_HINT = "A file of names has two columns, the id and the name; ids count from 0 without gaps."


@dataclass(frozen=True, eq=False)
class Names:
    """A vocabulary; with `by_id`, fact files may speak in its ids (the places in the vocabulary) instead of names."""

    vocabulary: Vocabulary
    by_id: bool = True

    def places(self, texts: pa.Array, source: str) -> Ids:
        """Return where each text stands in the vocabulary. All texts are taken as ids, or else all as names."""
        as_ids = self._ids(texts) if self.by_id else np.full(len(texts), -1, np.int32)
        if (as_ids >= 0).all():
            return as_ids
        as_names = self.vocabulary.encode(texts)
        if (as_names >= 0).all():
            return as_names
        unknown = np.flatnonzero((as_ids if (as_ids >= 0).sum() >= (as_names >= 0).sum() else as_names) < 0)
        kind = self.vocabulary.kind
        problems = [Problem(f"no such {kind}", value=texts[int(at)].as_py()) for at in unknown[:SHOWN]]
        what = f"{len(unknown):,} {kind} ids or names are not in the file of names"
        raise DataError(what, source=source, problems=problems, count=len(unknown), hint=NAMES_HINT)

    def _ids(self, texts: pa.Array) -> Ids:
        numbers = _numbers(texts)
        return np.where(numbers < len(self.vocabulary), numbers, -1).astype(np.int32)


def numbered(count: int, kind: str) -> Vocabulary:
    """Return names for ids that have none: the ids themselves."""
    return Vocabulary.trusted(pc.cast(pa.array(np.arange(count)), pa.large_string()), kind)


def read_names(path: Path, kind: str) -> Names:
    """Read a file of names: `id<TAB>name`, or two columns of CSV or Parquet in either order, with or without header."""
    if path.suffix not in (".csv", ".parquet"):
        return Names(read_vocabulary(path, kind=kind))
    ids, names = _split(*_columns(path), path)
    if not np.array_equal(np.sort(ids), np.arange(len(ids))):
        raise DataError(f"{kind} ids are not 0…{len(ids) - 1}, each once", source=str(path), hint=NAMES_HINT)
    try:
        return Names(Vocabulary(names.take(pa.array(np.argsort(ids))), kind=kind))
    except DataError as error:
        raise DataError(error.what, source=str(path), hint="Every id needs a name of its own.") from None


def write_names(vocabulary: Vocabulary, stem: Path) -> None:
    """Write `id<TAB>name` lines to `stem`.tsv; names that no such line can hold go to `stem`.parquet instead."""
    if pc.any(pc.match_substring_regex(vocabulary.names, r"[\t\r\n]")).as_py():
        table = pa.table({"id": pa.array(np.arange(len(vocabulary))), "name": vocabulary.names})
        pa_parquet.write_table(table, stem.with_suffix(".parquet"), write_page_checksum=True)
        return
    with stem.with_suffix(".tsv").open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{at}\t{name}\n" for at, name in enumerate(vocabulary))


def place_graph(graph: UncertainGraph, entities: Names, relations: Names, source: str) -> UncertainGraph:
    """Return the facts of a graph as read from a file (its names are ids or names) over the given names."""
    entity = entities.places(graph.entities.names, source)
    relation = relations.places(graph.relations.names, source)
    return UncertainGraph.from_ids(
        entity[graph.head],
        relation[graph.relation],
        entity[graph.tail],
        graph.confidence,
        entities.vocabulary,
        relations.vocabulary,
        source=graph.source,
    )


def read_queries(path: Path, entities: Names, relations: Names) -> Ids:
    """Read the (head, relation) queries of the ranking task, by id or by name."""
    if path.stat().st_size == 0:
        return np.zeros((0, 2), dtype=np.int32)
    head, relation = _columns(path)
    return np.stack([entities.places(head, str(path)), relations.places(relation, str(path))], axis=1)


def _columns(path: Path) -> tuple[pa.Array, pa.Array]:
    comma = path.suffix == ".csv"
    try:
        if path.suffix == ".parquet":
            table = pa_parquet.read_table(path, page_checksum_verification=True)
        else:
            table = pa_csv.read_csv(
                path,
                read_options=pa_csv.ReadOptions(column_names=["first", "second"]),
                parse_options=pa_csv.ParseOptions(delimiter="," if comma else "\t", quote_char='"' if comma else False),
                convert_options=pa_csv.ConvertOptions(
                    column_types={"first": pa.large_string(), "second": pa.large_string()}, strings_can_be_null=False
                ),
            )
    except pa.ArrowInvalid as error:
        raise DataError(str(error), source=str(path), hint="The file has two columns.") from None
    if table.num_columns != 2:
        raise DataError(f"has {table.num_columns} columns instead of 2", source=str(path), hint=NAMES_HINT)
    columns: list[Any] = [column.cast(pa.large_string()).combine_chunks() for column in table.columns]
    return columns[0], columns[1]


def _split(first: pa.Array, second: pa.Array, path: Path) -> tuple[npt.NDArray[np.int64], pa.Array]:
    """Return the ids and the names of two columns, whichever comes first, without a header."""
    for skip in (0, 1):
        for ids, names in ((first, second), (second, first)):
            numbers = _numbers(ids[skip:])
            if len(numbers) and (numbers >= 0).all():
                return numbers, names[skip:]
    raise DataError("neither column holds ids only", source=str(path), hint=NAMES_HINT)


def _numbers(texts: pa.Array) -> npt.NDArray[np.int64]:
    """Return texts as whole numbers, −1 where a text is none."""
    digits = pc.match_substring_regex(texts, r"^(0|[1-9][0-9]{0,17})$")
    values: npt.NDArray[np.int64] = np.asarray(pc.if_else(digits, texts, "-1").cast(pa.int64()), dtype=np.int64)
    return values
