"""TSV and CSV. A fast parallel parse; whatever it stumbles over is then found line by line (see `diagnosis`).

TSV has no quoting: a quotation mark is part of a name. CSV is quoted as RFC 4180 says. Blank lines hold no fact and
count as lines; no character starts a comment. NELL's belief dumps are TSV with a header of their own.

Of a large file only a few blocks of text are in memory at a time: names become ids while the next block is parsed.
That is also what makes it fast, because fresh memory is dear.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from ukge.errors import ConfigError, DataError, Problem
from ukge.graph.columns import NAME_HINT, Where, confidence_column, empty_names
from ukge.graph.files import TooLongError, compression_of, open_lines, open_text
from ukge.graph.formats import Format, readers
from ukge.graph.readers.diagnosis import QUOTE_HINT, diagnose, first_record, lines_of
from ukge.graph.readers.layout import (
    BESIDES,
    COLUMNS_HINT,
    COMMA_HINT,
    FACTS,
    ColumnMap,
    Field,
    Kind,
    Layout,
    Roles,
    assign_roles,
    is_header,
)
from ukge.graph.readers.parsed import Parsed, Request, one_relation
from ukge.graph.readers.quoting import CountedLines, swallows
from ukge.graph.readers.sifting import sifted
from ukge.graph.vocabulary import BlockEncoder, Vocabulary, unwritten

SEPARATORS = {"tab": "\t", "comma": ",", "semicolon": ";", "space": " ", "bar": "|"}
"""Names of delimiters that are hard to type, and so may be given by name."""

_LINE_END = re.compile("\r\n|\r|\n")
_BLOCK = 2 << 20
_PACKED = 6  # a rough guess of how much smaller compressed text is
SAFE = "^'+[=+\\-@\t\r\n＝＋－＠]"
_NELL: ColumnMap = {"head": "Entity", "relation": "Relation", "tail": "Value", "confidence": "Probability"}
LARGE_BYTES = 64 << 20  # from here on a file is read block by block
_ARROW_TYPES: dict[Kind, pa.DataType] = {
    "name": pa.binary(),  # checked to be UTF-8 once per distinct name, not once per row
    "id": pa.int64(),
    "number": pa.float64(),
    "text": pa.string(),
}


def read_tsv(
    path: Path,
    request: Request,
    *,
    columns: ColumnMap | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    relation: str | None = None,
    spreadsheet_safe: bool = False,
) -> Parsed:
    """Read tab-separated facts; all have the one given `relation` if no column says it.

    With `spreadsheet_safe`, names lose the apostrophe that the writer put before what looks like a formula.
    """
    table = Table(delimiter or "\t", False, columns, header)
    return _read(path, request, table, relation, spreadsheet_safe=spreadsheet_safe)


def read_csv(
    path: Path,
    request: Request,
    *,
    columns: ColumnMap | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    relation: str | None = None,
    spreadsheet_safe: bool = False,
) -> Parsed:
    """Read comma-separated facts with quoting; all have the one given `relation` if no column says it.

    With `spreadsheet_safe`, names lose the apostrophe that the writer put before what looks like a formula.
    """
    table = Table(delimiter or ",", True, columns, header)
    return _read(path, request, table, relation, spreadsheet_safe=spreadsheet_safe)


def read_nell(path: Path, request: Request, *, sources: bool = False) -> Parsed:
    """Read beliefs as facts; with `sources` the column `Source`, which is long, says where each came from."""
    _, header = first_record(path, "\t", quoted=False)
    names = [name.strip() for name in header]
    columns: ColumnMap = {**_NELL, "source": "Source" if sources else None}
    missing = [name for name in columns.values() if name is not None and name not in names]
    if missing:
        raise DataError(
            f"the header has no column {', '.join(map(repr, missing))}",
            source=str(path),
            hint="A NELL dump starts with a line 'Entity', 'Relation', 'Value', …, 'Probability', … between tabs; "
            "read other tables with ‹format='tsv'›.",
        )
    return read_tsv(path, request, columns=columns, header=True)


@dataclass(frozen=True)
class Table:
    """How a text file is a table, as far as its reader was told."""

    delimiter: str
    quoted: bool
    columns: ColumnMap | None = None
    header: bool | None = None

    @property
    def separator(self) -> str:
        """The character between columns."""
        char = SEPARATORS.get(self.delimiter, "\t" if self.delimiter == "\\t" else self.delimiter)
        if len(char.encode()) != 1 or char in '"\r\n':
            raise ConfigError(
                f"delimiter {self.delimiter!r} cannot separate columns",
                hint=f"Give one ASCII character, or its name: {', '.join(SEPARATORS)}.",
            )
        return char


def parse_table(path: Path, layout: Layout) -> pa.Table:
    """Return the layout's columns as they stand, or raise `DataError` saying where what is wrong."""
    try:
        with _diagnosed(path, layout), _opened(path, layout) as stream:
            table = pyarrow.csv.read_csv(stream, **_parser(layout))
            _refuse_swallowed(path, layout, stream, len(table))
            named = table.rename_columns([field.name for field in layout.fields])
            return _out_of_quotes(named, layout) if layout.numbers_in_quotes else named
    except _NumbersInQuotes:
        return parse_table(path, replace(layout, numbers_in_quotes=True))


