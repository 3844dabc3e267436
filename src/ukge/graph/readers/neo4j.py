"""Neo4j's import CSV: relationships with :START_ID, :END_ID and :TYPE, and files of nodes with :ID beside them.

:START_ID(Gene),:END_ID(Disease),:TYPE,confidence:float
7157,DOID:3012,ASSOCIATED_WITH,0.91
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from ukge.errors import DataError
from ukge.graph.formats import Format, readers
from ukge.graph.nodes import Nodes
from ukge.graph.opening import Opening
from ukge.graph.readers.diagnosis import first_record
from ukge.graph.readers.layout import RECOGNISED, ColumnMap
from ukge.graph.readers.node_files import read_nodes
from ukge.graph.readers.parsed import Parsed, Request, one_relation
from ukge.graph.readers.text_tables import Header, Slot, made_facts, read_text_table

_START, _END, _TYPE = ":START_ID", ":END_ID", ":TYPE"
_TABLES = (".csv", ".tsv", ".tab", ".txt")
_MOST_FILES = 200
_HINT = "Relationships of Neo4j have a first line with :START_ID, :END_ID, :TYPE and a column such as confidence:float."


def read_neo4j(
    path: Path,
    request: Request,
    *,
    columns: ColumnMap | None = None,
    relation: str | None = None,
    default_confidence: float | None = None,
) -> Parsed:
    """Read relationships as facts, and what the files of nodes beside say of entities.

    The confidence is in the property that is called like one, or that `columns={"confidence": NAME}` names, with or
    without its type. All facts have the given `relation` if no column :TYPE says it. Ids of groups must not overlap.
    """
    delimiter = _delimiter(Opening(path))
    line, cells = first_record(path, delimiter, quoted=True)
    names = tuple(cell.strip() for cell in cells)
    kinds = {_kind(name): name for name in reversed(names)}
    if relation is not None:
        kinds.pop(_TYPE, None)
    missing = [kind for kind in (_START, _END, *([_TYPE] if relation is None else [])) if kind not in kinds]
    if missing:
        hint = f"{_HINT} Without types, give all facts one relation: ‹relation=NAME›."
        raise DataError(f"the header has no column {', '.join(missing)}", source=str(path), hint=hint)
    slot = _slot(names, columns, path)
    if slot is None and default_confidence is None:
        shown = ", ".join(name for name in names if not name.startswith(":")) or "none"
        hint = "Name the property, ‹columns={'confidence': NAME}›, or give all facts one: ‹default_confidence=0.8›."
        raise DataError(f"no property is called like a confidence: there is {shown}", source=str(path), hint=hint)
    wanted = [name for name in names if name in (*(kinds.get(each) for each in (_START, _END, _TYPE)), slot)]
    table = read_text_table(path, request, Header(names, line, delimiter, quoted=True, hint=_HINT), wanted)
    facts = {"head": table.columns[kinds[_START]], "tail": table.columns[kinds[_END]]}
    facts["relation"] = table.columns[kinds[_TYPE]] if relation is None else one_relation(relation, table.rows, request)
    slots = [] if slot is None else [Slot(slot)]
    return made_facts(table, request, facts, slots, default=default_confidence, nodes=_nodes(path))


def is_neo4j(opening: Opening) -> bool:
    """Return whether a file begins like relationships of Neo4j."""
    return opening.extension in _TABLES and {_START, _END} <= _kinds(opening)


def _kinds(opening: Opening) -> set[str]:
    return {_kind(cell.strip('" ')) for cell in opening.cells(_delimiter(opening))}


def _kind(name: str) -> str:
    """Return what a column is for, without the group of its ids and the name that it has beside."""
    found = re.search(r":(START_ID|END_ID|TYPE|ID)(\(.*\))?$", name.strip(), re.IGNORECASE)
    return f":{found[1].upper()}" if found else name


def _delimiter(opening: Opening) -> str:
    first = opening.lines[0] if opening.lines else ""
    return max("\t;,", key=first.count) if first else ","


def _slot(names: tuple[str, ...], columns: ColumnMap | None, path: Path) -> str | None:
    """Return the property of confidences; `columns` may leave out its type."""
    plain = {name.partition(":")[0].strip().lower(): name for name in reversed(names) if not name.startswith(":")}
    wanted = (columns or {}).get("confidence")
    if isinstance(wanted, int) or wanted in names:
        return names[wanted] if isinstance(wanted, int) and 0 <= wanted < len(names) else str(wanted)
    if wanted is not None:
        if wanted.lower() not in plain:
            raise DataError(f"there is no column {wanted!r}", source=str(path), hint=f"It has: {', '.join(names)}.")
        return plain[wanted.lower()]
    return next((plain[name] for name in RECOGNISED["confidence"] if name in plain), None)


def _nodes(path: Path) -> Nodes | None:
    """Return what the files of nodes beside one of relationships say: all tables whose header has :ID."""
    found = Nodes.none()
    entries = sorted(entry.name for entry in os.scandir(path.parent) if entry.is_file())[:_MOST_FILES]
    for name in entries:
        other = Opening(path.parent / name)
        if other.path != path and other.extension in _TABLES and ":ID" in _kinds(other):
            found = found.joined(read_nodes(other.path))
    return found if len(found) else None


readers.register("neo4j")(Format(read_neo4j, by_id=False, recognise=is_neo4j))
