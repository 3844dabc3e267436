"""CX2, the network format of Cytoscape and NDEx: entities and facts with their attributes, and a look.

Edges are wider the more confident they are, and dashed where they are predicted.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from ukge.graph.fact import TRIPLE
from ukge.graph.formats import Format, writers
from ukge.graph.nodes import ID, LABEL
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.writers.network import PREDICTED, STATUS, Network

_TAKEN = ("name", "represents")
"""Attributes of nodes that CX2 itself knows: what is shown, and which entity it is."""

_LOOK: dict[str, Any] = {
    "default": {
        "network": {"NETWORK_BACKGROUND_COLOR": "#FFFFFF"},
        "node": {
            "NODE_SHAPE": "ellipse",
            "NODE_WIDTH": 34,
            "NODE_HEIGHT": 34,
            "NODE_BACKGROUND_COLOR": "#DCE6F2",
            "NODE_BORDER_COLOR": "#4A6A8F",
            "NODE_BORDER_WIDTH": 1,
            "NODE_LABEL_COLOR": "#1B2733",
            "NODE_LABEL_FONT_SIZE": 11,
        },
        "edge": {
            "EDGE_WIDTH": 2,
            "EDGE_LINE_STYLE": "solid",
            "EDGE_LINE_COLOR": "#4A6A8F",
            "EDGE_TARGET_ARROW_SHAPE": "triangle",
            "EDGE_TARGET_ARROW_COLOR": "#4A6A8F",
        },
    },
    "nodeMapping": {"NODE_LABEL": {"type": "PASSTHROUGH", "definition": {"attribute": "name", "type": "string"}}},
    "edgeMapping": {
        "EDGE_WIDTH": {
            "type": "CONTINUOUS",
            "definition": {
                "attribute": "confidence",
                "type": "double",
                "map": [
                    {"max": 0.0, "maxVPValue": 0.6, "includeMax": False},
                    {
                        "min": 0.0,
                        "max": 1.0,
                        "minVPValue": 0.6,
                        "maxVPValue": 7.0,
                        "includeMin": True,
                        "includeMax": True,
                    },
                    {"min": 1.0, "minVPValue": 7.0, "includeMin": False},
                ],
            },
        },
    },
}
_DASHED: dict[str, Any] = {
    "EDGE_LINE_STYLE": {
        "type": "DISCRETE",
        "definition": {"attribute": STATUS, "type": "string", "map": [{"v": PREDICTED, "vp": "dashed"}]},
    },
}


def write_cx2(graph: UncertainGraph, sink: pa.NativeFile, path: Path) -> None:
    """Write a network with a node per entity and an edge per fact, which Cytoscape opens as it is."""
    write_network(Network.of(graph), sink, path)


def write_network(network: Network, sink: pa.NativeFile, path: Path) -> None:
    """Write entities with what is known of them, and facts with all their columns."""
    node_names = {name: _free(name, _TAKEN) for name in network.nodes.column_names if name not in (ID, LABEL)}
    edge_names = {name: _free(name, ("interaction",)) for name in network.columns}
    node_types = {own: network.nodes[name].type for name, own in node_names.items()}
    edge_types = {own: network.columns[name] for name, own in edge_names.items()}
    declared = {
        "networkAttributes": {"name": {"d": "string"}},
        "nodes": {**{name: {"d": "string"} for name in _TAKEN}, **_declared(node_types)},
        "edges": {"interaction": {"d": "string"}, **_declared(edge_types)},
    }
    counts = {"attributeDeclarations": 1, "networkAttributes": 1, "nodes": len(network.entities), "edges": len(network)}
    metadata = [{"name": name, "elementCount": count} for name, count in {**counts, "visualProperties": 1}.items()]
    look = {**_LOOK, "edgeMapping": _LOOK["edgeMapping"] | (_DASHED if STATUS in network.columns else {})}
    sink.write(b"[")
    sink.write((_json({"CXVersion": "2.0", "hasFragments": False}) + ",\n").encode())
    sink.write((_json({"metaData": metadata}) + ",\n").encode())
    sink.write((_json({"attributeDeclarations": [declared]}) + ",\n").encode())
    sink.write((_json({"networkAttributes": [{"name": path.name.partition(".")[0]}]}) + ",\n").encode())
    _aspect(sink, "nodes", _nodes(network, node_names))
    _aspect(sink, "edges", _edges(network, edge_names))
    sink.write((_json({"visualProperties": [look]}) + ",\n").encode())
    sink.write((_json({"status": [{"success": True, "error": ""}]}) + "]\n").encode())


def _nodes(network: Network, names: Mapping[str, str]) -> Iterable[dict[str, Any]]:
    for number, row in enumerate(network.nodes.to_pylist()):
        own = {"name": row.get(LABEL) or row[ID], "represents": row[ID]}
        yield {"id": number, "v": own | _said(row, names)}


def _edges(network: Network, names: Mapping[str, str]) -> Iterable[dict[str, Any]]:
    number = 0
    for facts in network.facts():
        heads, tails = (column.tolist() for column in network.ends(facts))
        for head, tail, row in zip(heads, tails, facts.to_pylist(), strict=True):
            told = {"interaction": row["relation"]}
            yield {"id": number, "s": head, "t": tail, "v": told | _said(row, names)}
            number += 1


def _said(row: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return what a row says under the names that it has in the file: no attribute where it says nothing."""
    values = ((own, row[name]) for name, own in names.items() if name not in TRIPLE)
    return {own: value for own, value in values if value is not None and value != [] and not _is_nan(value)}


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and not math.isfinite(value)


def _aspect(sink: pa.NativeFile, name: str, elements: Iterable[dict[str, Any]]) -> None:
    sink.write(f'{{"{name}": ['.encode())
    for place, element in enumerate(elements):
        sink.write(((",\n" if place else "\n") + _json(element)).encode())
    sink.write(b"]},\n")


def _declared(types: Mapping[str, pa.DataType]) -> dict[str, dict[str, str]]:
    return {name: {"d": _type(kind)} for name, kind in types.items()}


def _type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return "list_of_string"
    if pa.types.is_floating(kind):
        return "double"
    return "long" if pa.types.is_integer(kind) else "boolean" if pa.types.is_boolean(kind) else "string"


def _free(name: str, taken: Iterable[str]) -> str:
    return f"{name}_column" if name in taken else name


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


writers.register("cx2")(Format(write_cx2, (".cx2",), network=write_network))
