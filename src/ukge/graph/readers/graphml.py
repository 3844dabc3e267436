"""GraphML: every directed edge with a relation and a confidence is a fact, read as a stream.

Parsed by expat directly, which knows its line at every moment; document type declarations are refused, so that no
entity can be made to grow.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np

from ukge.errors import DataError
from ukge.graph.checks import Findings, Where
from ukge.graph.columns import names_column
from ukge.graph.files import DAMAGED_HINT, damaged, open_bytes
from ukge.graph.formats import Format, readers
from ukge.graph.readers.layout import FACTS, RECOGNISED, ColumnMap, edge_attributes
from ukge.graph.readers.parsed import Parsed, Request

_HINT = (
    "Every edge needs data for its relation and its confidence; ‹columns=...› names the attributes if they differ, and "
    "‹relation=NAME› gives all edges one relation."
)


def read_graphml(
    path: Path,
    request: Request,  # noqa: ARG001  (one signature for all)
    *,
    columns: ColumnMap | None = None,
    relation: str | None = None,
    name: str | None = None,
) -> Parsed:
    """Read the edges of a GraphML file.

    `columns` names the edge attributes that hold relation, confidence and source; with `relation`, all facts have that
    one. The name of an entity is the id of its node, or the node attribute called `name`.
    """
    document = _Document(path, columns, relation, name)
    parser = expat.ParserCreate()
    parser.buffer_text = True
    document.listen(parser)
    try:
        with open_bytes(path) as stream:
            parser.ParseFile(stream)
    except expat.ExpatError as error:
        what = f"is not well-formed XML: {expat.ErrorString(error.code)}"
        document.found.add(what, error.lineno, str(error.offset), None, "Write or fetch the file again.")
    except OSError as error:
        document.found.add(damaged(path, error), parser.CurrentLineNumber, None, None, DAMAGED_HINT)
    document.found.stop(parser.CurrentLineNumber)
    return document.parsed()


class _Document:
    """The facts of a GraphML document, gathered while it streams by."""

    def __init__(self, path: Path, columns: ColumnMap | None, relation: str | None, name: str | None) -> None:
        self.found = Findings(str(path))
        self._needed = tuple(role for role in ("relation", "confidence") if role in FACTS.given(relation).needed)
        self._relation = relation
        self._columns = edge_attributes(columns)
        self._name = name
        self._keys: dict[str, tuple[str, str]] = {}
        self._defaults: dict[str, str] = {}
        self._names: dict[str, str] = {}
        self._edges: list[tuple[str, str, str, float, str | None, int]] = []
        self._ignored: dict[str, None] = {}
        self._directed = True
        self._attributes: dict[str, str] = {}
        self._data: dict[str, str] = {}
        self._key = ""
        self._line = 0
        self._text: list[str] | None = None
        self._parser: Any = None

    def listen(self, parser: Any) -> None:
        self._parser = parser
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._characters
        parser.StartDoctypeDeclHandler = self._doctype

    def parsed(self) -> Parsed:
        heads, tails, relations, confidences, sources, lines = (
            [list(column) for column in zip(*self._edges, strict=True)] if self._edges else [[] for _ in range(6)]
        )
        at = np.array(lines, np.int64)
        has_source = "source" in self._edge_attributes()
        return Parsed(
            head=names_column([self._names.get(head, head) for head in heads], "head"),
            relation=names_column(relations, "relation"),
            tail=names_column([self._names.get(tail, tail) for tail in tails], "tail"),
            weight=np.array(confidences, np.float64),
            source=sources if has_source else None,
            where=Where(self.found.source, "line", lambda rows: at[rows].tolist()),
            rows=len(self._edges),
            ignored_columns=tuple(self._ignored),
        )

    def _edge_attributes(self) -> dict[str, str]:
        """Return the key id of each role: as `columns` says, else by recognised name."""
        ids = {attribute: key for key, (domain, attribute) in self._keys.items() if domain in ("edge", "all")}
        found = {}
        for role in (*self._needed, "source"):
            wanted = [self._columns[role]] if role in self._columns else RECOGNISED[role]
            known = [ids[attribute] for attribute in wanted if attribute in ids]
            if known:
                found[role] = known[0]
        return found

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        tag = tag.rsplit(":", 1)[-1]
        if tag == "key":
            self._key = attributes.get("id", "")
            self._keys[self._key] = (attributes.get("for", "all"), attributes.get("attr.name", self._key))
        elif tag == "graph":
            self._directed = attributes.get("edgedefault", "directed") == "directed"
        elif tag in ("node", "edge"):
            self._line = self._parser.CurrentLineNumber
            self._attributes = attributes
            self._data = {}
        elif tag in ("data", "default"):
            self._text = []
            self._key = attributes.get("key", self._key)
        elif tag == "hyperedge":
            self._line = self._parser.CurrentLineNumber
            self._complain("a hyperedge is no fact", None, "A fact joins one head and one tail; write plain edges.")

    def _end(self, tag: str) -> None:
        tag = tag.rsplit(":", 1)[-1]
        if tag in ("data", "default"):
            (self._data if tag == "data" else self._defaults)[self._key] = "".join(self._text or [])
            self._text = None
        elif tag == "edge":
            self._edge()
        elif tag == "node":
            self._node()

    def _characters(self, text: str) -> None:
        if self._text is not None:
            self._text.append(text)

    def _doctype(self, *_: Any) -> None:
        raise DataError(
            "the XML declares a document type, which is not read", source=self.found.source, hint="Remove <!DOCTYPE …>."
        )

    def _node(self) -> None:
        if self._name is None:
            return
        key = next((key for key, (_, attribute) in self._keys.items() if attribute == self._name), None)
        node = self._attributes.get("id", "")
        if key is None or key not in self._data:
            self._complain(f"node has no attribute {self._name!r}", node, "Choose the attribute with ‹name=...›.")
        else:
            self._names[node] = self._data[key]

    def _edge(self) -> None:
        attributes = self._attributes
        if attributes.get("directed", str(self._directed).lower()) != "true":
            self._complain("edge is undirected", attributes.get("id"), "Facts have a direction; write directed edges.")
            return
        keys = self._edge_attributes()
        self._ignored.update(dict.fromkeys(self._keys[k][1] for k in self._data if k not in keys.values()))
        values = {role: self._data.get(key, self._defaults.get(key)) for role, key in keys.items()}
        missing: list[str] = [role for role in self._needed if values.get(role) is None]
        missing += [end for end in ("source", "target") if end not in attributes]
        for what in missing:
            self._complain(f"edge has no {what}", attributes.get("id"), _HINT)
        if missing:
            return
        try:
            confidence = float(str(values["confidence"]))
        except ValueError:
            self._complain("confidence is not a number", values["confidence"], _HINT)
            return
        head, tail = attributes["source"], attributes["target"]
        relation = str(values["relation"]) if self._relation is None else self._relation
        self._edges.append((head, tail, relation, confidence, values.get("source"), self._line))

    def _complain(self, what: str, value: str | None, hint: str) -> None:
        self.found.add(what, self._line, None, value, hint)


readers.register("graphml")(Format(read_graphml, (".graphml",), by_id=False))