def parse_blocks(path: Path, layout: Layout) -> Iterator[pa.RecordBatch]:
    """Yield the layout's columns block by block, for files that need not be in memory as a whole.

    Where a block turns out to have numbers in quotation marks, it and those that follow are read anew.
    """
    names = [field.name for field in layout.fields]
    done = 0
    try:
        with _diagnosed(path, layout), _opened(path, layout) as stream:
            for block in pyarrow.csv.open_csv(stream, **_parser(layout)):
                done += len(block)
                named = block.rename_columns(names)
                yield _out_of_quotes(named, layout) if layout.numbers_in_quotes else named
            _refuse_swallowed(path, layout, stream, done)
    except _NumbersInQuotes:
        for block in parse_blocks(path, replace(layout, numbers_in_quotes=True)):
            skipped = min(done, len(block))
            done -= skipped
            if skipped < len(block):
                yield block.slice(skipped)


def where_in(path: Path, layout: Layout) -> Where:
    """Return what turns rows of a delimited file into its lines."""
    return Where(str(path), "line", partial(lines_of, path, layout))


def layout_of(path: Path, request: Request, table: Table, wanted: Roles) -> tuple[Layout, dict[int, str]]:
    """Return how a text file is laid out, and the names of the columns that have no role, by position."""
    line, cells = first_record(path, table.separator, quoted=table.quoted)
    given = table.header
    named = given if given is not None else is_header(cells, wanted) or _by_name(table.columns)
    names = [cell.strip() for cell in cells] if named else None
    if names is None and not table.columns and not wanted.fit(len(cells)):
        raise _wrong_width(path, line, cells, table.separator, wanted)
    roles = assign_roles(
        len(cells), header=names, columns=table.columns, source=str(path), line=f" in line {line}", wanted=wanted
    )
    fields = tuple(_field(role, roles[role], names, request) for role in wanted.all if role in roles)
    header_lines = line + sum(len(_LINE_END.findall(cell)) for cell in cells) if named else 0
    others = {at: names[at] if names is not None else str(at) for at in range(len(cells)) if at not in roles.values()}
    layout = Layout(table.separator, table.quoted, len(cells), fields, header_lines)
    return replace(layout, decimal_comma=names is None and not table.columns and _decimal_comma(cells, layout)), others


def _read(
    path: Path, request: Request, table: Table, relation: str | None, *, spreadsheet_safe: bool = False
) -> Parsed:
    layout, others = layout_of(path, request, table, request.wanted.given(relation))
    layout = sifted(path, layout, request)
    whole = partial(_parse_whole, request=request, spreadsheet_safe=spreadsheet_safe)
    read = _parse_stream if is_large(path, request) and not spreadsheet_safe else whole
    parsed = read(path, layout, relation)
    if parsed.rows == 0:
        what = "no facts: every row is bad" if layout.left_out else "a header and no facts"
        raise DataError(what, source=str(path), hint="Check how the file was made.")
    if layout.decimal_comma and parsed.source is not None:
        refuse_decimal_commas(parsed.weight, parsed.source, parsed.where)
    return replace(parsed, ignored_columns=tuple(others.values()))


def _decimal_comma(cells: list[str], layout: Layout) -> bool:
    at = next((field.position for field in layout.fields if field.name == "confidence"), None)
    if layout.delimiter != "," or at is None or at + 1 >= len(cells):
        return False
    return cells[at] in ("0", "1") and cells[at + 1].isascii() and cells[at + 1].isdecimal()


