"""JSON Lines: one object per fact."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

from ukge.graph.formats import Format
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.writers.formats import writers
from ukge.graph.writers.lines import batches, one_by_one, write_joined


def write_jsonl(graph: UncertainGraph, sink: pa.NativeFile, path: Path) -> None:  # noqa: ARG001  (one signature for all)
    """Write an object with the keys head, relation, tail, confidence and, if the graph has any, source."""
    quoted = one_by_one(lambda name: json.dumps(name, ensure_ascii=False))
    for batch in batches(graph, entity=quoted, relation=quoted, source=quoted, null="null"):
        parts = ['{"head": ', batch.head, ', "relation": ', batch.relation, ', "tail": ', batch.tail]
        parts += [', "confidence": ', batch.confidence]
        write_joined(sink, [*parts, *([] if batch.source is None else [', "source": ', batch.source]), "}\n"])


writers.register("jsonl")(Format(write_jsonl, (".jsonl", ".ndjson")))
