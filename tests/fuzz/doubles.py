"""Plain readers of tables, JSON Lines and AnyBURL, written apart from ours: what ours accepts is what these read."""

from __future__ import annotations

import csv
import io
import json
import re
from typing import Any

Fact = tuple[str, str, str, float, str | None]
NUMBER = re.compile(r"[ \t]*[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?[ \t]*")
ATOM = r"\s*[^\s(),]+\([A-Z],[A-Z]\)\s*"
ANYBURL_LINE = re.compile(rf"([^\t]*\t[^\t]*\t[^\t_]*\t)?{ATOM}<=(?P<body>{ATOM}(,{ATOM})*)")
PLAIN = ["head", "relation", "tail", "confidence", "source"]


class MalformedError(Exception):
    """No reader should accept this."""


class UnknownError(Exception):
    """It may be read in a way that this one does not know: another header, say."""


def tsv(data: bytes) -> list[Fact]:
    return _facts([line.split("\t") for line in lines_of(data) if line])


def delimited_by_commas(data: bytes) -> list[Fact]:
    try:
        rows = list(csv.reader(io.StringIO(text_of(data), newline=""), strict=True))
    except csv.Error:
        raise UnknownError from None  # quotes where RFC 4180 has none
    return _facts([row for row in rows if row], comma=True)


def json_lines(data: bytes) -> list[Fact]:
    facts = []
    for line in lines_of(data):
        if not line.strip():
            continue
        try:
            value = json.loads(line, object_pairs_hook=no_pairs_twice)
        except (ValueError, RecursionError):
            raise MalformedError from None
        if isinstance(value, list):
            if len(value) not in (4, 5):
                raise MalformedError
            row = value
        elif isinstance(value, dict):
            spelt = [name for name in value if name.strip().lower() in PLAIN]
            if not set(PLAIN[:4]) <= set(value) or not set(spelt) <= set(PLAIN):
                raise UnknownError
            row = [value.get(name) for name in PLAIN]
        else:
            raise MalformedError
        facts.append(fact_of([str(x) if type(x) is int and at < 3 else x for at, x in enumerate(row)]))
    return facts


def anyburl(data: bytes) -> list[int]:
    """Return how many atoms the body of each rule has."""
    found = []
    for line in text_of(data).split("\n"):
        if line.strip():
            whole = ANYBURL_LINE.fullmatch(line.strip())
            if whole is None:
                raise MalformedError
            found.append(whole["body"].count("("))
    return found


def no_pairs_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise MalformedError
    return dict(pairs)


def lines_of(data: bytes) -> list[str]:
    return re.split("\r\n|\r|\n", text_of(data))


def text_of(data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UnknownError from None  # columns that are no part of a fact may hold anything


def _facts(rows: list[list[str]], *, comma: bool = False) -> list[Fact]:
    if rows and not any(NUMBER.fullmatch(cell) for cell in rows[0]):
        header = [cell.strip().lower() for cell in rows[0]]
        if header not in (PLAIN, PLAIN[:4]):
            raise UnknownError
        if any(len(row) != len(header) for row in rows):
            raise MalformedError
        rows = rows[1:]
    elif comma and rows and all(len(row) == 5 and row[3] in ("0", "1") and row[4].isdecimal() for row in rows):
        raise MalformedError  # decimal commas
    if any(len(row) != len(rows[0]) for row in rows) or (rows and len(rows[0]) not in (4, 5)):
        raise MalformedError
    return [fact_of(row) for row in rows]


def fact_of(row: list[Any]) -> Fact:
    head, relation, tail, confidence = row[:4]
    source = row[4] if len(row) > 4 else None
    if not all(isinstance(name, str) and name.strip() for name in (head, relation, tail)):
        raise MalformedError
    if isinstance(confidence, str):
        if not NUMBER.fullmatch(confidence):
            raise MalformedError
        confidence = float(confidence)
    if isinstance(confidence, bool) or not isinstance(confidence, (int, float)) or not 0 <= confidence <= 1:
        raise MalformedError
    if source is not None and not isinstance(source, str):
        raise MalformedError
    return head, relation, tail, float(confidence), source or None