def refuse_decimal_commas(weight: npt.NDArray[np.float64], beside: Any, where: Where) -> None:
    """Refuse a table between commas of which every confidence is 0 or 1 and every next column digits: 0,85 is 0.85."""
    if np.isin(weight, (0.0, 1.0)).all() and pc.all(pc.match_substring_regex(beside, "^[0-9]+$")).as_py():
        raise DataError(
            "every confidence is 0 or 1 and followed by digits: these look like decimal commas",
            source=where.source,
            problems=[Problem("confidence may be a decimal", where.locate(np.zeros(1, np.int64))[0], "confidence")],
            hint=f"{COMMA_HINT} If it is not a confidence that is cut, name the columns in a first line.",
        )


def _parse_whole(
    path: Path, layout: Layout, relation: str | None, *, request: Request, spreadsheet_safe: bool
) -> Parsed:
    table = parse_table(path, layout)
    if spreadsheet_safe:
        with _diagnosed(path, layout):
            table = _unescaped(table, layout)
    return Parsed(
        head=table["head"],
        relation=table["relation"] if relation is None else one_relation(relation, len(table), request),
        tail=table["tail"],
        weight=confidence_column(table["confidence"]),
        source=table["source"] if "source" in table.column_names else None,
        besides={role: table[role] for role in BESIDES if role in table.column_names},
        where=where_in(path, layout),
        rows=table.num_rows,
        diagnose=partial(diagnose, path, layout),
    )


def _unescaped(table: pa.Table, layout: Layout) -> pa.Table:
    """Return names without the apostrophe that keeps a spreadsheet from computing them."""
    for at, field in enumerate(layout.fields):
        if field.kind in ("name", "text"):
            names = table.column(at).cast(pa.large_string())
            safe = pc.match_substring_regex(names, SAFE)
            plain = pc.if_else(safe, pc.utf8_slice_codeunits(names, 1), names)
            table = table.set_column(at, field.name, plain)
    return table


def _parse_stream(path: Path, layout: Layout, relation: str | None) -> Parsed:
    with _diagnosed(path, layout):
        parsed = _encode_blocks(path, layout, relation)
    if parsed.vocabularies is not None and any(empty_names(known.names).any() for known in parsed.vocabularies):
        diagnose(path, layout)
        raise DataError("some names are empty", source=str(path), hint=NAME_HINT)
    return parsed


def _encode_blocks(path: Path, layout: Layout, one: str | None) -> Parsed:
    """Return facts by id, block by block; raise `pa.ArrowInvalid` for what cannot be parsed or is no UTF-8.

    Without a column of relations all facts have the `one` that is given.
    """
    expected = expected_rows(path)
    weight: npt.NDArray[np.float64] = unwritten(expected, np.float64)
    texts: dict[str, list[pa.Array]] = {}
    rows = 0
    with BlockEncoder([expected, expected]) as entities, BlockEncoder([expected], parts=1) as relations:
        for block in parse_blocks(path, layout):
            entities.add(0, block["head"])
            entities.add(1, block["tail"])
            if one is None:
                relations.add(0, block["relation"])
            end = rows + len(block)
            if end > len(weight):
                weight = np.concatenate([weight[:rows], np.empty(end, np.float64)])
            weight[rows:end] = block["confidence"].to_numpy()
            rows = end
            for role in ("source", *BESIDES):
                if role in block.schema.names:
                    texts.setdefault(role, []).append(block[role])
        (head, tail), entity_names = entities.finish()
        if one is None:
            (relation,), relation_names = relations.finish()
        else:
            relation, relation_names = np.zeros(rows, np.int32), pa.array([one], pa.large_string())
    return Parsed(
        head=head,
        relation=relation,
        tail=tail,
        weight=weight[:rows],
        source=pa.chunked_array(texts["source"]) if "source" in texts else None,
        besides={role: pa.chunked_array(texts[role]) for role in BESIDES if role in texts},
        where=where_in(path, layout),
        rows=rows,
        vocabularies=(Vocabulary.trusted(entity_names, "entity"), Vocabulary.trusted(relation_names, "relation")),
        diagnose=partial(diagnose, path, layout),
    )


def _opened(path: Path, layout: Layout) -> Any:
    if layout.left_out is not None:
        return layout.left_out.open(path)
    return CountedLines(path) if layout.quoted else open_lines(path)


def _refuse_swallowed(path: Path, layout: Layout, stream: Any, rows: int) -> None:
    """Look closely at records of several lines: the fast parse takes them for one whatever they hold."""
    if isinstance(stream, CountedLines) and stream.more_than(rows + layout.header_lines):
        with open_text(path, newline="") as text:
            if not swallows(text, layout):
                return
        diagnose(path, layout)


