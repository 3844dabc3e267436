"""Node data from tables: a row per entity, with its id and whatever is known of it, in columns that have a name.

TSV and CSV have lists as texts with `|` between (`;` in the column :LABEL of Neo4j), JSON Lines and Parquet as lists.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ukge.errors import ConfigError, DataError
from ukge.graph.columns import UTF8_HINT, Where, is_unicode, refuse_rows, single
from ukge.graph.files import DAMAGED_HINT, TOO_LONG, TooLongError, check_file, damaged, extension_of, open_text
from ukge.graph.findings import Findings
from ukge.graph.nodes import ALIASES, COLUMNS, DESCRIPTION, ID, LABEL, TYPES, Nodes
from ukge.graph.readers.diagnosis import not_utf8, raw_text, records
from ukge.graph.readers.frames import arrow_table, checked, is_pandas_frame, is_text, opened_parquet
from ukge.graph.readers.jsonl import once
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.writers.tables import DELIMITER, FORMATS, JSON_LINES, PARQUET

RECOGNISED: Mapping[str, tuple[str, ...]] = {
    ID: ("id", ":id", "node_id", "entity_id", "string_protein_id", "curie", "identifier", "node", "entity", "name"),
    LABEL: ("label", "name", "preferred_name", "symbol", "title"),
    TYPES: ("types", "type", "category", "categories", ":label", "entity_type", "node_type", "class", "kind"),
    DESCRIPTION: ("description", "annotation", "definition", "comment"),
    ALIASES: ("aliases", "alias", "synonyms", "synonym", "exact_synonym", "xrefs", "xref"),
}
"""The names by which columns are recognised, best first; all columns of aliases are read, of the others one."""

_NEO4J = re.compile(
    r"(?P<name>[^:]*):((?P<role>id|label)(\(.*\))?|(int|long|float|double|boolean|byte|short|char|string|date)(\[\])?)"
)
"""How Neo4j types a column: `name:string`, `:LABEL`, `geneId:ID(Gene)`."""
_ID_HINT = (
    "Node data is a table whose first line names its columns: id (as in the facts), and any of label or name, type or "
    "category, description, aliases or synonym; others are kept under their names."
)
_LINE_HINT = 'Each line is an object: {"id": …, "name": …, "category": [...], "description": …}.'


def as_nodes(given: Any) -> Nodes:
    """Return node data for what a caller may give: some, a file, a pandas frame, or an Arrow table."""
    if isinstance(given, Nodes):
        return given
    if isinstance(given, (str, os.PathLike)):
        return read_nodes(Path(given))
    if is_pandas_frame(given):
        table, where = pa.Table.from_pandas(given, preserve_index=False), Where("pandas frame")
    elif isinstance(given, (pa.Table, pa.RecordBatch)) or hasattr(given, "__arrow_c_stream__"):
        table, where = arrow_table(given), Where("Arrow table")
    else:
        raise ConfigError(
            f"‹nodes› cannot be read from an object of type {type(given).__name__}",
            hint="Give the path of a table, a pandas frame, an Arrow table, or `ukge.graph.nodes.Nodes`.",
        )
    return of_table(table, where)


def with_given_nodes(graph: UncertainGraph, nodes: Nodes, source: str) -> UncertainGraph:
    """Return a graph with node data that somebody gave for it, and what it knew itself; none that fits is an error."""
    if not len(nodes.within(graph.entities)):
        shown = [", ".join(map(repr, names[:3].to_pylist())) for names in (nodes.ids, graph.entities.names)]
        raise DataError(
            f"none of its {len(nodes):,} ids is an entity of the graph",
            source=source,
            hint=f"Ids are written as in the facts: the ids begin with {shown[0]}, the entities with {shown[1]}.",
        )
    return graph.with_nodes(nodes.within(graph.entities).joined(graph.nodes))


def read_nodes(path: Path) -> Nodes:
    """Read the node data of a file; whatever is wrong with it is a `DataError` that names the lines."""
    check_file(path)
    extension = extension_of(path)
    if extension in PARQUET:
        with opened_parquet(path) as file:
            return of_table(checked(file.read()), Where(str(path)))
    if extension in JSON_LINES:
        return _of_json_lines(path)
    if extension not in DELIMITER:
        what = f"the extension {extension!r} says no format of node data"
        raise DataError(what, source=str(path), hint=f"Use {FORMATS}.")
    return _of_text(path, DELIMITER[extension], quoted=extension == ".csv")


def of_table(table: pa.Table, where: Where) -> Nodes:
    """Return the node data of typed columns."""
    names = [str(name) for name in table.column_names]
    return of_columns(names, [single(table, at) for at in range(len(names))], where)


def of_columns(header: Sequence[str], values: Sequence[Any], where: Where, *, split: bool = False) -> Nodes:
    """Return the node data of columns under a header; with `split`, texts of types and aliases hold several."""
    roles = node_roles(header, where.source)
    kept: dict[str, Any] = dict.fromkeys(COLUMNS)
    for role, places in roles.items():
        texts = [values[at] for at in places]
        if split and role in (TYPES, ALIASES):
            between = [";" if header[at].strip().lower().endswith(":label") else "|" for at in places]
            texts = [[_parts(cell, by) for cell in column] for column, by in zip(texts, between, strict=True)]
        kept[role] = texts[0] if len(texts) == 1 else _side_by_side(texts)
    taken = {at for places in roles.values() for at in places}
    others: dict[str, Any] = {}
    for at, name in enumerate(header):
        plain = name.strip() or f"column_{at}"
        if at not in taken and not plain.lower().endswith(":ignore"):
            free = f"{plain}_column" if plain in COLUMNS else plain
            if free in others:
                raise DataError(f"two columns are named {plain!r}", source=where.source, hint="Rename one of them.")
            others[free] = values[at]
    ids = _ids(kept.pop(ID), header[roles[ID][0]], where)
    return Nodes.from_columns(ids, **kept, others=others, where=where)


def _ids(values: Any, column: str, where: Where) -> Any:
    """Return ids that are text, or whole numbers, which are names too."""
    if isinstance(values, pa.Array):
        kind = values.type.value_type if pa.types.is_dictionary(values.type) else values.type
        if not (pa.types.is_integer(kind) or is_text(kind)):
            what = f"column {column} must hold names (text or integers), but holds {kind}"
            raise DataError(what, source=where.source, hint="Convert the column.")
        return values
    ids = [str(value) if type(value) is int else value for value in values]
    wrong = np.array([at for at, value in enumerate(ids) if not isinstance(value, str | None)], np.int64)
    refuse_rows(
        f"{len(wrong):,} ids are no names",
        wrong,
        lambda row: ("id is neither text nor an integer", json.dumps(ids[row])),
        column,
        where,
        _LINE_HINT,
    )
    odd = np.array([at for at, value in enumerate(ids) if value is not None and not is_unicode(value)], np.int64)
    told = f"{len(odd):,} ids are no Unicode text"
    refuse_rows(told, odd, lambda row: ("id holds half a surrogate pair", ids[row]), column, where, UTF8_HINT)
    return ids


def node_roles(header: Sequence[str], source: str | None) -> dict[str, list[int]]:
    """Return the places of the columns that say what all node data says, by what they say."""
    plain = [plain_name(name) for name in header]
    roles: dict[str, list[int]] = {}
    taken: set[int] = set()
    for role, known in RECOGNISED.items():
        places = [at for name in known for at, own in enumerate(plain) if own == name and at not in taken]
        if places:
            roles[role] = places if role == ALIASES else places[:1]
            taken.update(roles[role])
    if ID not in roles:
        shown = ", ".join(name.strip() for name in header[:10])
        raise DataError(f"no column of ids among {shown}", source=source, hint=_ID_HINT)
    twice = [header[at] for role, places in roles.items() for at in places if plain.count(plain[at]) > 1]
    if twice:
        raise DataError(f"two columns are named {twice[0].strip()!r}", source=source, hint="Rename one of them.")
    return roles


def plain_name(name: str) -> str:
    """Return what a column is called: without the # of a first line, and without the type that Neo4j adds."""
    plain = name.strip().lstrip("#").strip().lower()
    typed = _NEO4J.fullmatch(plain)
    if typed is None:
        return plain
    return f":{typed['role']}" if typed["role"] else typed["name"]


