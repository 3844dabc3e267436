"""Facts out: one function for every format. What a format cannot hold is an error, never a damaged file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa

from ukge.errors import DataError
from ukge.graph.files import atomic_sink, extension_of
from ukge.graph.formats import Format, check_options, format_of_path, writers
from ukge.graph.nodes import Nodes
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.writers import (  # noqa: F401  (each registers its formats)
    cx2,
    graphml,
    kgx,
    lines,
    rdf,
    sif,
    sssom,
    tables,
)
from ukge.graph.writers.network import Network

__all__ = ["Format", "network_format", "write", "write_network", "writers"]


def write(
    graph: UncertainGraph,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002  (the word users look for)
    **options: Any,
) -> None:
    """Write the facts of a graph, in order, by name.

    The format follows from the extension (`.gz` and `.zst` may come after it) or from `format`; further options belong
    to the format. Reading the file gives every fact back with its exact confidence and its source.
    """
    target = Path(path)
    name = format or format_of_path(target, writers)
    writer = writers.get(name)
    check_options(name, options, writers)
    if len(graph) == 0:
        raise DataError("there are no facts to write", source=str(target))
    with atomic_sink(target) as sink:
        writer.call(graph.compact(), sink, target, **options)


def network_format(path: Path, format: str | None = None) -> str | None:  # noqa: A002
    """Return the name of the format of networks that a file is to be written in, None if it is another format.

    Networks have nodes and edges with any columns; other formats hold plain facts, or tables.
    """
    known = [name for name in writers if writers.get(name).network is not None]
    if format is not None:
        return format if format in known else None
    return next((name for name in known if extension_of(path) in writers.get(name).extensions), None)


def write_network(path: Path, table: pa.Table, nodes: Nodes, *, format: str | None = None) -> None:  # noqa: A002
    """Write facts with all their columns (a table with head, relation and tail) and what is known of their entities.

    The format is one of networks: by the extension, .graphml, .cx2, .sif, or by name, kgx.
    """
    name = network_format(path, format)
    call = None if name is None else writers.get(name).network
    if call is None:
        listed = ", ".join(each for each in writers if writers.get(each).network is not None)
        raise DataError("is not written as a network", source=str(path), hint=f"Formats of networks: {listed}.")
    if len(table) == 0:
        raise DataError("there are no facts to write", source=str(path))
    with atomic_sink(path) as sink:
        call(Network.of_table(table, nodes), sink, path)
