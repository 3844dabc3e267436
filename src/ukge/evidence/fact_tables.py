"""Files with facts to be judged, and files with judgements: TSV, CSV and Parquet, row by row as they were given.

Unlike the readers of graphs, these files need no confidence, and their names may be unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from ukge.errors import DataError, Problem
from ukge.graph.arrow import to_numpy
from ukge.graph.files import check_file, compression_of, extension_of, open_arrow
from ukge.graph.readers.layout import recognise
from ukge.graph.vocabulary import Ids, Vocabulary
from ukge.graph.writers.sink import atomic_sink

PARQUET = (".parquet", ".pq")
DELIMITER = {".tsv": "\t", ".tab": "\t", ".txt": "\t", ".csv": ","}
TRIPLE = ("head", "relation", "tail")
KNOWN = "Files are .tsv, .csv (.gz and .zst may come after it) or .parquet."


@dataclass(frozen=True, eq=False)
class FactTable:
    """Rows of a file: names, and, where the file has them, confidences and labels. `first` is the line of row 0."""

    source: str
    head: pa.Array
    relation: pa.Array
    tail: pa.Array
    confidence: npt.NDArray[np.float64] | None
    label: npt.NDArray[np.float64] | None
    first: int
    place: str

    def __len__(self) -> int:
        return len(self.head)

    def encode(self, entities: Vocabulary, relations: Vocabulary) -> tuple[Ids, Ids, Ids]:
        """Return the ids of the rows; −1 stands for an unknown name."""
        return entities.encode(self.head), relations.encode(self.relation), entities.encode(self.tail)

    def known_ids(self, entities: Vocabulary, relations: Vocabulary) -> tuple[Ids, Ids, Ids]:
        """Return the ids of the rows; unknown names are an error that says where they are."""
        ids = self.encode(entities, relations)
        problems = [
            Problem(
                f"unknown {'relation' if name == 'relation' else 'entity'}",
                int(row) + self.first,
                name,
                getattr(self, name)[int(row)].as_py(),
                self.place,
            )
            for name, column in zip(TRIPLE, ids, strict=True)
            for row in np.flatnonzero(column < 0)
        ]
        if problems:
            problems.sort(key=lambda problem: problem.line or 0)
            raise DataError(
                f"{len(problems):,} names are unknown to the run",
                source=self.source,
                problems=problems,
                hint="Take these rows out, or tell of new entities with --with FACTS.",
            )
        return ids


def read_facts(path: Path, *, confidence: bool = False, label: bool = False) -> FactTable:
    """Read rows of head, relation, tail and perhaps confidence and label (`label` or `truth`).

    Columns are found by the names of a first line, else by position: head, relation, tail, confidence, label. What is
    asked for and not there is an error, and so is a confidence or a label outside [0, 1].
    """
    check_file(path)
    extension = extension_of(path)
    if extension in PARQUET:
        try:
            table, first, place = pq.ParquetFile(path).read(), 0, "row"
        except (pa.ArrowInvalid, OSError) as error:
            raise DataError(f"is no readable Parquet file: {error}", source=str(path)) from None
        names = list(table.column_names)
    elif extension in DELIMITER:
        table, names, first = _read_text(path, DELIMITER[extension])
        place = "line"
    else:
        raise DataError(f"its format {extension or path.name!r} is not read", source=str(path), hint=KNOWN)
    roles = _roles(names, table.num_columns, str(path))
    for role, wanted in (("confidence", confidence), ("label", label)):
        if wanted and role not in roles:
            raise DataError(f"no column for the {role} among {', '.join(names) or 'the columns'}", source=str(path))
    columns = {role: table.column(at).combine_chunks() for role, at in roles.items()}
    numbers = {
        role: _numbers(columns[role], role, str(path), first, place) if role in columns else None
        for role in ("confidence", "label")
    }
    head, relation, tail = (_names(columns[role], role, str(path), first, place) for role in TRIPLE)
    return FactTable(str(path), head, relation, tail, numbers["confidence"], numbers["label"], first, place)


def write_table(path: Path, table: pa.Table) -> None:
    """Write judgements, with a line of column names in text files; the file appears only when it is whole."""
    extension = extension_of(path)
    if extension not in (*PARQUET, *DELIMITER):
        raise DataError(f"its format {extension or path.name!r} is not written", source=str(path), hint=KNOWN)
    if extension in PARQUET:
        if compression_of(path) is not None:
            raise DataError("Parquet compresses by itself", source=str(path), hint=f"Write to {path.stem} instead.")
        with atomic_sink(path) as sink:
            pq.write_table(table, sink, compression="zstd")
        return
    delimiter = DELIMITER[extension]
    quoting = "none" if delimiter == "\t" else "needed"
    if quoting == "none":
        for name in table.column_names:
            column = table[name]
            text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
            if text and pc.any(pc.match_substring_regex(column, r"[\t\r\n]")).as_py():
                raise DataError(
                    f"column {name} holds a tab or a line end", source=str(path), hint="Write CSV or Parquet instead."
                )
    with atomic_sink(path) as sink:
        sink.write((delimiter.join(table.column_names) + "\n").encode())
        options = pa_csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style=quoting)
        pa_csv.write_csv(table, sink, options)


def _read_text(path: Path, delimiter: str) -> tuple[pa.Table, list[str], int]:
    quote = '"' if delimiter == "," else False
    try:
        with open_arrow(path) as stream:
            table = pa_csv.read_csv(
                stream,
                pa_csv.ReadOptions(autogenerate_column_names=True),
                pa_csv.ParseOptions(delimiter=delimiter, quote_char=quote, ignore_empty_lines=False),
                pa_csv.ConvertOptions(
                    column_types={f"f{at}": pa.large_string() for at in range(64)}, strings_can_be_null=False
                ),
            )
    except (pa.ArrowInvalid, OSError) as error:
        raise DataError(f"cannot be read as a table: {error}", source=str(path), hint=KNOWN) from None
    first = [str(table.column(at)[0].as_py()).lstrip("\ufeff") for at in range(table.num_columns)]
    found = recognise(first)
    if all(role in found for role in TRIPLE):
        return table.slice(1), first, 2
    return table, [], 1


def _roles(names: list[str], width: int, source: str) -> dict[str, int]:
    if names:
        found = recognise(names)
        roles = {role: found[role] for role in (*TRIPLE, "confidence") if role in found}
        lowered = [name.strip().lower() for name in names]
        places = [lowered.index(name) for name in ("label", "truth") if name in lowered]
        roles |= {"label": places[0]} if places else {}
    else:
        roles = {role: at for at, role in enumerate((*TRIPLE, "confidence", "label")) if at < width}
    missing = [role for role in TRIPLE if role not in roles]
    if missing:
        shown = ", ".join(names) or f"{width} columns"
        raise DataError(
            f"no column for the {missing[0]} among {shown}",
            source=source,
            hint="Rows have head, relation and tail, in this order or under these names in the first line.",
        )
    return roles


def _names(column: pa.Array, role: str, source: str, first: int, place: str) -> pa.Array:
    names = column.cast(pa.large_string())
    empty = np.flatnonzero(to_numpy(pc.binary_length(names), missing=0) == 0)
    if len(empty):
        problems = [Problem("the name is missing", int(empty[0]) + first, role, None, place)]
        count = len(empty)
        raise DataError(f"{count:,} names are missing", source=source, problems=problems, count=count)
    return names


def _numbers(column: pa.Array, role: str, source: str, first: int, place: str) -> npt.NDArray[np.float64]:
    values = np.full(len(column), np.nan)
    for row, value in enumerate(column.to_pylist()):
        try:
            values[row] = float(value)
        except (TypeError, ValueError):
            continue
    wrong = np.flatnonzero(~((values >= 0.0) & (values <= 1.0)))
    if len(wrong):
        problems = [
            Problem(f"a {role} is a number from 0 to 1", int(row) + first, role, str(column[int(row)].as_py()), place)
            for row in wrong[:10]
        ]
        raise DataError(f"{len(wrong):,} values are wrong", source=source, problems=problems, count=len(wrong))
    return values
