"""Examples for the OpenAPI document, taken from the graph that is served, and the limits as its bounds."""

from __future__ import annotations

from typing import Any

import numpy as np

from ukge.serve.settings import Limits
from ukge.serve.snapshot import Snapshot

LIMITED = ("k", "limit")


def example_fact(snapshot: Snapshot) -> tuple[str, str, str]:
    """Return a well-known, confident fact."""
    facts = snapshot.known.all()
    if len(facts.head) == 0:
        return snapshot.entities[0], snapshot.relations[0], snapshot.entities[0]
    degree = snapshot.known.degree
    sure = facts.confidence >= np.quantile(facts.confidence, 0.5)
    known = np.minimum(degree[facts.head], degree[facts.tail]) * sure
    row = int(np.argmax(known))
    names = snapshot.entities, snapshot.relations, snapshot.entities
    head, relation, tail = (names[place][int(facts[place][row])] for place in range(3))
    return head, relation, tail


def with_examples(document: dict[str, Any], snapshot: Snapshot, limits: Limits) -> None:
    """Put examples and limits into an OpenAPI document."""
    head, relation, tail = example_fact(snapshot)
    values = {"head": head, "relation": relation, "tail": tail, "name": head, "search": head[:3], "prefix": ""}
    for path, operations in document["paths"].items():
        for operation in operations.values():
            for parameter in operation.get("parameters", []):
                _complete(parameter, values, path, limits)
    request = document["components"]["schemas"]["ConfidenceRequest"]
    request["properties"]["facts"]["maxItems"] = limits.facts
    request["example"] = {"facts": [{"head": head, "relation": relation, "tail": tail}], "coverage": 0.9}


def _complete(parameter: dict[str, Any], values: dict[str, str], path: str, limits: Limits) -> None:
    name, schema = parameter["name"], parameter["schema"]
    if name in LIMITED and "maximum" not in schema:
        schema["maximum"] = limits.k
    if (path, name) == ("/v1/rank", "tail"):  # either a head or a tail: the example has a head
        return
    if (name in values and parameter.get("required", False)) or (path, name) == ("/v1/rank", "head"):
        parameter["example"] = values[name]
