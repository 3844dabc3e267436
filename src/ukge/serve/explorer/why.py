"""The reasons of one confidence."""

from __future__ import annotations

from nicegui import PageArguments

from ukge.serve.explorer.markup import put
from ukge.serve.service import Service

TELLING = 0.005
"""Contribution, for or against, below which a reason is folded away."""

KINDS = {
    "observed": "In the graph",
    "rule": "A rule",
    "pair": "The same two",
    "inverse": "The other way round",
    "analogue": "Alike",
    "repeat": "Known already",
    "neighbours": "Common neighbours",
    "query": "What the head has here",
    "inverse query": "What the tail has here",
    "head": "The head in general",
    "tail": "The tail in general",
    "relation": "The relation in general",
    "expectation": "What is usual of head, relation and tail",
    "model": "The model",
    "other": "All else",
}


async def build(service: Service, args: PageArguments) -> None:
    """Build the page."""
    head, relation, tail = (args.query_parameters.get(name, "") for name in ("head", "relation", "tail"))
    fact = await service.explain(head, relation, tail)
    telling = [each for each in fact.reasons if each.contribution is None or abs(each.contribution) >= TELLING]
    others = [each for each in fact.reasons if each not in telling]
    put("why.html", fact=fact, telling=telling, others=others, kinds=KINDS)
