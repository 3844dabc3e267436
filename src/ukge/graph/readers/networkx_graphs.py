"""NetworkX graphs in memory: every directed edge with a relation and a confidence is a fact."""

from __future__ import annotations

from typing import Any

import numpy as np

from ukge.errors import DataError
from ukge.graph.columns import Where, as_number
from ukge.graph.findings import Findings
from ukge.graph.formats import Format, readers
from ukge.graph.readers.layout import FACTS, ColumnMap, edge_attributes, percent_hint
from ukge.graph.readers.parsed import Parsed, Request, one_relation


def read_networkx(
    graph: Any, request: Request, *, columns: ColumnMap | None = None, relation: str | None = None
) -> Parsed:
    """Read the edges of a DiGraph or MultiDiGraph; `columns` names the attributes that hold relation and confidence.

    With `relation` all facts have it, and no attribute is looked for.
    """
    wanted = FACTS.given(relation).needed
    names = {"relation": "relation", "confidence": "confidence", "source": "source", **edge_attributes(columns)}
    found = request.findings("NetworkX graph", "edge")
    if not graph.is_directed():
        hint = "Facts have a direction: give graph.to_directed() if every edge holds both ways."
        raise DataError("the graph is undirected", source=found.source, hint=hint)
    nodes = _node_names(graph, found)
    needed = [role for role in ("relation", "confidence") if role in wanted]
    shown = " and ".join(repr(names[role]) for role in needed)
    hint = f"Every edge needs the attribute {shown}; name others with ‹columns=...›, or one ‹relation=NAME› for all."
    values: dict[str, list[Any]] = {role: [] for role in ("head", "relation", "tail", "confidence", "source")}
    edges = []
    for edge, (head, tail, data) in enumerate(graph.edges(data=True)):
        before, found.checked = found.count, edge + 1
        found.row = repr((head, tail, data)) if found.lenient else None
        nameless = [(end, node) for end, node in (("head", head), ("tail", tail)) if node not in nodes]
        if found.lenient:  # strictly read, the nodes were told already
            for end, node in nameless:
                found.add("node has no name that can be used", edge, end, repr(node), "Relabel the nodes.")
        for role in map(str, needed):
            if names[role] not in data:
                found.add(f"attribute {names[role]!r} is missing", edge, role, f"{head} → {tail}", hint)
        fact = {
            "head": nodes.get(head),
            "tail": nodes.get(tail),
            "relation": None if relation is not None else _text_or_id(data.get(names["relation"], ""), edge, found),
            "confidence": _number(data.get(names["confidence"], 0.0), edge, found),
            "source": data.get(names["source"]),
        }
        if found.count == before and not nameless:
            edges.append(edge)
            for role, each in fact.items():
                values[role].append(each)
    has_source = any(value is not None for value in values["source"])
    return Parsed(
        head=_column(values["head"], request.entities),
        relation=_column(values["relation"], request.relations)
        if relation is None
        else one_relation(relation, len(edges), request),
        tail=_column(values["tail"], request.entities),
        weight=np.array(values["confidence"], np.float64),
        source=[None if value is None else str(value) for value in values["source"]] if has_source else None,
        where=Where(found.source, "edge", lambda rows: [edges[row] for row in rows.tolist()]),
        rows=len(edges),
        found=found,
    )


def _node_names(graph: Any, found: Findings) -> dict[Any, str]:
    """Return the names of nodes; those that have none of their own are told, unless their edges are to be put aside."""
    names: dict[Any, str] = {}
    taken: dict[str, Any] = {}
    twice = set()
    for place, node in enumerate(graph.nodes):
        name = str(node)
        what = None
        if not isinstance(node, (str, int)) or isinstance(node, bool):
            what, shown = f"node {place} is neither text nor an integer", repr(node)
        elif name in taken:
            what, shown = "two nodes have one name", f"{node!r} and {taken[name]!r}"
            twice.add(taken[name])
        if what is None:
            names[node] = name
        elif not found.lenient:
            found.add(what, None, None, shown, "Relabel the nodes.", kind="nodes without a name of their own")
        taken[name] = node
    return {node: name for node, name in names.items() if node not in twice}


def _text_or_id(value: Any, edge: int, found: Findings) -> str:
    if value is not None and (not isinstance(value, (str, int)) or isinstance(value, bool)):
        found.add("relation is not text", edge, "relation", repr(value), "Names are strings.")
    return str(value)


def _number(value: Any, edge: int, found: Findings) -> float:
    try:
        number = as_number(value.strip()) if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None:
        hints = ["Confidences are numbers from 0 to 1.", *percent_hint(str(value).strip())]
        found.add("confidence is not a number", edge, "confidence", repr(value), *hints)
    return number or 0.0


def _column(values: list[str], vocabulary: Any) -> Any:
    if vocabulary is None:
        return values
    try:
        return np.array(values, np.int64)
    except (ValueError, OverflowError) as error:
        raise DataError(f"with a vocabulary, nodes and relations must be ids: {error}") from None


readers.register("networkx")(Format(read_networkx, module="networkx"))
