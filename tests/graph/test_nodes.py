"""Node data: what is joined, what travels with a graph, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ukge.errors import DataError
from ukge.graph.aggregate import aggregate
from ukge.graph.nodes import Node, Nodes
from ukge.graph.split import split
from ukge.graph.uncertain import UncertainGraph, concat
from ukge.graph.undirected import without_direction

FACTS = [("p1", "binds", "p2", 0.9), ("p3", "binds", "p1", 0.4), ("d1", "treats", "p3", 0.7)]


@pytest.fixture(scope="module")
def nodes() -> Nodes:
    return Nodes.from_columns(
        ["p1", "p2", "d1", "p1", "elsewhere"],
        label=["TP53", "MDM2", "MDM2", "p53", None],
        types=[["biolink:Protein"], "biolink:Protein", ["biolink:Drug"], ["biolink:Gene"], None],
        description=["guards the genome", " ", None, "another text", "in no fact"],
        aliases=[["LFS1", " "], None, [], ["LFS1", "TRP53"], None],
        others={"length": [393, 491, None, None, 1], "raw": [{"a": 1}, "text", None, None, None]},
    )


def test_rows_of_one_entity_are_joined_and_another_label_becomes_an_alias(nodes: Nodes) -> None:
    assert nodes.get("p1") == Node(
        "p1",
        "TP53",
        ("biolink:Protein", "biolink:Gene"),
        "guards the genome",
        ("LFS1", "TRP53", "p53"),
        {"length": 393, "raw": '{"a": 1}'},
    )
    assert nodes.get("p2") == Node("p2", "MDM2", ("biolink:Protein",), None, (), {"length": 491, "raw": "text"})
    assert nodes.get("nobody") is None
    assert len(nodes) == 4


def test_labels_types_and_aliases_are_found(nodes: Nodes) -> None:
    assert nodes.labels(["p2", "nobody", "p1"]) == ["MDM2", None, "TP53"]
    assert nodes.called("MDM2") == ["p2", "d1"]
    assert nodes.near("trp") == ["p1"]
    assert nodes.near("m") == ["p2", "d1"]
    assert nodes.types == {"biolink:Protein": 2, "biolink:Gene": 1, "biolink:Drug": 1}
    assert nodes.of_type("Protein").to_pylist() == ["p1", "p2"]
    assert nodes.of_type(["Gene", "biolink:Drug"]).to_pylist() == ["p1", "d1"]
    with pytest.raises(DataError, match="no entity is of type 'Protien'") as refused:
        nodes.of_type("Protien")
    assert "biolink:Protein" in str(refused.value)


def test_node_data_travels_with_the_graph_and_facts_know_nothing_of_it(nodes: Nodes) -> None:
    plain = UncertainGraph.from_facts(FACTS)
    graph = plain.with_nodes(nodes)
    assert graph == plain
    assert graph.fingerprint == plain.fingerprint
    assert graph.nodes.ids.to_pylist() == ["p1", "d1", "p2"]  # the order of the graph's names, nobody else
    sliced = graph[1:]
    assert sliced.nodes is graph.nodes
    assert sliced.compact().nodes.ids.to_pylist() == ["p1", "d1"]
    assert aggregate(graph).graph.nodes == graph.nodes
    undirected = without_direction(graph, ["binds"])
    assert undirected.nodes.get("p2") == nodes.get("p2")
    assert undirected.nodes.ids.to_pylist() == ["d1", "p1", "p2"]


def test_joined_graphs_join_their_node_data(nodes: Nodes) -> None:
    first = UncertainGraph.from_facts(FACTS).with_nodes(nodes)
    other = Nodes.from_columns(["p1", "p9"], label=["not this", "new"], others={"length": ["many", "few"]})
    both = concat([first, UncertainGraph.from_facts([("p9", "binds", "p1", 0.5)]).with_nodes(other)])
    found = both.nodes.get("p1")
    assert found is not None
    assert (found.label, found.aliases[-1], found.others["length"]) == ("TP53", "not this", "393")
    assert both.nodes.labels(["p9"]) == ["new"]


def test_every_part_of_a_split_has_it(nodes: Nodes) -> None:
    rng = np.random.default_rng(0)
    facts = [(f"p{i}", "binds", f"p{j}", float(rng.random())) for i in range(1, 9) for j in range(1, 9)]
    dataset = split(UncertainGraph.from_facts(facts).with_nodes(nodes), undirected="none")
    assert dataset.nodes.labels(["p1"]) == ["TP53"]
    assert all(part.nodes is dataset.nodes for part in dataset.parts.values())
    assert dataset.with_nodes(Nodes.none()).val.nodes == Nodes.none()


@pytest.mark.parametrize(
    ("columns", "told"),
    [
        ({"id": ["a", " "]}, r"1 of 2 nodes have no id\n  row 1, column id: id is empty"),
        ({"id": ["a"], "types": [[1]]}, r"row 0, column types: types are text or lists of text \(found '\[1\]'\)"),
        ({"id": ["a", "b"], "label": ["x", "\ud800"]}, r"row 1, column label: text holds half a surrogate pair"),
        ({"id": ["a"], "aliases": [["\ud800"]]}, r"row 0, column aliases: text holds half a surrogate pair"),
        ({"id": ["a"], "label": ["x", "y"]}, "column label of node data has 2 values for 1 nodes"),
        ({"id": ["a"], "others": {"label": ["x"]}}, "node data has two columns 'label'"),
    ],
)
def test_columns_that_cannot_be_used_are_refused(columns: dict[str, Any], told: str) -> None:
    with pytest.raises(DataError, match=told):
        Nodes.from_columns(**columns)
