"""Networks for other programs: what is said of facts and of nodes arrives, as other programs read it."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest

from ukge import read, write
from ukge.errors import DataError
from ukge.graph.nodes import Nodes
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.writers import network_format, write_network
from ukge.graph.writers.network import with_status

NASTY = "x <&\"'> \u202e é"
FACTS = [("g:1", "binds", "g:2", 0.75), ("g:2", "binds", NASTY, 0.5), ("g:1", "inhibits", "g:2", 0.125)]


@pytest.fixture
def nodes() -> Nodes:
    return Nodes.from_columns(
        ["g:1", "g:2", "g:9"],
        label=["TP53", 'a "b" <c>', "in no fact"],
        types=[["biolink:Gene", "biolink:Protein"], None, None],
        description=["guards", None, None],
        aliases=[["P04637", "LFS1"], None, None],
        others={"length": [393, None, 1], "name": ["other name", None, None]},
    )


@pytest.fixture
def predictions() -> pa.Table:
    table = pa.table(
        {
            **{role: [fact[at] for fact in FACTS] for at, role in enumerate(("head", "relation", "tail"))},
            "head_label": ["TP53", None, "TP53"],
            "confidence": [0.75, 0.5, float("nan")],
            "low": [0.25, None, 0.1],
            "high": [1.0, None, 0.2],
            "reason": ["because of <this> & that", None, "x"],
            "sure": [True, False, None],
            "count": pa.array([3, 4, None], pa.int32()),
        }
    )
    return with_status(table, np.array([True, False, False]))


def test_graphml_as_networkx_reads_it(tmp_path: Path, nodes: Nodes, predictions: pa.Table) -> None:
    write_network(tmp_path / "p.graphml", predictions, nodes)
    graph = nx.read_graphml(tmp_path / "p.graphml")
    assert graph.nodes["g:1"] == {
        "label": "TP53",
        "types": "biolink:Gene|biolink:Protein",
        "description": "guards",
        "aliases": "P04637|LFS1",
        "length": 393,
        "name": "other name",
    }
    assert set(graph.nodes) == {"g:1", "g:2", NASTY}
    edges = {(head, told["relation"], tail): told for head, tail, told in graph.edges(data=True)}
    assert edges["g:1", "binds", "g:2"] == {
        "relation": "binds",
        "confidence": 0.75,
        "low": 0.25,
        "high": 1.0,
        "reason": "because of <this> & that",
        "sure": True,
        "count": 3,
        "status": "observed",
    }
    assert edges["g:2", "binds", NASTY] == {
        "relation": "binds",
        "confidence": 0.5,
        "sure": False,
        "count": 4,
        "status": "predicted",
    }
    assert "confidence" not in edges["g:1", "inhibits", "g:2"]


def aspects(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for each in json.loads(path.read_text(encoding="utf-8")):
        found |= each
    return found


def test_cx2_says_what_it_declares(tmp_path: Path, nodes: Nodes, predictions: pa.Table) -> None:
    write_network(tmp_path / "p.cx2", predictions, nodes)
    found = aspects(tmp_path / "p.cx2")
    assert found["CXVersion"] == "2.0"
    assert found["status"] == [{"success": True, "error": ""}]
    counts = {each["name"]: each["elementCount"] for each in found["metaData"]}
    assert all(len(found[name]) == count for name, count in counts.items())
    (declared,) = found["attributeDeclarations"]
    types = {"string": str, "double": float, "long": int, "boolean": bool, "list_of_string": list}
    for what in ("nodes", "edges"):
        for element in found[what]:
            for name, value in element["v"].items():
                assert type(value) is types[declared[what][name]["d"]]
    assert found["nodes"][0]["v"] == {
        "name": "TP53",
        "represents": "g:1",
        "types": ["biolink:Gene", "biolink:Protein"],
        "description": "guards",
        "aliases": ["P04637", "LFS1"],
        "length": 393,
        "name_column": "other name",
    }
    names = {node["id"]: node["v"]["represents"] for node in found["nodes"]}
    told = [(names[each["s"]], each["v"]["interaction"], names[each["t"]]) for each in found["edges"]]
    assert told == [fact[:3] for fact in FACTS]
    (look,) = found["visualProperties"]
    assert look["edgeMapping"]["EDGE_LINE_STYLE"]["definition"]["map"] == [{"v": "predicted", "vp": "dashed"}]


def test_cx2_as_ndex_reads_it(tmp_path: Path, nodes: Nodes, predictions: pa.Table) -> None:
    cx2 = pytest.importorskip("ndex2.cx2")
    write_network(tmp_path / "p.cx2", predictions, nodes)
    network = cx2.CX2Network()
    network.create_from_raw_cx2(str(tmp_path / "p.cx2"))
    assert len(network.get_nodes()) == 3
    assert network.get_edges()[0]["v"]["confidence"] == 0.75
    assert network.get_node(0)["v"]["represents"] == "g:1"


def test_sif_and_its_tables(tmp_path: Path, nodes: Nodes, predictions: pa.Table) -> None:
    write_network(tmp_path / "p.sif", predictions, nodes)
    lines = (tmp_path / "p.sif").read_text(encoding="utf-8").splitlines()
    assert lines == ["\t".join(fact[:3]) for fact in FACTS]
    edges = rows(tmp_path / "p.edges.tsv")
    assert [row["name"] for row in edges] == [f"{h} ({r}) {t}" for h, r, t, _ in FACTS]
    assert (edges[0]["confidence"], edges[0]["low"], edges[2]["confidence"]) == ("0.75", "0.25", "")
    known = rows(tmp_path / "p.nodes.tsv")
    assert (known[0]["name"], known[0]["label"], known[0]["types"]) == ("g:1", "TP53", "biolink:Gene|biolink:Protein")


@pytest.mark.parametrize("ending", ["tsv", "jsonl"])
def test_kgx_by_its_documented_columns(tmp_path: Path, nodes: Nodes, predictions: pa.Table, ending: str) -> None:
    path = tmp_path / f"p_edges.{ending}"
    write_network(path, predictions, nodes, format="kgx")
    edges, known = rows(path), rows(tmp_path / f"p_nodes.{ending}")
    first = edges[0]
    assert [first[slot] for slot in ("subject", "predicate", "object")] == ["g:1", "binds", "g:2"]
    assert len({edge["id"] for edge in edges}) == 3
    assert float(first["has_confidence_score"]) == 0.75
    assert [edge["knowledge_level"] for edge in edges] == ["not_provided", "prediction", "prediction"]
    assert [edge["agent_type"] for edge in edges] == ["not_provided", "computational_model", "computational_model"]
    by_id = {node["id"]: node for node in known}
    assert by_id["g:1"]["name"] == "TP53"
    assert by_id["g:1"]["category"] in ("biolink:Gene|biolink:Protein", ["biolink:Gene", "biolink:Protein"])
    assert by_id[NASTY]["category"] in ("biolink:NamedThing", ["biolink:NamedThing"])
    assert "g:9" not in by_id
    assert by_id["g:1"]["name_column"] == "other name"


@pytest.mark.parametrize("name", ["g.graphml", "g.cx2", "g.sif"])
def test_a_plain_graph_is_written_with_its_nodes_and_sources(tmp_path: Path, nodes: Nodes, name: str) -> None:
    graph = UncertainGraph.from_facts([(*FACTS[0], "a paper"), (*FACTS[1], None)]).with_nodes(nodes)
    write(graph, tmp_path / name)
    if name == "g.graphml":
        back = read(tmp_path / name)
        assert list(back) == list(graph)
        known = graph.nodes.get("g:1")
        assert known is not None
        assert back.nodes.get("g:1") == known._replace(others={"length": "393", "name": "other name"})
        assert nx.read_graphml(tmp_path / name).nodes["g:1"]["label"] == "TP53"
    elif name == "g.cx2":
        found = aspects(tmp_path / name)
        assert [edge["v"].get("source") for edge in found["edges"]] == ["a paper", None]
        assert "EDGE_LINE_STYLE" not in found["visualProperties"][0]["edgeMapping"]
    else:
        assert [row["source"] for row in rows(tmp_path / "g.edges.tsv")] == ["a paper", ""]


def test_nodes_beside_an_old_file_are_not_replaced_unasked(tmp_path: Path, nodes: Nodes) -> None:
    graph = UncertainGraph.from_facts(FACTS).with_nodes(nodes)
    own = tmp_path / "world_nodes.tsv"
    own.write_text("id\tname\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"world_nodes\.tsv would be written beside it, and is there already"):
        write(graph, tmp_path / "world.tsv", format="kgx")
    assert own.read_text(encoding="utf-8") == "id\tname\n"
    own.unlink()
    write(graph, tmp_path / "world.tsv", format="kgx")
    write(graph, tmp_path / "world.tsv", format="kgx")  # what it wrote itself, it replaces


@pytest.mark.parametrize(
    ("name", "form", "told"),
    [
        ("p.sif", None, r"names cannot be written[\s\S]*tab or a line end"),
        ("p.tsv", "kgx", r"names cannot be written[\s\S]*tab or a line end"),
        ("p.csv", "kgx", "KGX is written as TSV or JSON Lines"),
        ("p.sif.gz", "sif", "Cytoscape reads no compressed SIF"),
        ("p.tsv", None, "is not written as a network"),
    ],
)
def test_what_a_format_cannot_hold_is_refused(tmp_path: Path, name: str, form: str | None, told: str) -> None:
    graph = UncertainGraph.from_facts([("a\tb", "r", "c", 0.5)])
    with pytest.raises(DataError, match=told):
        write_network(tmp_path / name, graph.facts(), Nodes.none(), format=form)
    assert list(tmp_path.iterdir()) == []


def test_bars_within_a_list_need_json_lines(tmp_path: Path) -> None:
    nodes = Nodes.from_columns(["g:1"], aliases=[["a|b"]])
    graph = UncertainGraph.from_facts(FACTS).with_nodes(nodes)
    with pytest.raises(DataError, match=r"1 aliases hold a \|"):
        write(graph, tmp_path / "g.tsv", format="kgx")
    write(graph, tmp_path / "g.jsonl", format="kgx")
    assert rows(tmp_path / "g_nodes.jsonl")[0]["synonym"] == ["a|b"]


def test_endings_and_names_say_which_formats_are_networks() -> None:
    assert network_format(Path("a.cx2")) == "cx2"
    assert network_format(Path("a.graphml.gz")) == "graphml"
    assert network_format(Path("a.tsv")) is None
    assert network_format(Path("a.tsv"), "kgx") == "kgx"
    assert network_format(Path("a.cx2"), "csv") is None


def rows(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8", newline="") as file:
        if path.suffix == ".jsonl":
            return [json.loads(line) for line in file]
        return list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
