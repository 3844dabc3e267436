"""Which column of a table is the head, the relation, the tail, the confidence and the source of a fact."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ukge.errors import ConfigError, DataError
from ukge.graph.columns import as_number
from ukge.graph.fact import REQUIRED
from ukge.graph.readers.left_out import LeftOut
from ukge.graph.vocabulary import Vocabulary

Kind = Literal["name", "id", "number", "text"]
ColumnMap = Mapping[str, str | int | None]


# The names by which columns are recognised, best first; case and surrounding white space do not count.
# `source` is the head beside a column `target`, and says where the fact came from otherwise.
RECOGNISED: Mapping[str, tuple[str, ...]] = {
    "head": ("head", "subject", "subj", "h", "s", "head_entity", "entity1", "node1", "from", "start"),
    "relation": ("relation", "predicate", "rel", "pred", "r", "p", "property", "relationship", "edge_type"),
    "tail": ("tail", "object", "obj", "t", "o", "tail_entity", "entity2", "node2", "to", "end", "target"),
    "confidence": ("confidence", "conf", "score", "weight", "w", "probability", "prob", "certainty"),
    "source": ("source", "provenance", "origin", "extractor", "annotator", "model"),
    "label": ("label", "truth"),
    "time": ("time", "date", "timestamp"),
    "document": ("document", "doc", "url", "file"),
    "span": ("span", "offset"),
}
COLUMNS_HINT = (
    "Say which column is which, by header name or position from 0: ‹columns={'head': 0, 'confidence': 'score'}›. "
    "A table without relations needs one for all its facts: ‹relation=NAME›."
)
PERCENT_HINT = "Confidences are shares of one: write 0.9 for 90 %."
COMMA_HINT = "Numbers have a decimal point: write 0.85, not 0,85."
_SAYABLE = re.compile("[^\\W\\d][^,=›\\\\]{0,59}")
"""The names that columns can be asked for by, in Python and in a shell."""
HEADER_HINT = "If line 1 is a header, say so: ‹header=True›."


@dataclass(frozen=True)
class Roles:
    """What a table is read for: the columns that it must have, in their usual order, and those that it may have.

    With `more`, any number of further columns may come after them, even where no header names them.
    """

    needed: tuple[str, ...] = REQUIRED
    optional: tuple[str, ...] = ("source",)
    more: bool = False

    @property
    def all(self) -> tuple[str, ...]:
        """All roles, in their usual order."""
        return (*self.needed, *self.optional)

    def given(self, relation: str | None) -> Roles:
        """Return the roles that are left for columns if all facts have the one given relation."""
        if relation is None:
            return self
        if not relation.strip():
            raise ConfigError(f"{relation!r} is no name of a relation", hint="Give a name: ‹relation='interacts'›.")
        return replace(self, needed=tuple(role for role in self.needed if role != "relation"))

    def fit(self, width: int) -> bool:
        """Return whether a table of so many columns without names may be read in the usual order."""
        return len(self.needed) <= width and (self.more or width <= len(self.all))

    @property
    def widths(self) -> str:
        """How many columns a table without names has."""
        least = len(self.needed)
        most = len(self.all)
        between = " or " if most == least + 1 else " to "
        return f"{least} or more" if self.more else f"{least}{between}{most}" if self.optional else str(least)


FACTS = Roles()
BESIDES = ("time", "document", "span")
"""What a claim may tell beside its fact, its source and its confidence."""
CLAIMS = Roles(optional=("source", *BESIDES))


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
    decimal_comma: bool = False
    """whether the first line would be a fact with a decimal comma if no column were the source"""
    left_out: LeftOut | None = None
    """lines that no fact can be read from"""
    numbers_in_quotes: bool = False
    """whether some numbers are in quotation marks, in a file that has no quoting"""


def percent_hint(text: str) -> list[str]:
    """Return what to do about a text that is no number, if it is a percentage."""
    return [PERCENT_HINT] if text.endswith("%") and as_number(text[:-1].strip()) is not None else []


def header_hint(cells: Sequence[str], fields: Sequence[Field]) -> str:
    """Return what to do if a first line, which is no fact, names the columns: the very words to give."""
    columns = {field.name: cells[field.position].strip() for field in fields}
    names = list(columns.values())
    if all(_SAYABLE.fullmatch(name) and as_number(name) is None for name in names) and len({*names}) == len(names):
        return f"If line 1 names the columns, say which is which: ‹columns={columns!r}›."
    return HEADER_HINT


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


def is_header(cells: Sequence[str], wanted: Roles = FACTS) -> bool:
    """Return whether a first line names its columns: only if all that are needed are there, and none is a number.

    No fact is ever taken for a header, because a fact has a number for its confidence and a header has no numbers.
    """
    found = recognise(cells)
    numbers = [cell for cell in cells if as_number(cell.strip()) is not None]
    return all(role in found for role in wanted.needed) and not numbers


def assign_roles(
    width: int,
    *,
    header: Sequence[str] | None,
    columns: ColumnMap | None,
    source: str | None,
    line: str = "",
    wanted: Roles = FACTS,
) -> dict[str, int]:
    """Return the position of every role: as `columns` says, else by recognised name, else by the usual order.

    A source column that `columns` maps to None is left out.
    """
    columns = columns or {}
    for role, at in columns.items():
        if role == "relation" and role not in wanted.all:
            raise ConfigError(
                f"‹columns› names a column of relations ({at!r}), and ‹relation› gives all facts the same one",
                hint="Leave out one of the two.",
            )
        if role not in wanted.all or (at is None and role != "source"):
            raise ConfigError(f"‹columns› cannot map {role!r} to {at!r}", hint=f"Roles: {', '.join(wanted.all)}.")
    roles = {role: _position(at, width, header, source) for role, at in columns.items() if at is not None}
    if header is not None:
        taken = {*roles.values()}
        named = {role: at for role, at in recognise(header).items() if role in wanted.all and role not in columns}
        roles = {**roles, **{role: at for role, at in named.items() if at not in taken}}
        found = [header[at] for role, at in roles.items() if not isinstance(columns.get(role), int)]
        _refuse_repeated(found, header, source)
    elif not columns and width <= len(wanted.all):
        roles = {role: at for at, role in enumerate(wanted.all[:width])}
    for place, role in enumerate(wanted.needed):
        if role not in roles:
            if place >= width or place in roles.values():
                shown = f"columns {', '.join(header)}" if header is not None else f"{width} columns{line}"
                raise DataError(f"no column for the {role} among {shown}", source=source, hint=COLUMNS_HINT)
            roles[role] = place
    if len(set(roles.values())) < len(roles):
        file = "" if source is None else f"{source}: "
        raise ConfigError(f"{file}two roles share one column: {roles}", hint=COLUMNS_HINT)
    return roles


def _refuse_repeated(used: Sequence[str], header: Sequence[str], source: str | None) -> None:
    """Refuse a column of facts whose name another one has too: nobody could say which is meant."""
    names = [name.strip().lower() for name in header]
    for name in used:
        if names.count(name.strip().lower()) > 1:
            what = f"two columns are named {name.strip()!r}"
            raise DataError(
                what, source=source, hint="Rename one of them, or say the positions: ‹columns={'head': 0}›."
            )


def edge_attributes(columns: ColumnMap | None) -> dict[str, str]:
    """Return the edge attributes that `columns` names; head and tail are the ends of an edge and cannot be mapped."""
    known = ("relation", "confidence", "source")
    for role, wanted in (columns or {}).items():
        if role not in known or not isinstance(wanted, str):
            raise ConfigError(f"‹columns› cannot map {role!r} to {wanted!r}", hint=f"Edges have: {', '.join(known)}.")
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
