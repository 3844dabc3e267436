"""SIF, Cytoscape's simplest format: a fact per line and nothing but names, so what is said of them stands in tables.

pairs.sif          head, relation, tail
pairs.edges.tsv    what is said of each fact, by the name that Cytoscape gives its edge: head (relation) tail
pairs.nodes.tsv    what is known of the entities, if anything is
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from ukge.errors import DataError
from ukge.graph.columns import single
from ukge.graph.fact import TRIPLE
from ukge.graph.files import compression_of
from ukge.graph.formats import Format, writers
from ukge.graph.nodes import ID
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.writers.lines import joined, write_joined
from ukge.graph.writers.network import Network, cell, refuse_others
from ukge.graph.writers.tables import write_table

_NOT_IN_LINES = r"[\t\r\n]"
_ELSEWHERE = "Write CX2 or GraphML instead."


def write_sif(graph: UncertainGraph, sink: pa.NativeFile, path: Path) -> None:
    """Write the facts, and beside them the tables of their confidences and of what is known of the entities."""
    write_network(Network.of(graph), sink, path)


def write_network(network: Network, sink: pa.NativeFile, path: Path) -> None:
    """Write the facts, and beside them the tables of their columns and of what is known of the entities."""
    if compression_of(path) is not None:
        raise DataError("Cytoscape reads no compressed SIF", source=str(path), hint=f"Write to {path.stem} instead.")
    network.refuse(path, _NOT_IN_LINES, "text holds a tab or a line end", _ELSEWHERE)
    beside = [path.with_suffix(f".{each}.tsv") for each in ("edges", "nodes")]
    refuse_others(path, beside)
    tables = []
    for facts in network.facts():
        head, relation, tail = (single(facts, name) for name in TRIPLE)
        write_joined(sink, [head, "\t", relation, "\t", tail, "\n"])
        named = {"name": joined([head, " (", relation, ") ", tail])}
        tables.append(pa.table(named | {name: facts[name] for name in network.columns}))
    write_table(beside[0], pa.concat_tables(tables))
    if network.nodes.num_columns > 1:
        columns = {"name": network.nodes[ID]}
        others = [name for name in network.nodes.column_names if name != ID]
        known = {name if name != "name" else "name_column": _cells(network.nodes[name]) for name in others}
        write_table(beside[1], pa.table(columns | known))


def _cells(column: pa.ChunkedArray) -> pa.Array:
    if not pa.types.is_list(column.type):
        return column.combine_chunks()
    return pa.array([cell(each) for each in column.to_pylist()], pa.large_string())


writers.register("sif")(Format(write_sif, (".sif",), network=write_network))
