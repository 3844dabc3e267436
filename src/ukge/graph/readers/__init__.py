"""Facts in: one function for every format, and one boundary that checks them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ukge.errors import ConfigError
from ukge.graph.files import check_file
from ukge.graph.formats import Format, check_options
from ukge.graph.readers import (  # noqa: F401  (each registers its formats)
    conceptnet,
    delimited,
    frames,
    graphml,
    jsonl,
    nell,
    networkx_graphs,
    parquet,
    rdf,
    stringdb,
)
from ukge.graph.readers.formats import format_of_file, format_of_object, readers
from ukge.graph.readers.layout import ColumnMap
from ukge.graph.readers.parsed import Parsed, ReadReport, Request, Scaling, as_scaling
from ukge.graph.readers.vocabularies import as_vocabulary, read_vocabulary
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Vocabulary

__all__ = ["Format", "Parsed", "ReadReport", "Request", "read", "read_vocabulary", "read_with_report", "readers"]


def read(
    source: Any,
    *,
    format: str | None = None,  # noqa: A002  (the word users look for)
    columns: ColumnMap | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    entities: Vocabulary | str | Path | None = None,
    relations: Vocabulary | str | Path | None = None,
    relation: str | None = None,
    scale: Scaling | str | None = None,
    **options: Any,
) -> UncertainGraph:
    """Read facts from a file or from an object in memory (pandas, Arrow, NetworkX), checking every one.

    The format follows from the file's extension (`.gz` and `.zst` may come after it) or from `format`. `columns` says
    which column is which, by header name or by position from 0; `header` says whether the first line names the
    columns (by default it does if it holds names as in `ukge.graph.readers.layout.RECOGNISED`). With `entities` or
    `relations`, a vocabulary or a file of `id<TAB>name` lines, those columns hold ids; without, they hold names.
    `relation` is that of all facts in a source that has no column of relations, such as two proteins and a score.
    `scale` turns raw weights into confidences: a function on an array, or the text of a scale of
    `ukge.graph.normalise`. Further options belong to the format. Anything that is wrong is a `DataError`.
    """
    return read_with_report(
        source,
        format=format,
        columns=columns,
        header=header,
        delimiter=delimiter,
        entities=entities,
        relations=relations,
        relation=relation,
        scale=scale,
        **options,
    )[0]


def read_with_report(
    source: Any,
    *,
    format: str | None = None,  # noqa: A002
    columns: ColumnMap | None = None,
    header: bool | None = None,
    delimiter: str | None = None,
    entities: Vocabulary | str | Path | None = None,
    relations: Vocabulary | str | Path | None = None,
    relation: str | None = None,
    scale: Scaling | str | None = None,
    **options: Any,
) -> tuple[UncertainGraph, ReadReport]:
    """Read facts as `read` does, and say how many rows were read and which were skipped, and why."""
    is_path = isinstance(source, (str, os.PathLike))
    source = Path(source) if is_path else source
    name = format or (format_of_file(source, delimiter) if is_path else format_of_object(source))
    reader = readers.get(name)
    given = {"columns": columns, "header": header, "delimiter": delimiter, "relation": relation}
    options = {**{option: value for option, value in given.items() if value is not None}, **options}
    check_options(name, options, readers)
    if is_path != (reader.module is None):
        kind = "a file" if reader.module is None else f"an object of {reader.module}"
        raise ConfigError(f"reader '{name}' reads {kind}, not {type(source).__name__}", hint="Leave out ‹format›.")
    if is_path:
        check_file(source)
    request = Request(as_vocabulary(entities, "entity"), as_vocabulary(relations, "relation"), as_scaling(scale))
    parsed = reader.call(source, request, **options)
    graph = parsed.graph(request)
    report = ReadReport(
        source=parsed.where.source or name,
        format=name,
        rows=parsed.rows,
        facts=len(graph),
        skipped=dict(parsed.skipped),
        ignored_columns=parsed.ignored_columns,
    )
    return graph, report
