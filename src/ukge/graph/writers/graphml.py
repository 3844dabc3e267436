"""GraphML as NetworkX, Gephi and others read it: a node per entity, a directed edge per fact, parallel ones too."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from ukge.graph.formats import Format, writers
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.writers.lines import batches, one_by_one, refuse, write_joined

_NOT_IN_XML = r"[\x00-\x08\x0b\x0c\x0e-\x1f\x{FFFE}\x{FFFF}]"
_WHITE = {"\t": "&#9;", "\n": "&#10;", "\r": "&#13;"}
_OPENING = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key id="relation" for="edge" attr.name="relation" attr.type="string"/>
<key id="confidence" for="edge" attr.name="confidence" attr.type="double"/>
"""
_SOURCE_KEY = '<key id="source" for="edge" attr.name="source" attr.type="string"/>\n'


def write_graphml(graph: UncertainGraph, sink: pa.NativeFile, path: Path) -> None:
    """Write nodes whose ids are the entity names, and edges with the data relation, confidence and source."""
    what = "name holds a character that XML cannot hold"
    refuse(graph, path, _NOT_IN_XML, what, "Write JSON Lines or Parquet instead, or rename it.")
    sink.write((_OPENING + (_SOURCE_KEY if graph.source is not None else "")).encode())
    sink.write(b'<graph edgedefault="directed">\n')
    for name in graph.entities:
        sink.write(f"<node id={_attribute(name)}/>\n".encode())
    text = one_by_one(_text)
    origin = one_by_one(lambda name: f'<data key="source">{_text(name)}</data>')
    for batch in batches(graph, entity=one_by_one(_attribute), relation=text, source=origin, null=""):
        parts = ["<edge source=", batch.head, " target=", batch.tail, '><data key="relation">', batch.relation]
        parts += ['</data><data key="confidence">', batch.confidence, "</data>"]
        write_joined(sink, [*parts, "" if batch.source is None else batch.source, "</edge>\n"])
    sink.write(b"</graph>\n</graphml>\n")


def _text(name: str) -> str:
    from xml.sax.saxutils import escape  # noqa: PLC0415 — it loads a web client, and few write GraphML

    return escape(name, _WHITE)


def _attribute(name: str) -> str:
    from xml.sax.saxutils import quoteattr  # noqa: PLC0415

    return quoteattr(name, _WHITE)


writers.register("graphml")(Format(write_graphml, (".graphml",)))
