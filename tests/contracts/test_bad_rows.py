"""Every reader puts bad rows aside: what is left is what the good rows alone give, and no kind of fault is lost."""

from __future__ import annotations

import importlib
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
import torch

from ukge.errors import DataError, TooManyBadRowsError
from ukge.graph.bad_rows import BadRows
from ukge.graph.readers import read, readers
from ukge.graph.uncertain import UncertainGraph

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
    """what a strict reader tells only when the lines are whole"""
    beside: Callable[[list[Any]], dict[str, Any]] = lambda _: {}
    """options that depend on the rows"""

    def read(self, folder: Path, rows: list[Any], **more: Any) -> UncertainGraph:
        return read(self.made(folder, rows), **self.options, **self.beside(rows), **more)

    @property
    def dirty(self) -> list[Any]:
        """The good rows with a bad one after the first, and the others after the last."""
        first, *rest = self.bad.values()
        return [self.good[0], first, *self.good[1:], *rest]


def _lines(name: str, first: bytes = b"", last: bytes = b"") -> Callable[[Path, list[Any]], Any]:
    def made(folder: Path, rows: list[Any]) -> Path:
        path = folder / name
        path.write_bytes(first + b"".join(row + b"\n" for row in rows) + last)
        return path

    return made


def _commas(row: bytes) -> bytes:
    return row.replace(b"\t", b",")


def _row(form: str) -> list[Any]:
    return [form.format(*fact).encode() for fact in GOOD]


def _table(rows: list[Any]) -> dict[str, list[Any]]:
    return {name: [row[at] for row in rows] for at, name in enumerate(("head", "relation", "tail", "confidence"))}


def _parquet(folder: Path, rows: list[Any]) -> Path:
    columns = _table(rows)
    columns["confidence"] = [None if value is None else str(value) for value in columns["confidence"]]
    pq.write_table(pa.table(columns), folder / "facts.parquet")
    return folder / "facts.parquet"


def _parts(name: str, *columns: str) -> Callable[[Path, list[Any]], Any]:
    def made(folder: Path, rows: list[Any]) -> Path:
        held = {column: [row[at] for row in rows] for at, column in enumerate(columns)}
        pq.write_table(pa.table(held), folder / name)
        return folder / name

    return made


