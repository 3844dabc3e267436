"""JSON Lines: one object per fact, or one array [head, relation, tail, confidence(, source)]."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ukge.errors import DataError
from ukge.graph.columns import UTF8_HINT, Findings, Where, as_number
from ukge.graph.fact import TRIPLE
from ukge.graph.files import DAMAGED_HINT, LONGEST, TOO_LONG, TooLongError, damaged, open_text
from ukge.graph.formats import Format, readers
from ukge.graph.readers.diagnosis import not_utf8, raw_text
from ukge.graph.readers.layout import COLUMNS_HINT, FACTS, ColumnMap, Roles, assign_roles
from ukge.graph.readers.parsed import Parsed, Request, one_relation

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
    facts = read_lines(path, request, columns, FACTS.given(relation))
    lines = np.array(facts.lines, np.int64)
    return Parsed(
        head=facts.column("head"),
        relation=facts.column("relation") if relation is None else one_relation(relation, len(lines), request),
        tail=facts.column("tail"),
        weight=facts.numbers("confidence"),
        source=facts.values["source"] if facts.has_source else None,
        where=facts.where,
        rows=facts.rows,
        ignored_columns=tuple(map(str, facts.others)),
    )


def read_lines(path: Path, request: Request, columns: ColumnMap | None, wanted: Roles) -> JsonFacts:
    """Read the lines of a file; whatever is wrong with them is a `DataError`."""
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
        facts.found.add(damaged(path, error), line or None, None, None, DAMAGED_HINT)
    except TooLongError:
        facts.found.add(TOO_LONG, line + 1, None, None, _JSON_HINT)
    facts.found.stop(facts.rows)
    return facts


class JsonFacts:
    """Facts taken line by line, by role, their other keys with the values of each line, and what was wrong."""

    def __init__(self, path: Path, request: Request, columns: ColumnMap | None, wanted: Roles) -> None:
        self.found = Findings(str(path))
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
        if not_utf8([row]):
            self.found.add("not UTF-8 text", line, None, raw_text([row.rstrip("\n")], ""), UTF8_HINT)
            return
        try:
            value = json.loads(row, object_pairs_hook=once)
        except (ValueError, RecursionError) as error:  # of numbers with thousands of digits, too
            self.found.add(f"is not JSON: {error}", line, None, row.strip(), _JSON_HINT)
            return
        if isinstance(value, dict):
            fact = self._of_object(line, value)
        elif isinstance(value, list):
            fact = self._of_array(line, value)
        else:
            self.found.add("is neither an object nor an array", line, None, row.strip(), _JSON_HINT)
            return
        if fact is not None and self._fits(line, fact):
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
        self._keep(line, (key_value for key_value in value.items() if key_value[0] not in keys.values()))
        self.has_source = self.has_source or keys.get("source") in value
        return {role: value.get(key) for role, key in keys.items()}

    def _of_array(self, line: int, value: list[Any]) -> dict[str, Any] | None:
        length = len(value)
        if not self._columns and not self._wanted.fit(length):
            what = f"array of {length} values instead of {self._wanted.widths}"
            self.found.add(what, line, None, json.dumps(value), _JSON_HINT)
            return None
        if length not in self._places:
            try:
                self._places[length] = assign_roles(
                    length, header=None, columns=self._columns, source=None, wanted=self._wanted
                )
            except DataError as error:
                self.found.add(error.what, line, None, json.dumps(value), _JSON_HINT)
                return None
        places = self._places[length]
        self._keep(line, ((at, each) for at, each in enumerate(value) if at not in places.values()))
        self.has_source = self.has_source or "source" in places
        return {role: value[at] for role, at in places.items()}

    def _keep(self, line: int, others: Iterable[tuple[str | int, Any]]) -> None:
        for key, value in others:
            text = json.dumps(value, ensure_ascii=False) if isinstance(value, (dict, list)) else value
            if any(isinstance(each, str) and not _is_text(each) for each in (key, text)):
                self.found.add("value holds half a surrogate pair", line, ascii(key), json.dumps(value), UTF8_HINT)
            self.others.setdefault(key, {})[len(self.lines)] = value

    def _fits(self, line: int, fact: dict[str, Any]) -> bool:
        before = self.found.count
        for role in TRIPLE:
            if role in fact:
                fact[role] = self._name_or_id(line, role, fact[role])
        for role in ("confidence", "label"):
            if role in fact:
                fact[role] = self._number(line, role, fact[role])
        source = fact.get("source")
        if source is not None and not (isinstance(source, str) and _is_text(source)):
            self.found.add("source is not text", line, "source", json.dumps(source), _TEXT_HINT)
        return self.found.count == before

    def _number(self, line: int, role: str, value: Any) -> float:
        number = as_number(value.strip()) if isinstance(value, str) else None
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            number = float(value) if isinstance(value, float) or abs(value) < _HUGE else None
        if number is None:
            self.found.add(f"{role} is not a number", line, role, json.dumps(value), _TEXT_HINT)
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
