"""GraphML: every directed edge with a relation and a confidence is a fact, read as a stream.

Elements of other vocabularies (drawings of yEd and Gephi) are passed over. A value is plain text: data that is used and
holds elements, data said twice, and text outside of data are errors.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ukge.graph.columns import Where, as_number, names_column
from ukge.graph.files import DAMAGED_HINT, damaged, open_bytes
from ukge.graph.formats import Format, readers
from ukge.graph.nodes import Nodes
from ukge.graph.readers.layout import FACTS, RECOGNISED, ColumnMap, edge_attributes, percent_hint
from ukge.graph.readers.node_files import of_columns, plain_name
from ukge.graph.readers.parsed import Parsed, Request
from ukge.graph.readers.xml import XmlFeed

_NAMESPACE = "graphml.graphdrawing.org"
_HINT = (
    "Every edge needs data for its relation and its confidence; ‹columns=...› names the attributes if they differ, and "
    "‹relation=NAME› gives all edges one relation."
)


def read_graphml(
    path: Path,
    request: Request,
    *,
    columns: ColumnMap | None = None,
    relation: str | None = None,
    name: str | None = None,
) -> Parsed:
    """Read the edges of a GraphML file.

    `columns` names the edge attributes that hold relation, confidence and source; with `relation`, all facts have that
    one. The name of an entity is the id of its node, or the node attribute called `name`.
    """
    document = Document(path, request, columns, relation, name)
    try:
        with open_bytes(path) as stream:
            document.feed.read(stream)
    except OSError as error:
        document.found.give_up(damaged(path, error), document.feed.line, DAMAGED_HINT, document.feed.line)
    document.refuse_unknown_nodes()
    return document.parsed()


@dataclass
class Element:
    """An element that is open: what it says itself, and what the data in it says."""

    tag: str
    attributes: dict[str, str]
    line: int
    data: dict[str, str | None] = field(default_factory=dict)
    """text by key; None for data that holds elements, as drawings do"""
    faulty: bool = False


class _Edge(NamedTuple):
    head: str
    tail: str
    relation: str
    confidence: float
    source: str | None
    line: int


class Document:
    """The facts of a GraphML document, gathered while it streams by."""

    takes_undirected = False
    """whether edges without a direction are facts, from their source to their target"""

    def __init__(
        self, path: Path, request: Request, columns: ColumnMap | None, relation: str | None, name: str | None
    ) -> None:
        self.found = request.findings(str(path))
        self.feed = XmlFeed(path, self._start, self._end, self._characters, namespaces=True)
        self._needed = tuple(role for role in ("relation", "confidence") if role in FACTS.given(relation).needed)
        self._relation = relation
        self._columns = edge_attributes(columns)
        self._name = name
        self._keys: dict[str, tuple[str, str]] = {}
        self._defaults: dict[str, str | None] = {}
        self._names: dict[str, str] = {}
        self._said: list[tuple[str, dict[str, str]]] = []
        self._edges: list[_Edge] = []
        self._ignored: dict[str, None] = {}
        self._open: list[Element] = []
        self._text: list[str] = []
        self._inside = 0  # elements that are open inside of data

    def parsed(self) -> Parsed:
        """Return what was found."""
        self.found.checked = self.feed.line
        at = np.array([edge.line for edge in self._edges], np.int64)
        has_source = "source" in self._edge_attributes()
        return Parsed(
            head=names_column([self._names.get(edge.head, edge.head) for edge in self._edges], "head"),
            relation=names_column([edge.relation for edge in self._edges], "relation"),
            tail=names_column([self._names.get(edge.tail, edge.tail) for edge in self._edges], "tail"),
            weight=np.array([edge.confidence for edge in self._edges], np.float64),
            source=[edge.source for edge in self._edges] if has_source else None,
            where=Where(self.found.source, "line", lambda rows: at[rows].tolist()),
            rows=len(self._edges),
            nodes=self._known_nodes(),
            found=self.found,
            ignored_columns=tuple(self._ignored),
        )

    def _known_nodes(self) -> Nodes | None:
        """Return what the nodes say of themselves; of attributes that are called alike, the first is read."""
        attributes = list(dict.fromkeys(name for _, said in self._said for name in said))
        header = ["id"]
        for name in attributes:
            if plain_name(name) in map(plain_name, header):
                self._ignored[name] = None
            else:
                header.append(name)
        if len(header) == 1:
            return None
        names = [self._names.get(node, node) for node, _ in self._said]
        columns = [[said.get(name) for _, said in self._said] for name in header[1:]]
        return of_columns(header, [names, *columns], Where(self.found.source, "node"), split=True)

    def refuse_unknown_nodes(self) -> None:
        """Note edges to nodes that have no name, if names are asked for."""
        if self._name is None:
            return
        kept = []
        for edge in self._edges:
            nameless = [node for node in (edge.head, edge.tail) if node not in self._names]
            self.found.row = f"{edge.head} → {edge.tail}"
            for node in nameless:
                hint = f"Every node needs the attribute {self._name!r}."
                self.found.add("edge to a node that has no name", edge.line, None, node, hint)
            if not nameless:
                kept.append(edge)
        self._edges = kept

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
        space, _, local = tag.rpartition(" ")
        within = self._open[-1].tag if self._open else ""
        if self._inside or within in ("data", "default", "desc") or (space and _NAMESPACE not in space):
            if self._inside == 0 and within in ("data", "default"):
                self._open[-1].data[""] = None
            self._inside += 1
            return
        element = Element(local, attributes, self.feed.line)
        self._open.append(element)
        if local in ("data", "default"):
            self._text = []
        elif local == "key":
            self._key(element)
        elif local == "hyperedge":
            hint = "A fact joins one head and one tail; write plain edges."
            self._complain("a hyperedge is no fact", element, None, hint)
        elif local in ("node", "edge") and within != "graph":
            self._complain(f"{local} is not in a graph", element, attributes.get("id"), "Write the file again.")

    def _end(self, _tag: str) -> None:
        if self._inside:
            self._inside -= 1
            return
        element = self._open.pop()
        if element.tag in ("data", "default"):
            self._take(element, None if "" in element.data else "".join(self._text))
        elif element.tag == "edge":
            self._edge(element)
        elif element.tag == "node":
            self.node(element)

    def _characters(self, text: str) -> None:
        if self._inside or not self._open:
            return
        element = self._open[-1]
        if element.tag in ("data", "default"):
            self._text.append(text)
        elif element.tag in ("graphml", "graph", "node", "edge") and text.strip():
            hint = "Values stand in <data>, with their key."
            self._complain(f"text in <{element.tag}> that belongs to no data", element, text.strip(), hint)

    def _key(self, element: Element) -> None:
        said = element.attributes
        key = said.get("id", "")
        domain, attribute = said.get("for", "all"), said.get("attr.name", key)
        if key in self._keys:
            self._refuse("key is declared twice", element, key, "Declare every key once.")
        for other, (where, name) in self._keys.items():
            if name == attribute and other != key and ("all" in (where, domain) or where == domain):
                self._refuse("two keys have one name", element, attribute, "Give every attribute a name of its own.")
        self._keys[key] = (domain, attribute)

    def _take(self, element: Element, text: str | None) -> None:
        if not self._open:
            return
        owner = self._open[-1]
        if element.tag == "default":
            self._defaults[owner.attributes.get("id", "")] = text
            return
        key = element.attributes.get("key")
        if key is None or key not in self._keys:
            hint = "Declare it in a <key> of edges."
            self._complain("data of a key that is not declared", element, key, hint, owner)
        elif key in owner.data:
            self._complain("data is given twice", element, self._keys[key][1], "Say every value once.", owner)
        else:
            owner.data[key] = text

    def said(self, element: Element) -> dict[str, str]:
        """Return what the data of an element says, by the names of its attributes."""
        return {self._keys[key][1]: text for key, text in element.data.items() if text is not None}

    def node(self, element: Element) -> None:
        """Take a node."""
        said = {name: text for name, text in self.said(element).items() if text.strip()}
        if said and element.attributes.get("id", "").strip() and not element.faulty:
            self._said.append((element.attributes["id"], said))
        if self._name is None or element.faulty:
            return
        key = next((key for key, (_, attribute) in self._keys.items() if attribute == self._name), None)
        node = element.attributes.get("id", "")
        text = None if key is None else element.data.get(key)
        if text is None:
            hint = "Choose the attribute with ‹name=...›."
            self._complain(f"node has no attribute {self._name!r}", element, node, hint)
        elif node in self._names:
            self._complain("two nodes have one id", element, node, "Give every node an id of its own.")
        else:
            self._names[node] = text

    def _edge(self, element: Element) -> None:
        attributes = element.attributes
        if element.faulty:
            return
        graph = next((other for other in reversed(self._open) if other.tag == "graph"), None)
        default = graph.attributes.get("edgedefault", "directed") if graph else "directed"
        directed = attributes.get("directed", str(default == "directed").lower()) == "true"
        if not directed and not self.takes_undirected:
            hint = "Facts have a direction; write directed edges."
            self._complain("edge is undirected", element, attributes.get("id"), hint)
            return
        keys = self._edge_attributes()
        self._ignored.update(dict.fromkeys(self._keys[key][1] for key in element.data if key not in keys.values()))
        values = {role: element.data.get(key, self._defaults.get(key)) for role, key in keys.items()}
        for role, key in keys.items():
            if values[role] is None and (key in element.data or key in self._defaults):
                self._complain(f"{role} holds elements, not text", element, attributes.get("id"), _HINT)
                return
        missing: list[str] = [role for role in self._needed if values.get(role) is None]
        missing += [end for end in ("source", "target") if end not in attributes]
        for what in missing:
            self._complain(f"edge has no {what}", element, attributes.get("id"), _HINT)
        if missing:
            return
        confidence = as_number(str(values["confidence"]).strip())
        if confidence is None:
            hints = [_HINT, *percent_hint(str(values["confidence"]).strip())]
            self._complain("confidence is not a number", element, values["confidence"], " ".join(hints))
            return
        relation = str(values["relation"]) if self._relation is None else self._relation
        head, tail = attributes["source"], attributes["target"]
        self._edges.append(_Edge(head, tail, relation, confidence, values.get("source"), element.line))

    def _refuse(self, what: str, element: Element, value: str, hint: str) -> None:
        """Tell of a fault that is none of a single edge, so that no edge could be trusted."""
        if self.found.lenient:
            self.found.give_up(f"{what} ({value})", element.line, hint)
        self._complain(what, element, value, hint)

    def _complain(
        self, what: str, element: Element, value: str | None, hint: str, owner: Element | None = None
    ) -> None:
        owner = owner or element
        owner.faulty = True
        if self.found.lenient:
            data = {self._keys[key][1]: text for key, text in owner.data.items() if key in self._keys}
            self.found.row = json.dumps({**owner.attributes, **data}, ensure_ascii=False)
        self.found.add(what, element.line, None, value, hint)


readers.register("graphml")(Format(read_graphml, (".graphml",), by_id=False))
