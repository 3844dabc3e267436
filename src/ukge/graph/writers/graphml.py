"""GraphML as NetworkX, Gephi and others read it: a node per entity, a directed edge per fact, parallel ones too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ukge.graph.columns import single
from ukge.graph.fact import TRIPLE
from ukge.graph.formats import Format, writers
from ukge.graph.nodes import ID
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.writers.lines import joined, write_joined
from ukge.graph.writers.network import Network, cell, each_once

_NOT_IN_XML = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x{FFFE}\x{FFFF}]"
_WHITE = {"\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
_OPENING = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="relation" for="edge" attr.name="relation" attr.type="string"/>
"""


def write_graphml(graph: UncertainGraph, sink: pa.NativeFile, path: Path) -> None:
    """Write nodes whose ids are the entity names, and edges with the data relation, confidence and source."""
    write_network(Network.of(graph), sink, path)


def write_network(network: Network, sink: pa.NativeFile, path: Path) -> None:
    """Write nodes whose ids are the entity names, with what is known of them, and edges with all their columns."""
    what = "name or text holds a character that XML cannot hold"
    network.refuse(path, _NOT_IN_XML, what, "Write JSON Lines or Parquet instead, or rename it.")
    known = [name for name in network.nodes.column_names if name != ID]
    sink.write(_OPENING.encode())
    edge_keys = {name: _attribute(name) for name in network.columns}
    node_keys = {name: _attribute(f"node.{name}") for name in known}
    sink.write(_keys("edge", edge_keys, network.columns).encode())
    sink.write(_keys("node", node_keys, {name: network.nodes[name].type for name in known}).encode())
    sink.write(b'<graph edgedefault="directed">\n')
    for row in network.nodes.to_pylist():
        told = "".join(
            f"<data key={key}>{_text(cell(row[name]))}</data>"
            for name, key in node_keys.items()
            if row[name] is not None and row[name] != []
        )
        end = f">{told}</node>" if told else "/>"
        sink.write(f"<node id={_attribute(row[ID])}{end}\n".encode())
    for facts in network.facts():
        head, relation, tail = (
            each_once(single(facts, name), _text if name == "relation" else _attribute) for name in TRIPLE
        )
        parts = ["<edge source=", head, " target=", tail, '><data key="relation">', relation, "</data>"]
        write_joined(sink, [*parts, *(_data(facts, name, key) for name, key in edge_keys.items()), "</edge>\n"])
    sink.write(b"</graph>\n</graphml>\n")


def _data(facts: pa.Table, name: str, key: str) -> pa.Array:
    """Return what is said of each fact as an element, nothing where nothing is said."""
    column = single(facts, name)
    text = each_once(column, _text) if pa.types.is_large_string(column.type) else column.cast(pa.large_string())
    return pc.if_else(pc.is_valid(text), joined([f"<data key={key}>", text.fill_null(""), "</data>"]), "")


def _keys(what: str, keys: Mapping[str, str], types: Mapping[str, pa.DataType]) -> str:
    return "".join(
        f'<key id={key} for="{what}" attr.name={_attribute(name)} attr.type="{_type(types[name])}"/>\n'
        for name, key in keys.items()
    )


def _type(kind: pa.DataType) -> str:
    if pa.types.is_floating(kind):
        return "double"
    return "long" if pa.types.is_integer(kind) else "boolean" if pa.types.is_boolean(kind) else "string"


def _text(name: str) -> str:
    from xml.sax.saxutils import escape  # noqa: PLC0415 — it loads a web client, and few write GraphML

    return escape(name, _WHITE)


def _attribute(name: str) -> str:
    from xml.sax.saxutils import quoteattr  # noqa: PLC0415

    return quoteattr(name, _WHITE)


writers.register("graphml")(Format(write_graphml, (".graphml",), network=write_network))
