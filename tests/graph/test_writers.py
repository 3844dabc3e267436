"""Writing: whole files or none, what each format holds, and what it refuses."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import networkx as nx
import pandas as pd
import pyarrow as pa
import pytest

from ukge.errors import ConfigError, DataError
from ukge.graph.readers import read
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.writers import write
from ukge.graph.writers.tables import write_table

GRAPH = UncertainGraph.from_facts(
    [
        ("cat", "hunts", "mouse", 0.9, "book"),
        ("cat", "likes", "mouse", 1e-7, None),
        ("dog", 'says "hi, you"', "cat", 1.0, "a\nb"),
    ]
)
PLAIN = UncertainGraph.from_facts([("cat", "hunts", "mouse", 0.1 + 0.2), ("dog", "chases", "cat", 1.0)])


def test_tsv_is_what_other_tools_expect(tmp_path: Path) -> None:
    write(PLAIN, tmp_path / "facts.tsv")
    assert (tmp_path / "facts.tsv").read_bytes() == b"cat\thunts\tmouse\t0.30000000000000004\ndog\tchases\tcat\t1\n"
    write(PLAIN, tmp_path / "facts.tsv", header=True)
    assert (tmp_path / "facts.tsv").read_text().splitlines()[0] == "head\trelation\ttail\tconfidence"


def test_csv_is_read_alike_by_python_and_pandas(tmp_path: Path) -> None:
    path = tmp_path / "facts.csv"
    write(GRAPH, path)
    with path.open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["head", "relation", "tail", "confidence", "source"]
    assert rows[3] == ["dog", 'says "hi, you"', "cat", "1", "a\nb"]
    assert pd.read_csv(path)["relation"].tolist() == ["hunts", "likes", 'says "hi, you"']
    write(GRAPH, path, delimiter=";", header=False)
    assert list(read(path, delimiter=";")) == list(GRAPH)


def test_json_lines_are_json(tmp_path: Path) -> None:
    write(GRAPH, tmp_path / "facts.jsonl.gz")
    with gzip.open(tmp_path / "facts.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    assert rows[1] == {"head": "cat", "relation": "likes", "tail": "mouse", "confidence": 1e-7, "source": None}


def test_parquet_is_read_by_pandas(tmp_path: Path) -> None:
    write(GRAPH, tmp_path / "facts.parquet")
    frame = pd.read_parquet(tmp_path / "facts.parquet")
    assert list(frame.columns) == ["head", "relation", "tail", "confidence", "source"]
    assert frame["confidence"].tolist() == [0.9, 1e-7, 1.0]


def test_graphml_is_read_by_networkx_and_back(tmp_path: Path) -> None:
    write(GRAPH, tmp_path / "facts.graphml")
    graph = nx.read_graphml(tmp_path / "facts.graphml")
    assert isinstance(graph, nx.MultiDiGraph)
    assert sorted(graph.nodes) == ["cat", "dog", "mouse"]
    assert [data["confidence"] for data in graph.get_edge_data("cat", "mouse").values()] == [0.9, 1e-7]
    assert graph.get_edge_data("dog", "cat")[0]["relation"] == 'says "hi, you"'
    assert sorted(read(graph)) == sorted(GRAPH)
    nx.write_graphml(graph, tmp_path / "theirs.graphml")
    assert sorted(read(tmp_path / "theirs.graphml")) == sorted(GRAPH)


def test_graphml_with_names_in_an_attribute_and_default_values(tmp_path: Path) -> None:
    path = tmp_path / "facts.graphml"
    path.write_text(
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">'
        '<key id="k0" for="node" attr.name="label"/><key id="k1" for="edge" attr.name="kind"/>'
        '<key id="k2" for="edge" attr.name="weight"><default>0.5</default></key>'
        '<graph edgedefault="directed"><node id="n0"><data key="k0">cat &amp; co</data></node>'
        '<node id="n1"><data key="k0">mouse</data></node>'
        '<edge source="n0" target="n1"><data key="k1">hunts</data></edge></graph></graphml>'
    )
    graph = read(path, name="label", columns={"relation": "kind"})
    assert list(graph) == [("cat & co", "hunts", "mouse", 0.5, None)]


@pytest.mark.parametrize("extension", ["ttl", "nt"])
def test_rdf_with_other_bases_and_predicates(tmp_path: Path, extension: str) -> None:
    path = tmp_path / f"facts.{extension}"
    options: dict[str, Any] = {
        "base": "http://my.org/",
        "confidence_predicate": "http://my.org/p",
        "source_predicate": "http://my.org/from",
    }
    write(GRAPH, path, **options)
    assert "http://my.org/entity/cat" in path.read_text()
    assert "http://my.org/relation/says%20%22hi%2C%20you%22" in path.read_text()
    assert list(read(path, **options)) == list(GRAPH)
    named = UncertainGraph.from_facts([("http://a.org/x", "http://my.org/p", "http://my.org/entity/y", 0.5)])
    write(named, path, **options)
    assert "<http://a.org/x>" in path.read_text()
    assert list(read(path, **options)) == list(named)


@pytest.mark.parametrize(
    ("name", "fact", "offender"),
    [
        ("facts.tsv", ("a\tb", "r", "c", 0.5), r"a\\tb"),
        ("facts.tsv", ("a", "r\n", "c", 0.5), r"r\\n"),
        ("facts.tsv.gz", ("a", "r", "c\r", 0.5), r"c\\r"),
        ("facts.tsv", ("a", "r", "c", 0.5, "s\tt"), r"s\\tt"),
        ("facts.graphml", ("a\x00", "r", "c", 0.5), r"a\\x00"),
        ("facts.graphml", ("a", "r\x1b", "c", 0.5), r"r\\x1b"),
    ],
)
def test_names_that_a_format_cannot_hold_are_named(tmp_path: Path, name: str, fact: Any, offender: str) -> None:
    path = tmp_path / name
    path.write_text("what was here before")
    with pytest.raises(DataError, match=rf"1 names cannot be written[\s\S]*'{offender}'[\s\S]*instead"):
        write(UncertainGraph.from_facts([fact]), path)
    assert path.read_text() == "what was here before"
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_a_first_name_with_a_byte_order_mark_needs_a_header(tmp_path: Path) -> None:
    graph = UncertainGraph.from_facts([("\ufeffa", "r", "b", 0.5)])
    with pytest.raises(DataError, match="starts with a byte order mark"):
        write(graph, tmp_path / "facts.tsv")
    write(graph, tmp_path / "facts.tsv", header=True)
    assert list(read(tmp_path / "facts.tsv")) == list(graph)


def test_a_writer_that_fails_half_way_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def half(sink: Any, parts: Any) -> None:
        sink.write(b"half a fact")
        raise OSError("no space left")

    monkeypatch.setattr("ukge.graph.writers.lines.write_joined", half)
    with pytest.raises(DataError, match="cannot be written: no space left"):
        write(PLAIN, tmp_path / "facts.tsv")
    assert list(tmp_path.iterdir()) == []


def test_targets_that_do_not_fit(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="its directory does not exist"):
        write(PLAIN, tmp_path / "nowhere" / "facts.tsv")
    (tmp_path / "folder.tsv").mkdir()
    with pytest.raises(DataError, match="is a directory"):
        write(PLAIN, tmp_path / "folder.tsv")
    with pytest.raises(DataError, match=r"extension '\.xlsx' says no format[\s\S]*parquet"):
        write(PLAIN, tmp_path / "facts.xlsx")
    with pytest.raises(DataError, match="Parquet compresses by itself"):
        write(PLAIN, tmp_path / "facts.parquet.gz")
    with pytest.raises(DataError, match="no facts to write"):
        write(PLAIN[:0], tmp_path / "facts.tsv")
    with pytest.raises(DataError, match="no RDF syntax to write"):
        write(PLAIN, tmp_path / "facts.xml", format="rdf")
    with pytest.raises(ConfigError, match="unknown writer 'xlsx'"):
        write(PLAIN, tmp_path / "facts.tsv", format="xlsx")
    with pytest.raises(ConfigError, match=r"writer 'jsonl' has no option header"):
        write(PLAIN, tmp_path / "facts.jsonl", header=True)
    with pytest.raises(ConfigError, match="cannot separate"):
        write(PLAIN, tmp_path / "facts.csv", delimiter='"')
    with pytest.raises(ConfigError, match="is no IRI"):
        write(PLAIN, tmp_path / "facts.ttl", base="not an iri")


def test_a_source_that_says_nothing_is_no_source(tmp_path: Path) -> None:
    graph = UncertainGraph.from_facts([("a", "r", "b", 0.5, ""), ("a", "r", "c", 0.5, "x")])
    assert [fact.source for fact in graph] == [None, "x"]
    assert graph[:1].source is None
    assert graph[:1] == UncertainGraph.from_facts([("a", "r", "b", 0.5)])


FORMULAS = ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "'=quoted", "''-twice", "'tis", "＝wide", "plain"]


@pytest.mark.parametrize("extension", ["csv", "tsv", "csv.gz"])
def test_spreadsheets_compute_no_name(tmp_path: Path, extension: str) -> None:
    names = [*FORMULAS, *(["\tTab", "\rReturn", "\nLine"] if extension != "tsv" else [])]
    graph = UncertainGraph.from_facts([(name, "=r", "b", 0.5, name) for name in names])
    path = tmp_path / f"facts.{extension}"
    write(graph, path, spreadsheet_safe=True)
    shown = read(path)
    for fact in shown:
        assert fact.head[0] not in "=+-@\t\r\n＝"
        assert fact.relation == "'=r"
    assert read(path, spreadsheet_safe=True) == graph
    write(graph, path)
    assert read(path) == graph


def test_answers_for_spreadsheets(tmp_path: Path) -> None:
    table = pa.table({"head": ["=1+1", "plain"], "gap": [-0.5, 0.25], "=name": [["=x"], ["y"]]})
    write_table(tmp_path / "answers.csv", table, spreadsheet_safe=True)
    rows = list(csv.reader((tmp_path / "answers.csv").open(encoding="utf-8")))
    assert rows == [["head", "gap", "'=name"], ["'=1+1", "-0.5", '["=x"]'], ["plain", "0.25", '["y"]']]
