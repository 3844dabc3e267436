"""Node data from files: columns by their names, lists, and faults told with file and line."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ukge import read, split
from ukge.errors import ConfigError, DataError
from ukge.graph.catalogue import open_dataset, save_dataset
from ukge.graph.nodes import Node, Nodes
from ukge.graph.readers import ReadReport

FACTS = "p1\tbinds\tp2\t0.9\np2\tbinds\tp3\t0.4\n"
P1 = Node("p1", "TP53", ("biolink:Protein", "biolink:Gene"), "a guard", ("HGNC:11998", "P04637"), {})
ROWS: list[dict[str, object]] = [
    {"id": "p1", "name": "TP53", "category": ["biolink:Protein", "biolink:Gene"], "description": "a guard"},
    {"id": "p2", "name": "MDM2", "category": ["biolink:Protein"], "description": None},
]


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    path = tmp_path / "facts.tsv"
    path.write_text(FACTS, encoding="utf-8")
    return path


def written(path: Path, text: str | bytes) -> Path:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "kgx.tsv",
            "id\tname\tcategory\tdescription\txref\n"
            "p1\tTP53\tbiolink:Protein|biolink:Gene\ta guard\tHGNC:11998|P04637\np2\tMDM2\tbiolink:Protein\t\t\n",
        ),
        (
            "neo4j.csv",
            'name:string,gene:ID(Gene),:LABEL,description,synonym,xref\nTP53,p1,biolink:Protein;biolink:Gene,"a guard",'
            "HGNC:11998,P04637\nMDM2,p2,biolink:Protein,,,\n",
        ),
        ("few.jsonl", "\n".join(json.dumps({**row, "synonym": ["HGNC:11998", "P04637"]}) for row in ROWS)),
        (
            "info.txt",
            "#string_protein_id\tpreferred_name\ttype\tannotation\talias\n"
            "p1\tTP53\tbiolink:Protein|biolink:Gene\ta guard\tHGNC:11998|P04637\np2\tMDM2\tbiolink:Protein\t\t\n",
        ),
    ],
)
def test_text_is_read_by_the_names_of_its_columns(facts: Path, tmp_path: Path, name: str, text: str) -> None:
    nodes = read(facts, nodes=written(tmp_path / name, text)).nodes
    assert nodes.get("p1") == P1
    found = nodes.get("p2")
    assert found is not None
    assert (found.label, found.types, found.description) == ("MDM2", ("biolink:Protein",), None)


def test_typed_tables_are_read_too_and_other_columns_are_kept(facts: Path, tmp_path: Path) -> None:
    table = pa.table({"id": ["p1"], "type": [["Gene"]], "length": [393], "name": ["TP53"], "where": [{"chr": 17}]})
    pq.write_table(table, tmp_path / "nodes.parquet")
    frame = pd.DataFrame({"id": ["p1"], "type": ["Gene"], "length": [393], "name": ["TP53"], "where": ['{"chr": 17}']})
    for given in (tmp_path / "nodes.parquet", table, frame):
        found = read(facts, nodes=given).nodes.get("p1")
        assert found == Node("p1", "TP53", ("Gene",), None, (), {"length": 393, "where": '{"chr": 17}'})


def test_reading_says_how_many_nodes_have_no_facts_and_none_at_all_is_an_error(facts: Path, tmp_path: Path) -> None:
    reports: list[ReadReport] = []
    path = written(tmp_path / "n.tsv", "id\tname\np1\tTP53\nq1\tnobody\nq2\tnobody\n")
    read(facts, nodes=path, on_report=reports.append)
    assert (reports[0].nodes, reports[0].nodes_apart) == (1, 2)
    with pytest.raises(DataError, match="none of its 1 ids is an entity of the graph") as refused:
        read(facts, nodes=written(path, "id\tname\nTP53\tp1\n"))
    assert "'TP53', the entities with 'p1', 'p2', 'p3'" in str(refused.value)


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("n.tsv", "a\tb\nx\ty\n", "no column of ids among a, b"),
        ("n.tsv", "id\tname\np1\n", r"1 problem in 1 line\n  line 2: 1 column instead of 2 \(found 'p1'\)"),
        ("n.tsv", "id\tname\n\np1\tx\n \ty\n", r"1 of 2 nodes have no id\n  line 4, column id: id is empty"),
        ("n.tsv", b"id\tname\np1\t\xff\n", r"line 2: not UTF-8 text \(found 'p1\\t\\\\xff'\)"),
        ("n.tsv", "id\tname\tname\n1\t2\t3\n", "two columns are named 'name'"),
        ("n.tsv", "id\tname\n", "no nodes"),
        ("n.csv", 'id,name\np1,"x\n', "line 2"),
        ("n.xlsx", "id\n", "the extension '.xlsx' says no format of node data"),
        ("n.jsonl", '{"id": "p1"}\n{"id": [1]}', r"line 2, column id: id is neither text nor an integer"),
        ("n.jsonl", '{"id": "p1"}\n[1]', "line 2: is no object"),
        ("n.jsonl", '{"id": "p1", "id": "p2"}', "line 1: is not JSON: the key 'id' stands twice"),
        ("n.jsonl", '{"id": "\\ud800"}', "line 1, column id: id holds half a surrogate pair"),
        ("n.jsonl", '{"id": "p1", "type": {"a": 1}}', "line 1, column types: types are text or lists of text"),
        ("n.jsonl", '{"id": "p1", "\\ud800": 1}', "key holds half a surrogate pair"),
        ("n.parquet", "PAR1", "is no readable Parquet file"),
        ("n.tsv.gz", b"\x1f\x8b\x08\x00 cut", "line|cannot be read"),
    ],
)
def test_faults_are_told_with_file_and_line(facts: Path, tmp_path: Path, name: str, content: str, told: str) -> None:
    path = written(tmp_path / name, content)
    with pytest.raises(DataError, match=told) as refused:
        read(facts, nodes=path)
    assert str(path) in str(refused.value)


def test_what_is_no_node_data_at_all_is_refused(facts: Path) -> None:
    with pytest.raises(ConfigError, match="nodes cannot be read from an object of type int"):
        read(facts, nodes=3)


def test_a_directory_of_parts_keeps_it(facts: Path, tmp_path: Path) -> None:
    own = Nodes.from_columns(["p1", "p3"], label=["TP53", "third"])
    dataset = split(read(facts, nodes=own), val=0.0, test=0.0)
    save_dataset(dataset, tmp_path / "parts")
    opened = open_dataset(tmp_path / "parts")
    assert opened.nodes == dataset.nodes
    other = written(tmp_path / "other.tsv", "id\tname\np1\tp53\n")
    told = open_dataset(tmp_path / "parts", nodes=other).nodes
    assert told.labels(["p1", "p3"]) == ["p53", "third"]
    found = told.get("p1")
    assert found is not None
    assert found.aliases == ("TP53",)
