"""Which column of a table is the head, the relation, the tail, the confidence and the source of a fact."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ukge.errors import ConfigError, DataError
from ukge.graph.vocabulary import Vocabulary

Kind = Literal["name", "id", "number", "text"]
ColumnMap = Mapping[str, str | int | None]

TRIPLE = ("head", "relation", "tail")
REQUIRED = (*TRIPLE, "confidence")
ROLES = (*REQUIRED, "source")

# The names by which columns are recognised, best first; case and surrounding white space do not count.
# `source` is the head beside a column `target`, and says where the fact came from otherwise.
RECOGNISED: Mapping[str, tuple[str, ...]] = {
    "head": ("head", "subject", "subj", "h", "s", "head_entity", "entity1", "node1", "from", "start"),
    "relation": ("relation", "predicate", "rel", "pred", "r", "p", "property", "relationship", "edge_type"),
    "tail": ("tail", "object", "obj", "t", "o", "tail_entity", "entity2", "node2", "to", "end", "target"),
    "confidence": ("confidence", "conf", "score", "weight", "w", "probability", "prob", "certainty"),
    "source": ("source", "provenance", "origin"),
}
COLUMNS_HINT = "Say which column is which with columns={'head': ..., 'confidence': ...}, by header name or position."
HEADER_HINT = "If line 1 is a header, say so with header=True in Python or --header on the command line."


@dataclass(frozen=True)
class Field:
    """One column that is read: what it is called in errors, where it stands, and what it must hold.

    Numbers must lie in [low, high]; ids must be in the vocabulary.
    """

    name: str
    position: int
    kind: Kind
    label: str
    low: float | None = None
    high: float | None = None
    vocabulary: Vocabulary | None = None


@dataclass(frozen=True)
class Layout:
    """How a delimited text file is laid out. `header_lines` counts the lines before the first data line."""

    delimiter: str
    quoted: bool
    width: int
    fields: tuple[Field, ...]
    header_lines: int = 0
    hint: str = ""


def recognise(header: Sequence[str]) -> dict[str, int]:
    """Return the roles of the columns whose names are recognised."""
    names = [name.strip().lower() for name in header]
    found: dict[str, int] = {}
    for role, known in RECOGNISED.items():
        places = [names.index(name) for name in known if name in names]
        if places:
            found[role] = places[0]
    if "head" not in found and {"source", "target"} <= set(names):
        found["head"] = names.index("source")
        found.pop("source")
        others = [names.index(name) for name in RECOGNISED["source"] if name != "source" and name in names]
        found.update({"source": others[0]} if others else {})
    return found


def is_header(cells: Sequence[str]) -> bool:
    """Return whether a first line names its columns: only if all of head, relation, tail and confidence are there.

    No fact is ever taken for a header, because a fact has a number for its confidence and a header has no numbers.
    """
    return all(role in recognise(cells) for role in REQUIRED) and not any(_is_number(cell) for cell in cells)


def assign_roles(
    width: int,
    *,
    header: Sequence[str] | None,
    columns: ColumnMap | None,
    source: str | None,
    line: str = "",
    required: Sequence[str] = REQUIRED,
) -> dict[str, int]:
    """Return the position of every role: as `columns` says, else by recognised name, else by the usual order.

    A source column that `columns` maps to None is left out.
    """
    columns = columns or {}
    for role, wanted in columns.items():
        if role not in ROLES or (wanted is None and role != "source"):
            raise ConfigError(f"columns= cannot map {role!r} to {wanted!r}", hint=f"Roles: {', '.join(ROLES)}.")
    roles = {role: _position(at, width, header, source) for role, at in columns.items() if at is not None}
    if header is not None:
        taken = set(roles.values())
        named = {role: at for role, at in recognise(header).items() if role not in columns and at not in taken}
        roles = {**roles, **named}
    elif not columns and width == len(ROLES):
        roles["source"] = ROLES.index("source")
    for place, role in enumerate(required):
        if role not in roles:
            if place >= width or place in roles.values():
                shown = f"columns {', '.join(header)}" if header is not None else f"{width} columns{line}"
                raise DataError(f"no column for the {role} among {shown}", source=source, hint=COLUMNS_HINT)
            roles[role] = place
    if len(set(roles.values())) < len(roles):
        raise ConfigError(f"two roles share one column: {roles}", hint=COLUMNS_HINT)
    return roles


def edge_attributes(columns: ColumnMap | None) -> dict[str, str]:
    """Return the edge attributes that `columns` names; head and tail are the ends of an edge and cannot be mapped."""
    known = ("relation", "confidence", "source")
    for role, wanted in (columns or {}).items():
        if role not in known or not isinstance(wanted, str):
            raise ConfigError(f"columns= cannot map {role!r} to {wanted!r}", hint=f"Edges have: {', '.join(known)}.")
    return {role: str(wanted) for role, wanted in (columns or {}).items()}


def _position(wanted: str | int, width: int, header: Sequence[str] | None, source: str | None) -> int:
    if isinstance(wanted, int):
        if not 0 <= wanted < width:
            raise DataError(f"there is no column {wanted}", source=source, hint=f"Positions are 0…{width - 1}.")
        return wanted
    names = [] if header is None else list(header)
    if wanted not in names:
        shown = ", ".join(repr(name) for name in names) or "none"
        raise DataError(f"there is no column {wanted!r}", source=source, hint=f"The header names: {shown}.")
    return names.index(wanted)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
