"""A graph as the objects of other libraries: NetworkX, PyKEEN, PyTorch Geometric, Polars. `read` takes them back.

Each is loaded when it is asked for, and is an extra of its own.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ukge.errors import ConfigError

if TYPE_CHECKING:
    from ukge.graph.uncertain import UncertainGraph

NODES, NAMES, WEIGHT = "entity", "name", "edge_weight"
"""What nodes, their names and the confidences are called in a `HeteroData`."""


class PykeenFacts(NamedTuple):
    """Facts as PyKEEN has them, which knows no confidences: they stand beside, in the order of `mapped_triples`."""

    factory: Any
    confidence: npt.NDArray[np.float64]


def needed(module: str, extra: str, what: str) -> Any:
    """Return a module of another library; where that is missing, the error says how to get it."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        hint = f"Run: pip install 'ukge[{extra}]'"
        raise ConfigError(f"{what} needs the package '{error.name}', which is not installed", hint=hint) from None


def to_networkx(graph: UncertainGraph) -> Any:
    """Return a `MultiDiGraph`: an edge per fact, with relation, confidence and source, and what is known of nodes."""
    networkx = needed("networkx", "networkx", "a NetworkX graph")
    made = networkx.MultiDiGraph()
    if graph.undirected:
        made.graph["undirected"] = list(graph.undirected)
    made.add_nodes_from(graph.entities)
    for node in graph.nodes:
        said = {"label": node.label, "types": list(node.types), "description": node.description}
        made.add_node(node.id, **{name: value for name, value in (said | dict(node.others)).items() if value})
    for fact in graph:
        source = {} if fact.source is None else {"source": fact.source}
        made.add_edge(fact.head, fact.tail, relation=fact.relation, confidence=fact.confidence, **source)
    return made


def to_pykeen(graph: UncertainGraph) -> PykeenFacts:
    """Return a `TriplesFactory` over the same ids, and the confidences beside it.

    The parts of a data set share their ids, so the factories made of them fit each other.
    """
    triples = needed("pykeen.triples", "pykeen", "a PyKEEN TriplesFactory")
    torch = needed("torch", "pykeen", "a PyKEEN TriplesFactory")
    facts = graph.facts("numpy", names=False)
    columns = np.stack([facts.head, facts.relation, facts.tail], axis=1).astype(np.int64)
    factory = triples.TriplesFactory(
        mapped_triples=torch.from_numpy(columns),
        entity_to_id=dict(graph.entities.index),
        relation_to_id=dict(graph.relations.index),
    )
    return PykeenFacts(factory, np.array(facts.confidence, dtype=np.float64))


def to_pyg(graph: UncertainGraph) -> Any:
    """Return a `HeteroData` with one kind of node and a kind of edge per relation; `edge_weight` is the confidence."""
    data = needed("torch_geometric.data", "pyg", "a HeteroData of PyTorch Geometric").HeteroData()
    torch = needed("torch", "pyg", "a HeteroData of PyTorch Geometric")
    facts = graph.facts("numpy", names=False)
    data[NODES].num_nodes = graph.n_entities
    data[NODES][NAMES] = list(graph.entities)
    for number, relation in enumerate(graph.relations):
        rows = np.flatnonzero(facts.relation == number)
        edges = data[NODES, relation, NODES]
        edges.edge_index = torch.from_numpy(np.stack([facts.head[rows], facts.tail[rows]]).astype(np.int64))
        edges[WEIGHT] = torch.from_numpy(facts.confidence[rows].astype(np.float32))
    return data


def to_polars(graph: UncertainGraph) -> Any:
    """Return a `polars.DataFrame` with a row per fact, by name."""
    polars = needed("polars", "polars", "a Polars frame")
    return polars.from_arrow(graph.facts())
