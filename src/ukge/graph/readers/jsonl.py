"""JSON Lines: one object per fact, or one array [head, relation, tail, confidence(, source)]."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ukge.errors import DataError
from ukge.graph.checks import UTF8_HINT, Where
from ukge.graph.files import DAMAGED_HINT, damaged, open_text
from ukge.graph.formats import Format
from ukge.graph.readers.findings import Findings
from ukge.graph.readers.formats import readers
from ukge.graph.readers.layout import COLUMNS_HINT, REQUIRED, ROLES, ColumnMap, assign_roles
from ukge.graph.readers.parsed import Parsed, Request
from ukge.graph.readers.records import not_utf8, raw_text

_JSON_HINT = (
    'Each line is {"head": …, "relation": …, "tail": …, "confidence": …} or [head, relation, tail, confidence].'
)
_TEXT_HINT = "Names are JSON strings; confidences are JSON numbers."


def read_jsonl(path: Path, request: Request, *, columns: ColumnMap | None = None) -> Parsed:
    """Read one fact per line. `columns` names the keys of objects, or the positions in arrays."""
    facts = _Facts(path, request, columns)
    line = 0
    try:
        with open_text(path) as text:
            for line, row in enumerate(text, start=1):
                if row.strip():
                    facts.take(line, row)
    except OSError as error:
        facts.found.add(damaged(path, error), line or None, None, None, DAMAGED_HINT)
    facts.found.stop(facts.rows)
    return facts.parsed()


class _Facts:
    """Facts taken line by line, and what was wrong with the others."""

    def __init__(self, path: Path, request: Request, columns: ColumnMap | None) -> None:
        self.found = Findings(str(path))
        self.rows = 0
        self._path = path
        self._request = request
        self._columns = columns
        self._values: dict[str, list[Any]] = {role: [] for role in ROLES}
        self._lines: list[int] = []
        self._keys: dict[str, str] | None = None
        self._places: dict[int, dict[str, int]] = {}
        self._ignored: dict[str, None] = {}
        self._has_source = False

    def take(self, line: int, row: str) -> None:
        self.rows += 1
        if not_utf8([row]):
            self.found.add("not UTF-8 text", line, None, raw_text([row.rstrip("\n")], ""), UTF8_HINT)
            return
        try:
            value = json.loads(row)
        except (json.JSONDecodeError, RecursionError) as error:
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
            self._lines.append(line)
            for role in ROLES:
                self._values[role].append(fact.get(role))

    def parsed(self) -> Parsed:
        lines = np.array(self._lines, np.int64)
        values = self._values
        return Parsed(
            head=self._column("head"),
            relation=self._column("relation"),
            tail=self._column("tail"),
            weight=np.array(values["confidence"], np.float64),
            source=values["source"] if self._has_source else None,
            where=Where(str(self._path), "line", lambda rows: lines[rows].tolist()),
            rows=self.rows,
            ignored_columns=tuple(self._ignored),
        )

    def _column(self, role: str) -> Any:
        values = self._values[role]
        return values if self._request.of(role) is None else np.array(values, np.int64)

    def _of_object(self, line: int, value: Mapping[str, Any]) -> dict[str, Any] | None:
        if self._keys is None:
            names = list(value)
            try:
                roles = assign_roles(0, header=names, columns=self._columns, source=None)
            except DataError as error:
                self.found.add(error.what, line, None, None, COLUMNS_HINT)
                return None
            self._keys = {role: names[at] for role, at in roles.items()}
        keys = self._keys
        if "source" not in keys and "source" in value and keys.get("head") != "source":
            keys["source"] = "source"
        missing = [keys[role] for role in REQUIRED if keys[role] not in value]
        for key in missing:
            self.found.add(f"key {key!r} is missing", line, key, None, _JSON_HINT)
        if missing:
            return None
        self._ignored.update(dict.fromkeys(key for key in value if key not in keys.values()))
        self._has_source = self._has_source or keys.get("source") in value
        return {role: value.get(key) for role, key in keys.items()}

    def _of_array(self, line: int, value: list[Any]) -> dict[str, Any] | None:
        length = len(value)
        if not self._columns and length not in (4, 5):
            self.found.add(f"array of {length} values instead of 4 or 5", line, None, json.dumps(value), _JSON_HINT)
            return None
        if length not in self._places:
            try:
                self._places[length] = assign_roles(length, header=None, columns=self._columns, source=None)
            except DataError as error:
                self.found.add(error.what, line, None, json.dumps(value), _JSON_HINT)
                return None
        places = self._places[length]
        self._has_source = self._has_source or "source" in places
        return {role: value[at] for role, at in places.items()}

    def _fits(self, line: int, fact: dict[str, Any]) -> bool:
        before = self.found.count
        for role in REQUIRED[:3]:
            fact[role] = self._name_or_id(line, role, fact[role])
        confidence = fact["confidence"]
        if isinstance(confidence, bool) or not isinstance(confidence, (int, float)):
            self.found.add("confidence is not a number", line, "confidence", json.dumps(confidence), _TEXT_HINT)
        source = fact.get("source")
        if source is not None and not (isinstance(source, str) and _is_text(source)):
            self.found.add("source is not text", line, "source", json.dumps(source), _TEXT_HINT)
        return self.found.count == before

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


def _is_text(value: str) -> bool:
    return value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)


readers.register("jsonl")(Format(read_jsonl, (".jsonl", ".ndjson")))