def _of_text(path: Path, delimiter: str, *, quoted: bool) -> Nodes:
    found = Findings(str(path))
    header: list[str] = []
    rows: list[list[str]] = []
    lines: list[int] = []
    for line, cells in records(path, delimiter, quoted=quoted, strict=True):
        if not_utf8(cells):
            found.add("not UTF-8 text", line, None, raw_text(cells, delimiter), UTF8_HINT)
        elif not header:
            header = cells
            node_roles(header, str(path))
        elif len(cells) != len(header):
            what = f"{len(cells)} column{'s' if len(cells) != 1 else ''} instead of {len(header)}"
            found.add(what, line, None, delimiter.join(cells), "Every line must have the columns that the first names.")
        else:
            rows.append(cells)
            lines.append(line)
    found.stop(len(rows) + found.count)
    if not rows:
        raise DataError("no nodes", source=str(path), hint=_ID_HINT)
    columns = [list(column) for column in zip(*rows, strict=True)]
    return of_columns(header, columns, _lines(path, lines), split=True)


def _of_json_lines(path: Path) -> Nodes:
    found = Findings(str(path))
    rows: list[dict[str, Any]] = []
    lines: list[int] = []
    line = 0
    try:
        with open_text(path) as text:
            for line, row in enumerate(text, start=1):
                value = _object(row, line, found) if row.strip() else None
                if value is not None:
                    rows.append(value)
                    lines.append(line)
    except OSError as error:
        found.add(damaged(path, error), line or None, None, None, DAMAGED_HINT)
    except TooLongError:
        found.add(TOO_LONG, line + 1, None, None, _LINE_HINT)
    found.stop(len(rows) + found.count)
    if not rows:
        raise DataError("no nodes", source=str(path), hint=_LINE_HINT)
    header = list(dict.fromkeys(name for row in rows for name in row))
    return of_columns(header, [[row.get(name) for row in rows] for name in header], _lines(path, lines))


