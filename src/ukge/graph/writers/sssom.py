"""SSSOM: facts as mappings between terms, with labels where they are known.

Its names are CURIEs, and a source says how a mapping was found (semapv:…), so other facts are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ukge.errors import SHOWN, DataError, Problem
from ukge.graph.formats import Format, writers
from ukge.graph.nodes import LABEL
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.writers.lines import batches, write_joined

UNSPECIFIED = "semapv:UnspecifiedMatching"
"""What SSSOM has for a mapping of which nobody says how it was found."""

_COLUMNS = (
    "subject_id", "subject_label", "predicate_id", "object_id", "object_label", "mapping_justification", "confidence"
)  # fmt: skip
_METADATA = (
    "#mapping_set_id: https://w3id.org/ukge/mappings/{fingerprint}\n"
    "#license: https://w3id.org/sssom/license/unspecified\n"
)
_BUILT_IN = ("owl", "rdf", "rdfs", "semapv", "skos", "sssom")
_RESOLVER = "https://bioregistry.io/"  # a graph holds short names alone; this resolves those of any registered prefix
_CURIE = r"^[A-Za-z_][^\s:]*:[^\s]+$"
_JUSTIFICATION = r"^semapv:[^\s]+$"
_HINT = "SSSOM maps terms, such as HP:0000023 skos:exactMatch MP:0003355. Write TSV instead."


def write_sssom(graph: UncertainGraph, sink: pa.NativeFile, path: Path) -> None:
    """Write the facts as mappings below their metadata."""
    columns = {"entity": graph.entities.names, "relation": graph.relations.names}
    _refuse(columns, _CURIE, "is no CURIE", path)
    if graph.source is not None:
        said = graph.source.cast(pa.large_string()).drop_null().unique()
        _refuse(
            {"source": said}, _JUSTIFICATION, "is no justification of a mapping, such as semapv:LexicalMatching", path
        )
    labels = graph.nodes.aligned(graph.entities.names, LABEL).fill_null("")
    labels = pc.replace_substring_regex(labels, r"[\t\r\n]+", " ")
    sink.write(_METADATA.format(fingerprint=graph.fingerprint[:16]).encode())
    both = pa.concat_arrays(list(columns.values()))
    prefixes = pc.unique(pc.list_element(pc.split_pattern(both, ":", max_splits=1), 0)).to_pylist()
    unknown = sorted(set(prefixes) - set(_BUILT_IN))
    told = "".join(f'#  {prefix}: "{_RESOLVER}{prefix}:"\n' for prefix in unknown)
    sink.write(f"#curie_map:\n{told}".encode() if told else b"")
    sink.write(("\t".join(_COLUMNS) + "\n").encode())
    row = 0
    for batch in batches(graph, entity=_same, relation=_same, source=_same, null=UNSPECIFIED):
        rows = slice(row, row + len(batch.head))
        subject, thing = (labels.take(pa.array(ids[rows])) for ids in (graph.head, graph.tail))
        why = UNSPECIFIED if batch.source is None else batch.source
        cells = [batch.head, subject, batch.relation, batch.tail, thing, why, batch.confidence]
        write_joined(sink, [*[part for cell in cells for part in (cell, "\t")][:-1], "\n"])
        row = rows.stop


def _refuse(columns: Mapping[str, pa.Array], pattern: str, what: str, path: Path) -> None:
    """Raise `DataError` naming what does not match a pattern."""
    wrong = [
        (column, name)
        for column, names in columns.items()
        for name in names.filter(pc.invert(pc.match_substring_regex(names, pattern))).to_pylist()
    ]
    if wrong:
        problems = [Problem(what, None, column, name) for column, name in wrong[:SHOWN]]
        told = f"{len(wrong):,} names cannot be written in this format"
        raise DataError(told, source=str(path), problems=problems, count=len(wrong), hint=_HINT)


def _same(names: pa.Array) -> pa.Array:
    return names


writers.register("sssom")(Format(write_sssom))
