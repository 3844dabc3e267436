"""GraphRAG's relationships.parquet, with entities.parquet beside it.

    source, target, description, weight, combined_degree, text_unit_ids

A weight is a sum of strengths over the texts that say it, no confidence, so it takes a scale: `counts`, unless another
is named.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ukge.errors import DataError
from ukge.graph.columns import Where, single
from ukge.graph.formats import Format, readers
from ukge.graph.nodes import Nodes
from ukge.graph.normalise import COUNTS
from ukge.graph.opening import Opening
from ukge.graph.readers.beside import beside
from ukge.graph.readers.frames import Columns, checked, opened_parquet, parsed_columns
from ukge.graph.readers.parsed import Parsed, Request

_ROLES = {"head": "source", "tail": "target", "confidence": "weight"}
_TELLING = {"text_unit_ids", "combined_degree", "human_readable_id"}
COUNTS_NOTE = "weights are sums, taken as counts: w/(w + 1)"


def read_graphrag(path: Path, request: Request, *, relation: str = "related_to") -> Parsed:
    """Read relationships as facts of one `relation`: what they say stands in their descriptions, in words."""
    with opened_parquet(path) as file:
        names = file.schema_arrow.names
        missing = [name for name in _ROLES.values() if name not in names]
        if missing:
            hint = "Relationships of GraphRAG have the columns source, target and weight."
            raise DataError(f"has no column {', '.join(missing)}", source=str(path), hint=hint)
        table = checked(file.read(columns=list(_ROLES.values())))
    places = {role: names.index(name) for role, name in _ROLES.items()}
    columns = {role: single(table, name) for role, name in _ROLES.items()}
    parsed = parsed_columns(Columns(columns, places, names, Where(str(path))), request, relation)
    notes = () if request.scale else (COUNTS_NOTE,)
    return replace(parsed, nodes=_entities(path), scale=COUNTS, notes=notes)


def is_graphrag(opening: Opening) -> bool:
    """Return whether a file of Parquet has the columns of relationships."""
    return set(_ROLES.values()) <= opening.columns and bool(opening.columns & _TELLING)


def _entities(path: Path) -> Nodes | None:
    file = beside(path, "relationships", "entities")
    if file is None:
        return None
    with opened_parquet(file) as stored:
        present = stored.schema_arrow.names
        title = next((name for name in ("title", "name") if name in present), None)
        if title is None:
            return None
        more = [name for name in ("type", "description") if name in present]
        table = checked(stored.read(columns=[title, *more]))
    kept = {name: table[name] if name in more else None for name in ("type", "description")}
    return Nodes.from_columns(single(table, title), types=kept["type"], description=kept["description"])


readers.register("graphrag")(Format(read_graphrag, by_id=False, recognise=is_graphrag))
