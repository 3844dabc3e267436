"""Facts in: one function for every format, and one boundary that checks them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ukge.errors import ConfigError, DataError
from ukge.graph.bad_rows import BadRows, as_bad_rows, putting_aside
from ukge.graph.claims import Claims
from ukge.graph.files import check_file
from ukge.graph.formats import Format, check_options, format_of_file, is_from, readers
from ukge.graph.opening import Opening
from ukge.graph.readers import (  # noqa: F401  (each registers its formats)
    conceptnet,
    delimited,
    diseases,
    frames,
    graphml,
    graphrag,
    jsonl,
    kgx,
    lightrag,
    mitab,
    neo4j,
    networkx_graphs,
    open_targets,
    rdf,
    sssom,
    stringdb,
    tensors,
)
from ukge.graph.readers.faults import chosen
from ukge.graph.readers.layout import CLAIMS, FACTS, ColumnMap, Roles
from ukge.graph.readers.node_files import as_nodes, with_given_nodes
from ukge.graph.readers.parsed import Parsed, ReadReport, Request, Scaling, as_scaling, below_least
from ukge.graph.readers.vocabularies import as_vocabulary, read_vocabulary
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Vocabulary

__all__ = [
    "Format",
    "Parsed",
    "ReadReport",
    "Request",
    "read",
    "read_claims",
    "read_vocabulary",
    "read_with_report",
    "readers",
]

_UNSAID = ("columns", "header", "delimiter", "relation")  # None is as good as nothing


def read(
    source: Any,
    *,
    format: str | None = None,  # noqa: A002  (the word users look for)
    columns: ColumnMap | None = None,
    entities: Vocabulary | str | Path | None = None,
    relations: Vocabulary | str | Path | None = None,
    nodes: Any = None,
    scale: Scaling | str | None = None,
    on_report: Callable[[ReadReport], None] | None = None,
    **options: Any,
) -> UncertainGraph:
    """Read facts from a file or from an object in memory (pandas, Arrow, NetworkX), checking every one.

    The format follows from what the file holds (STRING, KGX, PSI-MITAB, …), else from its extension (`.gz` and `.zst`
    may come after it), or from `format`. `columns` says which column is which, by header name or by position from 0.
    With `entities` or `relations`, a vocabulary or a file
    of `id<TAB>name` lines, those columns hold ids; without, they hold names. `nodes` says what is known of the entities
    (a table with the columns id and any of label, type, description, aliases: a file, a frame or `Nodes`); it travels
    with the graph, and is right where the source itself says something else. `scale` turns raw weights into
    confidences: a function on an array, or the text of a scale of `ukge.graph.normalise`; with `min_confidence`, facts
    below it are left out, and entities that have no others. `on_report` hears how many rows were read, and which were
    skipped.

    Further options belong to the format. `relation` is that of all facts in a source that has no column of relations,
    such as two proteins and a score. Delimited text takes `delimiter`, and `header` says whether its first line names
    the columns (by default it does if it holds names as in `ukge.graph.readers.layout.RECOGNISED`).

    Anything that is wrong is a `DataError`. With `bad_rows`, rows that are no facts are put aside and the others are
    read: in a file of that name, with line, column, value and reason, or in a `BadRows`, which gives them as a frame.
    Of more than `most_bad` of the rows (a share such as "1%" or 0.01, or a number of rows) nothing is made: that is a
    `TooManyBadRowsError`. A source that cannot be read as a whole is an error either way.
    """
    names: dict[str, Any] = {"entities": entities, "relations": relations, "nodes": nodes}
    graph, report = read_with_report(source, format=format, columns=columns, scale=scale, **names, **options)
    if on_report is not None:
        on_report(report)
    return graph


def read_with_report(
    source: Any,
    *,
    format: str | None = None,  # noqa: A002
    entities: Vocabulary | str | Path | None = None,
    relations: Vocabulary | str | Path | None = None,
    nodes: Any = None,
    scale: Scaling | str | None = None,
    bad_rows: BadRows | str | Path | None = None,
    most_bad: str | float | None = None,
    **options: Any,
) -> tuple[UncertainGraph, ReadReport]:
    """Read facts as `read` does, and say how many rows were read and which were skipped, and why."""
    names: dict[str, Any] = {"entities": entities, "relations": relations, "nodes": nodes}
    graph, _, report = _read(source, FACTS, format, names, scale, bad_rows, most_bad, options)
    return graph, report


def read_claims(
    source: Any,
    *,
    format: str | None = None,  # noqa: A002
    scale: Scaling | str | None = None,
    bad_rows: BadRows | str | Path | None = None,
    most_bad: str | float | None = None,
    on_report: Callable[[ReadReport], None] | None = None,
    **options: Any,
) -> Claims:
    """Read claims: every row is one, of the source that it names, and may tell `time`, `document` and `span`.

    These columns are found by the usual names (extractor, model, annotator, …; date, timestamp; doc, url, file;
    offset), or as `columns` says; without a header they follow the confidence in this order. All else is as for `read`.
    """
    graph, besides, report = _read(source, CLAIMS, format, {}, scale, bad_rows, most_bad, options)
    if on_report is not None:
        on_report(report)
    return Claims.of_graph(graph, **besides)


def _read(
    source: Any,
    wanted: Roles,
    format: str | None,  # noqa: A002
    names: Mapping[str, Any],
    scale: Scaling | str | None,
    bad_rows: BadRows | str | Path | None,
    most_bad: str | float | None,
    options: dict[str, Any],
) -> tuple[UncertainGraph, Mapping[str, Any], ReadReport]:
    """Return a checked graph, what stands beside its facts, and what was done with the source."""
    entities, relations, nodes = (names.get(what) for what in ("entities", "relations", "nodes"))
    is_path = isinstance(source, (str, os.PathLike))
    source = Path(source) if is_path else source
    options = {option: value for option, value in options.items() if value is not None or option not in _UNSAID}
    least = options.pop("min_confidence", None)
    name = format or (format_of_file(source, options) if is_path else _format_of_object(source))
    reader = readers.get(name)
    check_options(name, options, readers)
    if is_path != (reader.module is None):
        kind = "a file" if reader.module is None else f"an object of {reader.module}"
        raise ConfigError(f"reader '{name}' reads {kind}, not {type(source).__name__}", hint="Leave out ‹format›.")
    if is_path and not (reader.recognise is not None and source.is_dir() and reader.recognise(Opening(source))):
        check_file(source)
    if not reader.by_id and not (entities is None and relations is None):
        raise DataError(f"format {name} holds names, not ids", source=str(source), hint="Read it without vocabularies.")
    bad = as_bad_rows(bad_rows, most_bad)
    known = as_vocabulary(entities, "entity"), as_vocabulary(relations, "relation")
    request = Request(*known, as_scaling(scale), bad, least, wanted)
    with putting_aside(bad, str(source) if is_path else name) as aside:
        parsed = reader.call(source, request, **options)
        aside.rows = parsed.rows + aside.bad
        graph, besides = parsed.checked(request)
        sure = _above(graph, request)
    below = len(graph) - int(sure.sum())
    skipped = dict(parsed.skipped)
    if below:
        skipped[below_least(least)] = skipped.get(below_least(least), 0) + below
        graph = graph[sure] if any(each is not None for each in known) else graph[sure].compact()
        besides = {role: chosen(column, sure) for role, column in besides.items()}
    given = None if nodes is None else as_nodes(nodes)
    if given is not None:
        graph = with_given_nodes(graph, given, str(nodes) if isinstance(nodes, (str, os.PathLike)) else "nodes")
    said = max(len(parsed.nodes or ()), len(given or ()), len(graph.nodes))
    report = ReadReport(
        source=parsed.where.source or name,
        format=name,
        rows=parsed.rows if bad is None else aside.rows,
        facts=len(graph),
        skipped=skipped,
        ignored_columns=parsed.ignored_columns,
        nodes=len(graph.nodes),
        nodes_apart=said - len(graph.nodes),
        aside=aside,
        notes=parsed.notes,
    )
    return graph, besides, report


def _above(graph: UncertainGraph, request: Request) -> npt.NDArray[np.bool_]:
    """Return which facts are confident enough."""
    if request.least is None:
        return np.ones(len(graph), np.bool_)
    if not 0.0 <= request.least <= 1.0:
        raise ConfigError(f"‹min_confidence› is {request.least:g}", hint="Give a number from 0 to 1.")
    sure = graph.confidence >= request.least
    if not sure.any():
        most = f"The highest is {graph.confidence.max():g}." if len(graph) else "Lower it."
        raise DataError(f"no fact has a confidence of {request.least:g} or more", hint=most)
    return sure


def is_readable(source: object) -> bool:
    """Return whether an object in memory has a format."""
    known = _modules().values()
    return hasattr(source, "__arrow_c_stream__") or any(is_from(source, module) for module in known)


def _format_of_object(source: object) -> str:
    known = _modules()
    for name, module in known.items():
        if is_from(source, module):
            return name
    if hasattr(source, "__arrow_c_stream__"):
        return "arrow"
    raise ConfigError(
        f"cannot read facts from an object of type {type(source).__name__}",
        hint=f"Give a path, or an object of one of: {', '.join(known)}.",
    )


def _modules() -> dict[str, str]:
    """Return the module whose objects each format reads; formats of files have none."""
    modules = {name: readers.get(name).module for name in readers}
    return {name: module for name, module in modules.items() if module is not None}
