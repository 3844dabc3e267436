"""JSON Lines: one object per fact, or one array [head, relation, tail, confidence(, source)]."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ukge.errors import DataError
from ukge.graph.columns import UTF8_HINT, Where, as_number
from ukge.graph.fact import TRIPLE
from ukge.graph.files import DAMAGED_HINT, LONGEST, TOO_LONG, TooLongError, damaged, open_text
from ukge.graph.formats import Format, readers
from ukge.graph.readers.diagnosis import not_utf8, raw_text
from ukge.graph.readers.layout import BESIDES, COLUMNS_HINT, ColumnMap, Roles, assign_roles, percent_hint
from ukge.graph.readers.parsed import Parsed, Request, one_relation
from ukge.graph.writers.tables import json_text

_JSON_HINT = (
    'Each line is {"head": …, "relation": …, "tail": …, "confidence": …} or [head, relation, tail, confidence].'
)
_HUGE = 10**300
_TEXT_HINT = "Names are JSON strings; confidences are numbers."


def read_jsonl(
    path: Path, request: Request, *, columns: ColumnMap | None = None, relation: str | None = None
) -> Parsed:
    """Read one fact per line. `columns` names the keys of objects, or the positions in arrays.

    All facts have the one given `relation` if none of the keys says it.
    """
    facts = read_lines(path, request, columns, request.wanted.given(relation))
    lines = np.array(facts.lines, np.int64)
    return Parsed(
        head=facts.column("head"),
        relation=facts.column("relation") if relation is None else one_relation(relation, len(lines), request),
        tail=facts.column("tail"),
        weight=facts.numbers("confidence"),
        source=facts.values["source"] if facts.has_source else None,
        besides={role: _column(facts.values[role]) for role in BESIDES if any(facts.values.get(role, ()))},
        where=facts.where,
        rows=len(lines),
        found=facts.found,
        ignored_columns=tuple(map(str, facts.others)),
    )


def _column(values: list[Any]) -> pa.Array:
    """Return values of any kind as one column: numbers, or text, with JSON for what is neither."""
    if all(value is None or type(value) in (int, float) for value in values):
        with suppress(pa.ArrowInvalid, OverflowError):
            return pa.array(values)
    return pa.array([None if value is None else json_text(value) for value in values], pa.large_string())


def read_lines(path: Path, request: Request, columns: ColumnMap | None, wanted: Roles) -> JsonFacts:
    """Read the lines of a file; its findings tell of those that are left out."""
    facts = JsonFacts(path, request, columns, wanted)
    line = last = 0
    try:
        with open_text(path) as text:
            for line, row in enumerate(text, start=1):
                if row.strip():
                    last = line
                    facts.take(line, row)
                elif line - last > LONGEST:
                    raise TooLongError
    except OSError as error:
        facts.found.give_up(damaged(path, error), line or None, DAMAGED_HINT, facts.rows)
    except TooLongError:
        facts.found.give_up(TOO_LONG, line + 1, _JSON_HINT, facts.rows)
    facts.found.checked = facts.rows
    return facts


class JsonFacts:
    """Facts taken line by line, by role, their other keys with the values of each line, and what was wrong."""

    def __init__(self, path: Path, request: Request, columns: ColumnMap | None, wanted: Roles) -> None:
        self.found = request.findings(str(path))
        self.rows = 0
        self.values: dict[str, list[Any]] = {role: [] for role in wanted.all}
        self.others: dict[str | int, dict[int, Any]] = {}
        self.lines: list[int] = []
        self.has_source = False
        self._request = request
        self._columns = columns
        self._wanted = wanted
        self._keys: dict[str, str] | None = None
        self._places: dict[int, dict[str, int]] = {}

    @property
    def where(self) -> Where:
        """What turns facts into their lines."""
        lines = np.array(self.lines, np.int64)
        return Where(self.found.source, "line", lambda rows: lines[rows].tolist())

    def column(self, role: str) -> Any:
        """Return names or, where a vocabulary is given, ids."""
        values = self.values[role]
        return values if self._request.of(role) is None else np.array(values, np.int64)

    def numbers(self, role: str) -> npt.NDArray[np.float64]:
        """Return the numbers of a role."""
        return np.array(self.values[role], np.float64)

    def take(self, line: int, row: str) -> None:
        """Take a line."""
        self.rows += 1
        self.found.row = row.strip()
        if not_utf8([row]):
            self.found.add("not UTF-8 text", line, None, raw_text([row.rstrip("\n")], ""), UTF8_HINT)
            return
        try:
            value = json.loads(row, object_pairs_hook=once)
        except (ValueError, RecursionError) as error:  # of numbers with thousands of digits, too
            self.found.add(f"is not JSON: {error}", line, None, row.strip(), _JSON_HINT, kind="is not JSON")
            return
        before = self.found.count
        if isinstance(value, dict):
            fact = self._of_object(line, value)
        elif isinstance(value, list):
            fact = self._of_array(line, value)
        else:
            self.found.add("is neither an object nor an array", line, None, row.strip(), _JSON_HINT)
            return
        if fact is None:
            return
        self._check(line, fact)
        others = list(self._others(line, value))
        if self.found.count == before:
            for key, each in others:
                self.others.setdefault(key, {})[len(self.lines)] = each
            self.has_source = self.has_source or "source" in fact
            self.lines.append(line)
            for role in self._wanted.all:
                self.values[role].append(fact.get(role))

    def _of_object(self, line: int, value: Mapping[str, Any]) -> dict[str, Any] | None:
        if self._keys is None:
            names = list(value)
            try:
                roles = assign_roles(0, header=names, columns=self._columns, source=None, wanted=self._wanted)
            except DataError as error:
                self.found.add(error.what, line, None, None, COLUMNS_HINT)
                return None
            self._keys = {role: names[at] for role, at in roles.items()}
        keys = self._keys
        given = self._columns or {}
        for role in self._wanted.optional:
            wanted = keys.get(role, role)
            spelt = [key for key in value if key.strip().lower() == wanted.strip().lower()]
            if role not in keys and role not in given and spelt and spelt[0] not in keys.values():
                keys[role] = wanted = spelt[0]
            if role in keys and (role not in given or wanted not in value):
                for other in spelt:
                    if other != wanted:
                        what = f"key {other!r} where other lines have {wanted!r}"
                        self.found.add(what, line, other, None, _JSON_HINT)
        missing = [keys[role] for role in self._wanted.needed if keys[role] not in value]
        for key in missing:
            self.found.add(f"key {key!r} is missing", line, key, None, _JSON_HINT)
        if missing:
            return None
        return {role: value.get(key) for role, key in keys.items()}

    def _of_array(self, line: int, value: list[Any]) -> dict[str, Any] | None:
        length = len(value)
        if not self._columns and not self._wanted.fit(length):
            what = f"array of {length} values instead of {self._wanted.widths}"
            self.found.add(what, line, None, json.dumps(value), _JSON_HINT, kind="array of the wrong length")
            return None
        if length not in self._places:
            try:
                self._places[length] = assign_roles(
                    length, header=None, columns=self._columns, source=None, wanted=self._wanted
                )
            except DataError as error:
                self.found.add(error.what, line, None, json.dumps(value), _JSON_HINT)
                return None
        return {role: value[at] for role, at in self._places[length].items()}

    def _others(self, line: int, value: Any) -> Iterator[tuple[str | int, Any]]:
        """Yield what a line holds beside its fact, by key or by place."""
        named = isinstance(value, dict)
        taken = (self._keys or {}).values() if named else self._places[len(value)].values()
        for key, each in value.items() if named else enumerate(value):
            if key in taken:
                continue
            text = json.dumps(each, ensure_ascii=False) if isinstance(each, (dict, list)) else each
            if any(isinstance(part, str) and not _is_text(part) for part in (key, text)):
                self.found.add("value holds half a surrogate pair", line, ascii(key), json.dumps(each), UTF8_HINT)
            yield key, each

    def _check(self, line: int, fact: dict[str, Any]) -> None:
        for role in TRIPLE:
            if role in fact:
                fact[role] = self._name_or_id(line, role, fact[role])
        for role in ("confidence", "label"):
            if role in fact:
                fact[role] = self._number(line, role, fact[role])
        source = fact.get("source")
        if source is not None and not (isinstance(source, str) and _is_text(source)):
            self.found.add("source is not text", line, "source", json.dumps(source), _TEXT_HINT)

    def _number(self, line: int, role: str, value: Any) -> float:
        number = as_number(value.strip()) if isinstance(value, str) else None
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            number = float(value) if isinstance(value, float) or abs(value) < _HUGE else None
        if number is None:
            hints = percent_hint(value) if isinstance(value, str) else []
            self.found.add(f"{role} is not a number", line, role, json.dumps(value), _TEXT_HINT, *hints)
        return number or 0.0

    def _name_or_id(self, line: int, role: str, value: Any) -> Any:
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        if self._request.of(role) is not None:
            if is_integer and abs(value) < 1 << 62:
                return value
            self.found.add(f"{role} is no integer id", line, role, json.dumps(value), "With a vocabulary, give ids.")
        elif is_integer:
            return str(value)
        elif not isinstance(value, str):
            self.found.add(f"{role} is not text", line, role, json.dumps(value), _TEXT_HINT)
        elif not _is_text(value):
            self.found.add(f"{role} holds half a surrogate pair", line, role, json.dumps(value), UTF8_HINT)
        return value


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of which every key stands once; JSON's own rule, the last one counts, would hide the others."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} stands twice")
    return found


def _is_text(value: str) -> bool:
    return value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)


readers.register("jsonl")(Format(read_jsonl, (".jsonl", ".ndjson")))
