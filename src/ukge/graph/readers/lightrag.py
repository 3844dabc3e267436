"""LightRAG's graph_chunk_entity_relation.graphml: what a language model extracted, as a graph without directions.

A weight is a sum over the texts that say it, no confidence, so it takes a scale: `counts`, unless another is named.
What a relationship says stands in its keywords and description.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ukge.graph.files import DAMAGED_HINT, damaged, open_bytes
from ukge.graph.formats import Format, readers
from ukge.graph.nodes import Nodes
from ukge.graph.normalise import COUNTS
from ukge.graph.opening import Opening
from ukge.graph.readers.graphml import Document, Element
from ukge.graph.readers.graphrag import COUNTS_NOTE
from ukge.graph.readers.layout import ColumnMap
from ukge.graph.readers.parsed import Parsed, Request

_RELATION = "related_to"
_COLUMNS = {"confidence": "weight", "source": "file_path"}
_TELLING = ("source_id", "keywords", "entity_type")


def read_lightrag(
    path: Path, request: Request, *, columns: ColumnMap | None = None, relation: str | None = None
) -> Parsed:
    """Read relationships as facts of one `relation`, by default `related_to`.

    `columns={"relation": "keywords"}` takes the keywords for it.
    """
    given = dict(columns or {})
    one = relation or (None if "relation" in given else _RELATION)
    document = _Graph(path, request, {**_COLUMNS, **given}, one, None)
    try:
        with open_bytes(path) as stream:
            document.feed.read(stream)
    except OSError as error:
        document.found.give_up(damaged(path, error), document.feed.line, DAMAGED_HINT, document.feed.line)
    notes = () if request.scale else (COUNTS_NOTE,)
    return replace(document.parsed(), nodes=document.nodes(), scale=COUNTS, notes=notes)


def is_lightrag(opening: Opening) -> bool:
    """Return whether a file begins like GraphML that declares LightRAG's attributes."""
    declared = all(f'attr.name="{name}"' in opening.text for name in _TELLING)
    return opening.extension == ".graphml" and declared


class _Graph(Document):
    """A document whose edges have no direction, and whose nodes say what they are."""

    takes_undirected = True

    def __init__(
        self, path: Path, request: Request, columns: ColumnMap | None, relation: str | None, name: str | None
    ) -> None:
        super().__init__(path, request, columns, relation, name)
        self._nodes: dict[str, dict[str, str]] = {}

    def node(self, element: Element) -> None:
        """Take a node with its type and its description."""
        name = element.attributes.get("id", "")
        if name.strip():
            self._nodes.setdefault(name, self.said(element))

    def nodes(self) -> Nodes | None:
        """Return what the nodes say."""
        if not self._nodes:
            return None
        kinds, described = ([said.get(key) for said in self._nodes.values()] for key in ("entity_type", "description"))
        return Nodes.from_columns(list(self._nodes), types=kinds, description=described)


readers.register("lightrag")(Format(read_lightrag, by_id=False, recognise=is_lightrag))
