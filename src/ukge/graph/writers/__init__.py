"""Facts out: one function for every format. What a format cannot hold is an error, never a damaged file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ukge.errors import DataError
from ukge.graph.files import atomic_sink
from ukge.graph.formats import Format, check_options, format_of_path, writers
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.writers import graphml, lines, rdf, tables  # noqa: F401  (each registers its formats)

__all__ = ["Format", "write", "writers"]


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
