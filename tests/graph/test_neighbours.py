"""Graphs as objects of other libraries, and back: the same facts with the same confidences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ukge import ConfigError, DataError, UncertainGraph, read
from ukge.graph import neighbours
from ukge.graph.nodes import Nodes

FACTS = [
    ("a", "likes", "b", 0.5, "x"),
    ("b", "likes", "c", 0.25, None),
    ("a", "knows", "c", 1.0, "y"),
    ("a", "likes", "b", 0.75, "x"),
    ("ü\n", "knows", "<c>", 0.0, None),
]


@pytest.fixture
def graph() -> UncertainGraph:
    return UncertainGraph.from_facts(FACTS)


def rows(graph: UncertainGraph, *, source: bool = False) -> list[tuple[Any, ...]]:
    return sorted(
        (fact.head, fact.relation, fact.tail, fact.confidence, *([fact.source or ""] if source else []))
        for fact in graph
    )


def test_networkx_has_an_edge_per_fact_and_what_is_known_of_nodes(graph: UncertainGraph) -> None:
    known = graph.with_nodes(Nodes.from_columns(["a"], label=["Anna"], types=[["Person", "Child"]]))
    made = known.to_networkx()
    assert made.number_of_edges("a", "b") == 2
    assert made.nodes["a"] == {"label": "Anna", "types": ["Person", "Child"]}
    assert rows(read(made), source=True) == rows(graph, source=True)


def test_pykeen_has_the_same_ids_and_the_confidences_stand_beside(graph: UncertainGraph) -> None:
    factory, confidence = graph.to_pykeen()
    assert [factory.entity_id_to_label[at] for at in range(factory.num_entities)] == list(graph.entities)
    assert factory.mapped_triples.tolist() == [
        list(row) for row in zip(graph.head, graph.relation, graph.tail, strict=True)
    ]
    assert rows(read(factory, confidence=confidence)) == rows(graph)
    assert set(read(factory, confidence=1.0).confidence) == {1.0}
    with pytest.raises(DataError, match="has no confidences"):
        read(factory)
    with pytest.raises(DataError, match="5 facts need as many confidences, not 3"):
        read(factory, confidence=np.ones(3))


def test_pyg_has_a_kind_of_edge_per_relation(graph: UncertainGraph) -> None:
    made = graph.to_pyg()
    assert made.edge_types == [("entity", name, "entity") for name in graph.relations]
    likes = made["entity", "likes", "entity"]
    ends = [[list(graph.entities)[at] for at in row] for row in likes.edge_index.tolist()]
    assert ends == [["a", "b", "a"], ["b", "c", "b"]]
    assert likes.edge_weight.tolist() == [0.5, 0.25, 0.75]
    assert rows(read(made)) == rows(graph)


def test_kinds_of_nodes_without_names_are_told_apart() -> None:
    import torch
    from torch_geometric.data import HeteroData

    data = HeteroData()
    data["gene"].num_nodes, data["drug"].num_nodes = 2, 1
    data["drug", "binds", "gene"].edge_index = torch.tensor([[0, 0], [0, 1]])
    with pytest.raises(DataError, match="'binds' have no confidences"):
        read(data)
    data["drug", "binds", "gene"].score = torch.tensor([[0.5], [0.25]])
    assert rows(read(data, weight="score")) == [
        ("drug:0", "binds", "gene:0", 0.5),
        ("drug:0", "binds", "gene:1", 0.25),
    ]


def test_polars_frames_go_in_and_come_out(graph: UncertainGraph) -> None:
    import polars as pl

    frame = graph.to_polars()
    assert isinstance(frame, pl.DataFrame)
    assert frame.columns == ["head", "relation", "tail", "confidence", "source"]
    assert rows(read(frame), source=True) == rows(graph, source=True)
    from ukge.graph.given import judged

    said = judged(frame, graph.entities, graph.relations, lambda head, relation, tail: head + 0.5, "predict")
    assert isinstance(said, pl.DataFrame)
    assert said["confidence"].to_list() == (graph.head + 0.5).tolist()
    assert said["given"].to_list() == graph.confidence.tolist()


def test_what_is_missing_is_told_with_how_to_get_it() -> None:
    with pytest.raises(ConfigError, match=r"needs the package 'nowhere'[^?]*pip install 'ukge\[pyg\]'"):
        neighbours.needed("nowhere", "pyg", "a HeteroData")
