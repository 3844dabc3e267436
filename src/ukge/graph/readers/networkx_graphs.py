"""NetworkX graphs in memory: every directed edge with a relation and a confidence is a fact."""

from __future__ import annotations

from typing import Any

import numpy as np

from ukge.errors import DataError
from ukge.graph.columns import Findings, Where, as_number
from ukge.graph.formats import Format, readers
from ukge.graph.readers.layout import FACTS, ColumnMap, edge_attributes
from ukge.graph.readers.parsed import Parsed, Request, one_relation


def read_networkx(
    graph: Any, request: Request, *, columns: ColumnMap | None = None, relation: str | None = None
) -> Parsed:
    """Read the edges of a DiGraph or MultiDiGraph; `columns` names the attributes that hold relation and confidence.

    With `relation` all facts have it, and no attribute is looked for.
    """
    wanted = FACTS.given(relation).needed
    names = {"relation": "relation", "confidence": "confidence", "source": "source", **edge_attributes(columns)}
    found = Findings("NetworkX graph", "edge")
    if not graph.is_directed():
        hint = "Facts have a direction: give graph.to_directed() if every edge holds both ways."
        raise DataError("the graph is undirected", source=found.source, hint=hint)
    nodes = _node_names(graph, found)
    needed = [role for role in ("relation", "confidence") if role in wanted]
    shown = " and ".join(repr(names[role]) for role in needed)
    hint = f"Every edge needs the attribute {shown}; name others with ‹columns=...›, or one ‹relation=NAME› for all."
    values: dict[str, list[Any]] = {role: [] for role in ("head", "relation", "tail", "confidence", "source")}
    for edge, (head, tail, data) in enumerate(graph.edges(data=True)):
        for role in needed:
            if names[role] not in data:
                found.add(f"attribute {names[role]!r} is missing", edge, role, f"{head} → {tail}", hint)
        values["head"].append(nodes[head])
        values["tail"].append(nodes[tail])
        if relation is None:
            values["relation"].append(_text_or_id(data.get(names["relation"]), edge, "relation", found))
        values["confidence"].append(_number(data.get(names["confidence"], 0.0), edge, found))
        values["source"].append(data.get(names["source"]))
    found.stop(len(values["head"]))
    has_source = any(value is not None for value in values["source"])
    return Parsed(
        head=_column(values["head"], request.entities),
        relation=_column(values["relation"], request.relations)
        if relation is None
        else one_relation(relation, len(values["head"]), request),
        tail=_column(values["tail"], request.entities),
        weight=np.array(values["confidence"], np.float64),
        source=[None if value is None else str(value) for value in values["source"]] if has_source else None,
        where=Where(found.source, "edge"),
        rows=len(values["head"]),
    )


def _node_names(graph: Any, found: Findings) -> dict[Any, str]:
    names = {}
    taken: dict[str, Any] = {}
    for place, node in enumerate(graph.nodes):
        name = str(node)
        if not isinstance(node, (str, int)) or isinstance(node, bool):
            found.add(f"node {place} is neither text nor an integer", None, None, repr(node), "Relabel the nodes.")
        elif name in taken:
            found.add("two nodes have one name", None, None, f"{node!r} and {taken[name]!r}", "Relabel the nodes.")
        taken[name] = node
        names[node] = name
    return names


def _text_or_id(value: Any, edge: int, role: str, found: Findings) -> str:
    if value is not None and (not isinstance(value, (str, int)) or isinstance(value, bool)):
        found.add(f"{role} is not text", edge, role, repr(value), "Names are strings.")
    return str(value)


def _number(value: Any, edge: int, found: Findings) -> float:
    try:
        number = as_number(value.strip()) if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None:
        found.add("confidence is not a number", edge, "confidence", repr(value), "Confidences are numbers from 0 to 1.")
    return number or 0.0


def _column(values: list[str], vocabulary: Any) -> Any:
    if vocabulary is None:
        return values
    try:
        return np.array(values, np.int64)
    except (ValueError, OverflowError) as error:
        raise DataError(f"with a vocabulary, nodes and relations must be ids: {error}") from None


readers.register("networkx")(Format(read_networkx, module="networkx"))
