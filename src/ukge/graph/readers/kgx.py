"""KGX, the exchange format of Biolink's knowledge graphs: edges as TSV or JSON Lines, with the nodes file beside them.

    subject             predicate             object          …   has_confidence_score
    NCBIGene:7157       biolink:related_to    MONDO:0004992   …   0.93

A confidence sits in one of several slots, each with its own range; a merged graph has several of them. Edges without
any are no facts of an uncertain graph, unless they are given one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from ukge.errors import ConfigError, DataError
from ukge.graph.formats import Format, readers
from ukge.graph.nodes import Nodes
from ukge.graph.opening import Opening
from ukge.graph.readers.beside import beside
from ukge.graph.readers.diagnosis import first_record
from ukge.graph.readers.jsonl import JsonFacts, once, read_lines
from ukge.graph.readers.layout import RECOGNISED, ColumnMap, Roles
from ukge.graph.readers.node_files import read_nodes
from ukge.graph.readers.parsed import Parsed, Request
from ukge.graph.readers.text_tables import Header, Slot, TextTable, column_of, made_facts, read_text_table

SLOTS = (
    Slot("has_confidence_score"),
    Slot("extraction_confidence_score"),
    Slot("intact_confidence_value"),
    Slot("stringdb_combined_score", 1000.0),
    Slot("diseases_confidence_score", 5.0),
)
"""Biolink's slots of confidence, the most general first, with the number of a certain fact."""

SOURCE = "primary_knowledge_source"
_EDGE = ("subject", "predicate", "object")
_TELLING = {SOURCE, "knowledge_level", "agent_type", "provided_by", "knowledge_source", *(slot.name for slot in SLOTS)}
_LISTED = ", ".join(slot.name for slot in SLOTS)
_EDGES_HINT = "Edges of KGX have subject, predicate and object."
_NODES_HINT = "These are nodes: name the file of edges beside it, or give them with it, ‹nodes=FILE›."
_HINT = "Every line of KGX has the columns that the first one names."


def read_kgx(
    path: Path,
    request: Request,
    *,
    columns: ColumnMap | None = None,
    default_confidence: float | None = None,
) -> Parsed:
    """Read the edges of a KGX graph, TSV or JSON Lines, as facts.

    The confidence is in Biolink's slots (combined scores of STRING are of 1000, stars of DISEASES of 5), or in the one
    that `columns={"confidence": NAME}` names. Edges without any are skipped and counted, unless `default_confidence` is
    given. Node data is in the file beside, `x_nodes.tsv` for `x_edges.tsv` and for `x.tsv`.
    """
    if default_confidence is not None and not 0.0 <= default_confidence <= 1.0:
        raise ConfigError(f"‹default_confidence› is {default_confidence:g}", hint="Give a number from 0 to 1.")
    nodes = _nodes(path)
    if _is_json(Opening(path)):
        table, header = _of_lines(path, request)
    else:
        line, cells = first_record(path, "\t", quoted=False)
        header = tuple(cell.strip() for cell in cells)
        missing = [name for name in _EDGE if name not in header]
        if missing:
            what = f"the header has no column {', '.join(missing)}"
            raise DataError(what, source=str(path), hint=_NODES_HINT if "category" in header else _EDGES_HINT)
        chosen = column_of(columns, header, path)
        wanted = [name for name in header if name in (*_EDGE, SOURCE, chosen, *map(_name_of, _slots(header, chosen)))]
        table = read_text_table(path, request, Header(header, line, hint=_HINT), wanted)
    chosen = column_of(columns, header, path)
    slots = _slots(header, chosen)
    if not slots and default_confidence is None:
        raise DataError(
            f"no column of confidences among {', '.join(header[:12])}",
            source=str(path),
            hint=f"Known are {_LISTED}, confidence, score; name another, ‹columns={{'confidence': NAME}}›, or give all "
            "edges one: ‹default_confidence=0.5›.",
        )
    names = dict(zip(("head", "relation", "tail"), (table.columns[name] for name in _EDGE), strict=True))
    if SOURCE in table.columns:
        names["source"] = table.columns[SOURCE]
    return made_facts(table, request, names, slots, default=default_confidence, nodes=nodes)


def is_kgx(opening: Opening) -> bool:
    """Return whether a file begins like edges of KGX: subject, predicate, object, and a slot of Biolink's edges.

    Nodes begin otherwise, and are told apart when they are read.
    """
    if opening.extension in (".tsv", ".tab", ".txt"):
        names = set(opening.cells())
        nodes = {"id", "category"} <= names and not names & {"subject", "head"}
        return nodes or (set(_EDGE) <= names and bool(names & _TELLING))
    return opening.extension in (".jsonl", ".ndjson") and _is_json(opening)


def _is_json(opening: Opening) -> bool:
    if not opening.text.lstrip().startswith("{"):
        return False
    try:
        first = json.loads(opening.lines[0], object_pairs_hook=once)
    except (ValueError, RecursionError):
        return False
    return set(_EDGE) <= set(first) and bool(set(first) & _TELLING)


def _slots(header: tuple[str, ...], chosen: str | None) -> list[Slot]:
    """Return the slots that a header has: the chosen one, else Biolink's, else a column that is called like one."""
    known = {slot.name: slot for slot in SLOTS}
    if chosen is not None:
        return [known.get(chosen, Slot(chosen))]
    found = [slot for slot in SLOTS if slot.name in header]
    others = [Slot(name) for name in RECOGNISED["confidence"] if name in header]
    return found or others[:1]


def _name_of(slot: Slot) -> str:
    return slot.name


def _of_lines(path: Path, request: Request) -> tuple[TextTable, tuple[str, ...]]:
    """Return the edges of JSON Lines, and their keys."""
    roles: Mapping[str, str] = dict(zip(("head", "relation", "tail"), _EDGE, strict=True))
    facts = read_lines(path, request, roles, Roles(optional=(), needed=("head", "relation", "tail")))
    keys = tuple(str(key) for key in facts.others)
    columns = {name: pa.array(facts.values[role], pa.large_string()) for role, name in roles.items()}
    for key in keys:
        columns[key] = _texts(facts, key)
    return TextTable(columns, facts.where, facts.found, len(facts.lines)), (*_EDGE, *keys)


def _texts(facts: JsonFacts, key: str) -> pa.Array:
    """Return the values of a key as text; what is neither text nor a number is shown as JSON."""
    values = facts.others[key]
    found: list[str | None] = [None] * len(facts.lines)
    for row, value in values.items():
        if value is not None and row < len(found):
            found[row] = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return pa.array(found, pa.large_string())


def _nodes(path: Path) -> Nodes | None:
    stem, dot, rest = path.name.partition(".")
    own = path.with_name(f"{stem}_nodes{dot}{rest}")
    file = beside(path, "edge", "node") or (own if own.is_file() else None)
    return None if file is None else read_nodes(file)


readers.register("kgx")(Format(read_kgx, by_id=False, recognise=is_kgx))
