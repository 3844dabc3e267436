"""Facts as other libraries of embeddings hold them: PyKEEN's `TriplesFactory`, PyTorch Geometric's `HeteroData`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ukge.errors import DataError
from ukge.graph.columns import Where
from ukge.graph.formats import Format, readers
from ukge.graph.readers.parsed import Parsed, Request

WEIGHTS = ("confidence", "edge_weight", "edge_attr")
"""Where the confidences of edges are looked for."""


def read_pykeen(factory: Any, _: Request, *, confidence: Any = None) -> Parsed:
    """Read a `TriplesFactory`, by the names of its entities and relations.

    PyKEEN knows no confidences: `confidence` is an array of them in the order of its triples, or one for all.
    """
    where = Where("PyKEEN TriplesFactory", "fact")
    if not hasattr(factory, "entity_to_id"):
        what = "it has ids without names"
        raise DataError(what, source=where.source, hint="Give a TriplesFactory, not a CoreTriplesFactory.")
    triples = factory.mapped_triples.detach().cpu().numpy()
    if confidence is None:
        hint = "Give ‹confidence=...›: an array in the order of its triples, or one number for all."
        raise DataError("it has no confidences", source=where.source, hint=hint)
    entities, relations = (_names(each) for each in (factory.entity_to_id, factory.relation_to_id))
    columns = (entities[triples[:, 0]], relations[triples[:, 1]], entities[triples[:, 2]])
    return _parsed(columns, _weights(confidence, len(triples), where), where)


def read_pyg(data: Any, _: Request, *, weight: str | None = None) -> Parsed:
    """Read a `HeteroData`: a fact per edge. `weight` names what holds the confidences of edges.

    Nodes are called by their `name`, a list; where they have none, by their kind and number, as `gene:17`.
    """
    where = Where("HeteroData", "edge")
    names = {kind: _called(kind, data[kind], where) for kind in data.node_types}
    parts: list[tuple[Any, Any, Any]] = []
    weights: list[npt.NDArray[np.float64]] = []
    for first, relation, last in data.edge_types:
        edges = data[first, relation, last]
        index = edges.edge_index.detach().cpu().numpy()
        held = [weight] if weight is not None else [each for each in WEIGHTS if each in edges]
        if not held or held[0] not in edges:
            hint = f"Say which attribute holds them: ‹weight=NAME›. Looked for: {', '.join(WEIGHTS)}."
            raise DataError(f"edges of {relation!r} have no confidences", source=where.source, hint=hint)
        values = edges[held[0]].detach().cpu().numpy()
        flat = values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values
        weights.append(_weights(flat, len(index[0]), where))
        parts.append((names[first][index[0]], np.full(len(index[0]), relation, dtype=object), names[last][index[1]]))
    if not parts:
        raise DataError("it has no edges", source=where.source, hint="Give one that has some.")
    columns = tuple(np.concatenate(each) for each in zip(*parts, strict=True))
    return _parsed(columns, np.concatenate(weights), where)


def _names(ids: dict[str, int]) -> npt.NDArray[Any]:
    names = np.empty(max(ids.values(), default=-1) + 1, dtype=object)
    for name, place in ids.items():
        names[place] = name
    return names


def _called(kind: str, nodes: Any, where: Where) -> npt.NDArray[Any]:
    if "name" not in nodes:
        return np.array([f"{kind}:{number}" for number in range(nodes.num_nodes)], dtype=object)
    names = np.array(list(nodes["name"]), dtype=object)
    if nodes.num_nodes is not None and len(names) != nodes.num_nodes:
        what = f"{nodes.num_nodes:,} nodes of {kind!r} have {len(names):,} names"
        raise DataError(what, source=where.source, hint="Give each node one.")
    return names


def _weights(given: Any, length: int, where: Where) -> npt.NDArray[np.float64]:
    values = np.asarray(given, dtype=np.float64)
    if values.ndim == 0:
        return np.full(length, float(values))
    if values.shape != (length,):
        shape = " × ".join(f"{size:,}" for size in values.shape)
        hint = "Give one number for each fact, in the same order."
        raise DataError(f"{length:,} facts need as many confidences, not {shape}", source=where.source, hint=hint)
    return values


def _parsed(columns: Any, weights: npt.NDArray[np.float64], where: Where) -> Parsed:
    head, relation, tail = (pa.array(column, type=pa.large_string()) for column in columns)
    return Parsed(head=head, relation=relation, tail=tail, weight=weights, source=None, where=where, rows=len(weights))


readers.register("pykeen")(Format(read_pykeen, module="pykeen", by_id=False))
readers.register("pyg")(Format(read_pyg, module="torch_geometric", by_id=False))
