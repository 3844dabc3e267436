"""Every reader puts bad rows aside: what is left is what the good rows alone give, and no kind of fault is lost."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import networkx
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ukge.errors import DataError, TooManyBadRowsError
from ukge.graph.bad_rows import BadRows
from ukge.graph.readers import read, readers

GOOD = [("cat", "hunts", "mouse", 0.8), ("dog", "hunts", "cat", 0.25), ("cat", "likes", "dog", 1.0)]
RANGE, NUMBER, NAME = "confidence is outside [0, 1]", "confidence is not a number", "tail name is empty"


@dataclass(frozen=True)
class Source:
    """How a format holds good rows and one bad row of each kind, by what is wrong with it."""

    good: list[Any]
    bad: dict[str, Any]
    made: Callable[[Path, list[Any]], Any]
    options: dict[str, Any] = field(default_factory=dict)
    later: tuple[str, ...] = ()
    """what a strict reader tells in other words, or when the lines are whole"""


def _lines(name: str, first: bytes = b"", last: bytes = b"") -> Callable[[Path, list[Any]], Any]:
    def made(folder: Path, rows: list[Any]) -> Path:
        path = folder / name
        path.write_bytes(first + b"".join(row + b"\n" for row in rows) + last)
        return path

    return made


def _row(form: str) -> list[Any]:
    return [form.format(*fact).encode() for fact in GOOD]


def _table(rows: list[Any]) -> dict[str, list[Any]]:
    return {name: [row[at] for row in rows] for at, name in enumerate(("head", "relation", "tail", "confidence"))}


def _parquet(folder: Path, rows: list[Any]) -> Path:
    columns = _table(rows)
    columns["confidence"] = [None if value is None else str(value) for value in columns["confidence"]]
    pq.write_table(pa.table(columns), folder / "facts.parquet")
    return folder / "facts.parquet"


def _networkx(_: Path, rows: list[Any]) -> Any:
    graph = networkx.MultiDiGraph()
    for head, tail, data in rows:
        graph.add_edge(head, tail, **data)
    return graph


def _edge(head: str, relation: str | None, tail: str, confidence: str) -> bytes:
    said = "" if relation is None else f'<data key="r">{relation}</data>'
    return f'<edge source="{head}" target="{tail}">{said}<data key="c">{confidence}</data></edge>'.encode()


GRAPHML = (
    b'<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="r" for="edge" attr.name="relation"/>\n'
    b'<key id="c" for="edge" attr.name="confidence"/><graph edgedefault="directed">\n'
)
RDF = b"PREFIX : <http://a/>\nPREFIX ukge: <https://w3id.org/ukge#>\n"
TEXTS = {
    RANGE: b"a\tr\tb\t1.7",
    NUMBER: b"a\tr\tb\t90%",
    NAME: b"a\tr\t \t0.5",
    "not UTF-8 text": b"caf\xe9\tr\tb\t0.5",
    "wrong number of columns": b"a\tr",
}
BELIEF = b"Entity\tRelation\tValue\tProbability\tSource\n"
ASSERTION = '/a/\t/r/{1}\t/c/en/{0}\t/c/en/{2}\t{{"weight": {3}}}'

SOURCES = {
    "tsv": Source(_row("{}\t{}\t{}\t{}"), TEXTS, _lines("facts.tsv")),
    "csv": Source(
        _row('"{}",{},{},"{}"'),
        {"a quotation mark is never closed": b'"a,r,b,0.5'}
        | {kind: row.replace(b"\t", b",") for kind, row in TEXTS.items()},
        _lines("facts.csv"),
        later=("a quotation mark is never closed",),
    ),
    "nell": Source(
        _row("{}\t{}\t{}\t{}\tx"),
        {kind: row if kind.startswith("wrong") else row + b"\tx" for kind, row in TEXTS.items()},
        _lines("facts.tsv", BELIEF),
        {"format": "nell"},
    ),
    "string": Source(
        [b"a b 800", b"b c 250"],
        {
            "combined_score is outside [0, 1000]": b"a b 1001",
            "combined_score is not a number": b"a b x",
            "protein2 name is empty": b"a  7",
            "wrong number of columns": b"a b",
        },
        _lines("links.txt", b"protein1 protein2 combined_score\n"),
        {"format": "string"},
    ),
    "conceptnet": Source(
        _row(ASSERTION),
        {
            RANGE: ASSERTION.format("a", "r", "b", 2).encode(),
            "weight is not a number": ASSERTION.format("a", "r", "b", '"x"').encode(),
            "is not JSON": ASSERTION.format("a", "r", "b", "}").encode(),
            "has no weight": b"/a/\t/r/r\t/c/en/a\t/c/en/b\t{}",
            "wrong number of columns": b"/a/\t/r/r",
            "not UTF-8 text": b'/a/\t/r/r\t/c/en/\xe9\t/c/en/b\t{"weight": 1}',
        },
        _lines("assertions.csv"),
        {"format": "conceptnet"},
        (RANGE, "weight is not a number", "is not JSON", "has no weight"),
    ),
    "jsonl": Source(
        [json.dumps(dict(zip(("head", "relation", "tail", "confidence"), row, strict=True))).encode() for row in GOOD],
        {
            RANGE: b'["a", "r", "b", 1.7]',
            NUMBER: b'["a", "r", "b", "high"]',
            NAME: b'["a", "r", "", 0.5]',
            "is not JSON": b'{"head": "a"',
            "key 'tail' is missing": b'{"head": "a", "relation": "r", "confidence": 0.5}',
            "head is not text": b'[["a"], "r", "b", 0.5]',
            "array of the wrong length": b'["a", "r"]',
            "is neither an object nor an array": b"7",
            "not UTF-8 text": b'["\xe9", "r", "b", 0.5]',
            "head holds half a surrogate pair": b'["\\ud800", "r", "b", 0.5]',
        },
        _lines("facts.jsonl"),
    ),
    "graphml": Source(
        [_edge(head, relation, tail, str(confidence)) for head, relation, tail, confidence in GOOD],
        {
            RANGE: _edge("a", "r", "b", "1.7"),
            NUMBER: _edge("a", "r", "b", "high"),
            NAME: _edge("a", "r", "", "0.5"),
            "edge has no relation": _edge("a", None, "b", "0.5"),
            "data is given twice": _edge("a", 'r</data><data key="r">s', "b", "0.5"),
            "edge is undirected": _edge("a", "r", "b", "0.5").replace(b"<edge", b'<edge directed="false"'),
        },
        _lines("facts.graphml", GRAPHML, b"</graph></graphml>"),
    ),
    "rdf": Source(
        _row(":{} :{} :{} {{| ukge:confidence {} |}} ."),
        {
            RANGE: b":a :r :b {| ukge:confidence 1.7 |} .",
            NUMBER: b':a :r :c {| ukge:confidence "high" |} .',
            "has no confidence": b":a :r :d .",
            "is a second confidence of one statement": b":a :r :e {| ukge:confidence 0.5, 0.6 |} .",
        },
        _lines("facts.ttl", RDF),
    ),
    "parquet": Source(
        [list(row) for row in GOOD],
        {
            RANGE: ["a", "r", "b", 1.7],
            NUMBER: ["a", "r", "b", "high"],
            NAME: ["a", "r", None, 0.5],
            "confidence is missing or not a number": ["a", "r", "b", None],
        },
        _parquet,
    ),
    "arrow": Source(
        [list(row) for row in GOOD],
        {RANGE: ["a", "r", "b", 1.7], NAME: ["a", "r", "", 0.5]},
        lambda _, rows: pa.table(_table(rows)),
    ),
    "pandas": Source(
        [list(row) for row in GOOD],
        {
            RANGE: ["a", "r", "b", 1.7],
            NUMBER: ["a", "r", "b", "high"],
            NAME: ["a", "r", "", 0.5],
            "head is not text": [["a"], "r", "b", 0.5],
            "head holds half a surrogate pair": ["\ud800", "r", "b", 0.5],
        },
        lambda _, rows: pd.DataFrame(_table(rows)),
    ),
    "networkx": Source(
        [(head, tail, {"relation": relation, "confidence": value}) for head, relation, tail, value in GOOD],
        {
            RANGE: ("a", "b", {"relation": "r", "confidence": 1.7}),
            NUMBER: ("a", "b", {"relation": "r", "confidence": "high"}),
            "attribute 'relation' is missing": ("a", "b", {"confidence": 0.5}),
            "relation is not text": ("a", "b", {"relation": 0.5, "confidence": 0.5}),
        },
        _networkx,
    ),
}  # fmt: skip


HELD_ELSEWHERE = {"kgx", "mitab", "opentargets", "sssom"}
"""Readers over `text_tables`, which puts rows aside as those of TSV do; not yet looked at here one by one."""


def test_every_reader_is_held_to_it() -> None:
    assert set(SOURCES) | HELD_ELSEWHERE == set(readers)


@pytest.fixture(params=sorted(SOURCES))
def source(request: pytest.FixtureRequest) -> Source:
    return SOURCES[request.param]


def _dirty(source: Source, folder: Path) -> Any:
    """Return the good rows with a bad one after the first, and the others after the last."""
    first, *rest = source.bad.values()
    return source.made(folder, [source.good[0], first, *source.good[1:], *rest])


def test_what_is_left_is_what_the_good_rows_alone_give(source: Source, tmp_path: Path) -> None:
    bad = BadRows(tmp_path / "bad.tsv")
    expected = read(source.made(tmp_path, source.good), **source.options)
    found = read(_dirty(source, tmp_path), bad_rows=bad, **source.options)
    assert found == expected
    assert set(source.bad) <= set(bad.counts)
    assert bad.rows == len(source.bad)
    table = bad.frame()
    assert len(table) == sum(bad.counts.values())
    assert table["reason"].notna().all()
    assert (tmp_path / "bad.tsv").read_text().count("\n") == len(table) + 1


def test_the_strict_error_shows_every_kind(source: Source, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read(_dirty(source, tmp_path), **source.options)
    text = str(caught.value)
    lengths = ("wrong number of columns", "array of the wrong length")
    assert not [kind for kind in source.bad if kind not in (*lengths, *source.later) and kind not in text]
    assert caught.value.count >= len(source.bad) - len(source.later)


def test_nothing_is_made_of_too_many(source: Source, tmp_path: Path) -> None:
    dirty, count = _dirty(source, tmp_path), len(source.bad)
    assert read(dirty, bad_rows=tmp_path / "bad.jsonl", most_bad=count, **source.options)
    with pytest.raises(TooManyBadRowsError, match=f"{count} of {count + len(source.good)} rows are bad"):
        read(dirty, bad_rows=tmp_path / "bad.jsonl", most_bad="1%", **source.options)
    assert (tmp_path / "bad.jsonl").read_text().count("\n") >= count
