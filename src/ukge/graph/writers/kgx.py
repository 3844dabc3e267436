"""KGX, the exchange format of biolink's knowledge graphs: a file of edges and one of nodes, as TSV or JSON Lines.

Edges go to the file that is named, nodes beside it: `out_edges.tsv` has `out_nodes.tsv`, `out.tsv` has `out_nodes.tsv`.
Confidences stand in the slot `has_confidence_score`; whether a fact is predicted, in `knowledge_level`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ukge.errors import DataError
from ukge.graph.files import atomic_sink, extension_of
from ukge.graph.formats import Format, writers
from ukge.graph.nodes import ALIASES, ID, LABEL, TYPES
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.writers.network import Network, cell, is_predicted, refuse_others
from ukge.graph.writers.tables import JSON_LINES

EDGE_SLOTS = {"confidence": "has_confidence_score", "source": "primary_knowledge_source"}
"""The columns of facts that biolink has a slot for."""

NODE_SLOTS = {LABEL: "name", ALIASES: "synonym"}

_EDGE = ("id", "subject", "predicate", "object", "category", "knowledge_level", "agent_type")
_ASSOCIATION, _THING = "biolink:Association", "biolink:NamedThing"
_LEVELS = {True: ("prediction", "computational_model"), False: ("not_provided", "not_provided")}
_TSV = (".tsv", ".tab", ".txt")


def write_kgx(graph: UncertainGraph, sink: pa.NativeFile, path: Path) -> None:
    """Write the facts as edges, and beside them the entities as nodes."""
    write_network(Network.of(graph), sink, path)


def write_network(network: Network, sink: pa.NativeFile, path: Path) -> None:
    """Write the facts with all their columns as edges, and beside them the entities with what is known of them."""
    lines = extension_of(path) in JSON_LINES
    if not lines and extension_of(path) not in _TSV:
        raise DataError("KGX is written as TSV or JSON Lines", source=str(path), hint="Use .tsv or .jsonl.")
    if not lines:
        elsewhere = "Write KGX as JSON Lines instead: a name that ends in .jsonl."
        network.refuse(path, r"[\t\r\n]", "text holds a tab or a line end", elsewhere)
        _refuse_bars(network, path, elsewhere)
    refuse_others(path, [nodes_beside(path)])
    slots = {name: _slot(name, EDGE_SLOTS, _EDGE) for name in network.columns}
    header = (*_EDGE, *slots.values())
    _head(sink, header, lines=lines)
    number = 0
    for facts in network.facts():
        predicted = is_predicted(facts).tolist()
        for row, guess in zip(facts.to_pylist(), predicted, strict=True):
            level, agent = _LEVELS[guess]
            edge = [f"e{number}", row["head"], row["relation"], row["tail"], [_ASSOCIATION], level, agent]
            _line(sink, header, [*edge, *(row[name] for name in slots)], lines=lines)
            number += 1
    with atomic_sink(nodes_beside(path)) as beside:
        _nodes(network, beside, lines=lines)


def nodes_beside(edges: Path) -> Path:
    """Return where the nodes of a file of edges are."""
    stem, dot, rest = edges.name.partition(".")
    own = "nodes" if stem == "edges" else f"{stem.removesuffix('_edges')}_nodes"
    return edges.with_name(f"{own}{dot}{rest}")


def _nodes(network: Network, sink: pa.NativeFile, *, lines: bool) -> None:
    others = [name for name in network.nodes.column_names if name not in (ID, TYPES)]
    slots = {name: _slot(name, NODE_SLOTS, ("id", "category")) for name in others}
    header = ("id", "category", *slots.values())
    _head(sink, header, lines=lines)
    for row in network.nodes.to_pylist():
        types = row.get(TYPES) or [_THING]
        _line(sink, header, [row[ID], types, *(row[name] for name in slots)], lines=lines)


def _refuse_bars(network: Network, path: Path, hint: str) -> None:
    for name in network.nodes.column_names:
        column = network.nodes[name]
        if pa.types.is_list(column.type):
            wrong = [text for texts in column.to_pylist() if texts for text in texts if "|" in text]
            if wrong:
                what = f"{len(wrong):,} {name} hold a |, which stands between those of one entity in TSV: {wrong[0]!r}"
                raise DataError(what, source=str(path), hint=hint)


def _slot(name: str, slots: Mapping[str, str], taken: Sequence[str]) -> str:
    slot = slots.get(name, name)
    return f"{slot}_column" if slot in taken or (name not in slots and slot in slots.values()) else slot


def _head(sink: pa.NativeFile, header: Sequence[str], *, lines: bool) -> None:
    if not lines:
        sink.write(("\t".join(header) + "\n").encode())


def _line(sink: pa.NativeFile, header: Sequence[str], values: Sequence[Any], *, lines: bool) -> None:
    if lines:
        told = {name: value for name, value in zip(header, values, strict=True) if value is not None and value != []}
        sink.write((json.dumps(told, ensure_ascii=False) + "\n").encode())
    else:
        sink.write(("\t".join(map(cell, values)) + "\n").encode())


writers.register("kgx")(Format(write_kgx, network=write_network))