def _object(row: str, line: int, found: Findings) -> dict[str, Any] | None:
    if not_utf8([row]):
        found.add("not UTF-8 text", line, None, raw_text([row.rstrip("\n")], ""), UTF8_HINT)
        return None
    try:
        value = json.loads(row, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        found.add(f"is not JSON: {error}", line, None, row.strip(), _LINE_HINT)
        return None
    if not isinstance(value, dict):
        found.add("is no object", line, None, row.strip(), _LINE_HINT)
        return None
    odd = next((name for name in value if not is_unicode(name)), None)
    if odd is not None:
        found.add("key holds half a surrogate pair", line, ascii(odd), None, UTF8_HINT)
        return None
    return value


def _lines(path: Path, lines: list[int]) -> Where:
    at = np.array(lines, np.int64)
    return Where(str(path), "line", lambda rows: at[rows].tolist())


def _parts(cell: Any, between: str) -> list[str]:
    return [] if cell is None else str(cell).split(between)


def _side_by_side(columns: Sequence[Any]) -> list[list[str]]:
    """Return one column of lists that holds what stands in several."""
    rows = [column.to_pylist() if isinstance(column, pa.Array) else column for column in columns]
    return [
        [part for value in row if value is not None for part in (value if isinstance(value, list) else [value])]
        for row in zip(*rows, strict=True)
    ]