def _out_of_quotes(table: Any, layout: Layout) -> Any:
    """Return numbers that were read as text, because some of them are in quotation marks."""
    for at, field in enumerate(layout.fields):
        if field.kind == "number":
            bare = pc.replace_substring_regex(table.column(at), '^[ \t]*"?[ \t]*(.*?)[ \t]*"?[ \t]*$', r"\1")
            table = table.set_column(at, field.name, bare.cast(pa.float64()))
    return table


def _parser(layout: Layout) -> dict[str, Any]:
    known = _ARROW_TYPES | ({"number": pa.string()} if layout.numbers_in_quotes else {})
    types = {str(field.position): known[field.kind] for field in layout.fields}
    return {
        "read_options": pyarrow.csv.ReadOptions(
            column_names=[str(position) for position in range(layout.width)],
            skip_rows=layout.header_lines,
            block_size=_BLOCK,
        ),
        "parse_options": pyarrow.csv.ParseOptions(
            delimiter=layout.delimiter, quote_char='"' if layout.quoted else False, newlines_in_values=layout.quoted
        ),
        "convert_options": pyarrow.csv.ConvertOptions(
            column_types=types, include_columns=list(types), null_values=[], strings_can_be_null=False
        ),
    }


class _NumbersInQuotes(Exception):  # noqa: N818 — it is no error
    """Nothing is wrong with a file without quoting but that numbers may be in quotation marks."""


@contextmanager
def _diagnosed(path: Path, layout: Layout) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowInvalid, OSError, TooLongError) as error:
        diagnose(path, layout)
        if (
            not layout.quoted
            and not layout.numbers_in_quotes
            and any(field.kind == "number" for field in layout.fields)
        ):
            raise _NumbersInQuotes from None
        raise DataError(f"cannot be read: {error}", source=str(path), hint="Check the file's format.") from None


def is_large(path: Path, request: Request) -> bool:
    """Return whether a file is so large that it is read block by block."""
    names_only = request.entities is None and request.relations is None
    return names_only and path.stat().st_size * (1 if compression_of(path) is None else _PACKED) >= LARGE_BYTES


def expected_rows(path: Path) -> int:
    """Return how many rows a file may have, rather too many than too few."""
    with open_lines(path) as stream:
        sample = stream.read(1 << 16)
    lines = sample.count(b"\n") + sample.count(b"\r") + 1
    size = path.stat().st_size * (1 if compression_of(path) is None else _PACKED)
    return int(1.25 * size * lines / max(len(sample), 1))


def _by_name(columns: ColumnMap | None) -> bool:
    return any(isinstance(wanted, str) for wanted in (columns or {}).values())


def _field(role: str, position: int, names: list[str] | None, request: Request) -> Field:
    label = role if names is None or names[position] == role else f"{names[position]} ({role})"
    if role in ("confidence", "label"):
        low, high = (0.0, 1.0) if request.scale is None or role == "label" else (None, None)
        return Field(role, position, "number", label, low, high)
    if role in ("source", *BESIDES):
        return Field(role, position, "text", label)
    vocabulary = request.of(role)
    return Field(role, position, "name" if vocabulary is None else "id", label, vocabulary=vocabulary)


def _wrong_width(path: Path, line: int, cells: list[str], delimiter: str, wanted: Roles) -> DataError:
    text = delimiter.join(cells)
    least = len(wanted.needed) - 1
    other = next((name for name, char in SEPARATORS.items() if char != delimiter and text.count(char) >= least), None)
    hint = f"A line holds {', '.join(wanted.needed)}{' and, if known, the source' if wanted == FACTS else ''}. "
    hint += COLUMNS_HINT
    if other:
        hint = f"The line looks {other}-separated: give ‹delimiter='{other}'›."
    if text.startswith("#"):
        hint = "A line that starts with # is no comment here; remove it."
    if any("\n" in cell or "\r" in cell for cell in cells):
        hint = QUOTE_HINT
    found = f"{len(cells)} column{'s' if len(cells) != 1 else ''} instead of {wanted.widths}"
    return DataError(
        f"line {line} is no fact", source=str(path), problems=[Problem(found, line, None, text)], hint=hint
    )


readers.register("tsv")(Format(read_tsv, (".tsv", ".tab", ".txt")))
readers.register("csv")(Format(read_csv, (".csv",)))
readers.register("nell")(Format(read_nell))