def _ids(names: list[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(dict.fromkeys(names))}


def _pykeen(_: Path, rows: list[Any]) -> Any:
    entities, relations = _ids([name for row in rows for name in (row[0], row[2])]), _ids([row[1] for row in rows])
    triples = torch.tensor([[entities[row[0]], relations[row[1]], entities[row[2]]] for row in rows])
    return importlib.import_module("pykeen.triples").TriplesFactory(triples, entities, relations)


def _pyg(_: Path, rows: list[Any]) -> Any:
    data = importlib.import_module("torch_geometric.data").HeteroData()
    names = _ids([name for row in rows for name in (row[0], row[2])])
    data["thing"].name, data["thing"].num_nodes = list(names), len(names)
    for relation in dict.fromkeys(row[1] for row in rows):
        own = [row for row in rows if row[1] == relation]
        edges = data["thing", relation, "thing"]
        edges.edge_index = torch.tensor([[names[row[0]] for row in own], [names[row[2]] for row in own]])
        edges.confidence = torch.tensor([row[3] for row in own], dtype=torch.float64)
    return data


def _networkx(_: Path, rows: list[Any]) -> Any:
    graph = networkx.MultiDiGraph()
    for head, tail, data in rows:
        graph.add_edge(head, tail, **data)
    return graph


def _edge(head: str, relation: str | None, tail: str, confidence: str) -> bytes:
    said = "" if relation is None else f'<data key="r">{relation}</data>'
    return f'<edge source="{head}" target="{tail}">{said}<data key="c">{confidence}</data></edge>'.encode()


def _relationship(head: str, tail: str, weight: str) -> bytes:
    return f'<edge source="{head}" target="{tail}"><data key="w">{weight}</data></edge>'.encode()


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
MITAB_HEADER = b"#ID(s) interactor A" + b"\tcolumn" * 14 + b"\n"
MITAB = "db:{0}\tdb:{2}" + "\t-" * 9 + '\tpsi-mi:"MI:0915"({1})\tpsi-mi:"MI:0469"(IntAct)\t-\tintact-miscore:{3}'
LIGHTRAG = (
    b'<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="w" for="edge" attr.name="weight"/>\n'
    b'<key id="k" for="edge" attr.name="keywords"/><key id="s" for="edge" attr.name="source_id"/>\n'
    b'<key id="t" for="node" attr.name="entity_type"/><graph edgedefault="undirected">\n'
)
BELIEF = b"Entity\tRelation\tValue\tProbability\tSource\n"
ASSERTION = '/a/\t/r/{1}\t/c/en/{0}\t/c/en/{2}\t{{"weight": {3}}}'

SOURCES = {
    "tsv": Source(_row("{}\t{}\t{}\t{}"), TEXTS, _lines("facts.tsv")),
    "csv": Source(
        _row('"{}",{},{},"{}"'),
        {"a quotation mark is never closed": b'"a,r,b,0.5'}
        | {kind: _commas(row) for kind, row in TEXTS.items()},
        _lines("facts.csv"),
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
    "kgx": Source(
        _row("{}\t{}\t{}\t{}"),
        {kind.replace("confidence is", "has_confidence_score is"): row for kind, row in TEXTS.items()},
        _lines("edges.tsv", b"subject\tpredicate\tobject\thas_confidence_score\n"),
        later=("has_confidence_score is outside [0, 1]", "has_confidence_score is not a number", NAME),
    ),
    "mitab": Source(
        _row(MITAB),
        {
            "intact-miscore is outside [0, 1]": MITAB.format("a", "r", "b", 1.7).encode(),
            "intact-miscore is not a number": MITAB.format("a", "r", "b", "high").encode(),
            "not UTF-8 text": MITAB.format("a", "r", "b", 0.5).encode().replace(b"db:a", b"db:\xe9"),
            "wrong number of columns": b"db:a\tdb:b",
        },
        _lines("interactions.txt", MITAB_HEADER),
        later=("intact-miscore is outside [0, 1]", "intact-miscore is not a number"),
    ),
    "sssom": Source(
        _row("{}\t{}\t{}\tsemapv:Match\t{}"),
        {kind: row if kind.startswith("wrong") else b"\tm\t".join(row.rsplit(b"\t", 1)) for kind, row in TEXTS.items()},
        _lines("a.sssom.tsv", b"subject_id\tpredicate_id\tobject_id\tmapping_justification\tconfidence\n"),
        later=(RANGE, NUMBER, NAME),
    ),
    "diseases": Source(
        [b"a\tA\tDOID:1\tone\t5.000", b"b\tB\tDOID:2\ttwo\t1.5"],
        {
            "stars is outside [0, 5]": b"a\tA\tDOID:2\ttwo\t6",
            "stars is not a number": b"a\tA\tDOID:2\ttwo\tx",
            NAME: b"a\tA\t\ttwo\t4",
            "wrong number of columns": b"a\tA\tDOID:2\ttwo",
        },
        _lines("disease_human.tsv"),
        later=("stars is outside [0, 5]", "stars is not a number", NAME),
    ),
    "neo4j": Source(
        _row('"{}",{},"{}",{}'),
        {"a quotation mark is never closed": b'"a,r,b,0.5'}
        | {kind.replace("confidence is", "confidence:float is"): _commas(row) for kind, row in TEXTS.items()},
        _lines("likes.csv", b":START_ID,:TYPE,:END_ID,confidence:float\n"),
        later=("confidence:float is outside [0, 1]", "confidence:float is not a number", NAME),
    ),
    "lightrag": Source(
        [_relationship("a", "b", "9.0"), _relationship("b", "c", "1")],
        {
            "confidence is not a number": _relationship("a", "c", "high"),
            NAME: _relationship("a", "", "2"),
            "odds need a weight of 0 or more": _relationship("a", "d", "-1"),
        },
        _lines("graph.graphml", LIGHTRAG, b"</graph></graphml>"),
    ),
    "graphrag": Source(
        [("a", "b", 9.0, "x"), ("b", "c", 1.0, "x")],
        {"odds need a weight of 0 or more": ("a", "d", -1.0, "x"), NAME: ("a", "", 2.0, "x")},
        _parts("relationships.parquet", "source", "target", "weight", "text_unit_ids"),
    ),
    "opentargets": Source(
        [("a", "x", "b", 0.5), ("b", "y", "c", 1.0)],
        {
            RANGE: ("a", "x", "c", 1.7),
            NAME: ("a", "x", None, 0.5),
            "confidence is missing or not a number": ("a", "x", "d", None),
        },
        _parts("associations.parquet", "targetId", "datatypeId", "diseaseId", "score"),
    ),
    "pykeen": Source(
        [list(row) for row in GOOD],
        {RANGE: ["a", "r", "b", 1.7], NAME: ["a", "r", "", 0.5]},
        _pykeen,
        beside=lambda rows: {"confidence": [row[3] for row in rows]},
    ),
    "pyg": Source([list(row) for row in GOOD], {RANGE: ["a", "r", "b", 1.7], NAME: ["a", "r", "", 0.5]}, _pyg),
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


def test_every_reader_is_held_to_it() -> None:
    assert set(SOURCES) == set(readers)


@pytest.fixture(params=sorted(SOURCES))
def source(request: pytest.FixtureRequest) -> Source:
    return SOURCES[request.param]


def test_what_is_left_is_what_the_good_rows_alone_give(source: Source, tmp_path: Path) -> None:
    bad = BadRows(tmp_path / "bad.tsv")
    expected = source.read(tmp_path, source.good)
    found = source.read(tmp_path, source.dirty, bad_rows=bad)
    assert found == expected
    assert set(source.bad) <= set(bad.counts)
    assert bad.rows == len(source.bad)
    table = bad.frame()
    assert len(table) == sum(bad.counts.values())
    assert table["reason"].notna().all()
    assert (tmp_path / "bad.tsv").read_text().count("\n") == len(table) + 1


def test_the_strict_error_shows_every_kind(source: Source, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        source.read(tmp_path, source.dirty)
    text = str(caught.value)
    lengths = ("wrong number of columns", "array of the wrong length")
    assert not [kind for kind in source.bad if kind not in (*lengths, *source.later) and kind not in text]
    assert caught.value.count >= len(source.bad) - len(source.later)


def test_the_strict_error_of_whole_lines_shows_what_is_in_them(source: Source, tmp_path: Path) -> None:
    rows = [source.bad[kind] for kind in source.later]
    if rows:
        with pytest.raises(DataError) as caught:
            source.read(tmp_path, [*source.good, *rows])
        text = str(caught.value)
        assert not [kind for kind in source.later if kind not in text]


def test_nothing_is_made_of_too_many(source: Source, tmp_path: Path) -> None:
    count = len(source.bad)
    assert source.read(tmp_path, source.dirty, bad_rows=tmp_path / "bad.jsonl", most_bad=count)
    with pytest.raises(TooManyBadRowsError, match=f"{count} of {count + len(source.good)} rows are bad"):
        source.read(tmp_path, source.dirty, bad_rows=tmp_path / "bad.jsonl", most_bad="1%")
    assert (tmp_path / "bad.jsonl").read_text().count("\n") >= count
