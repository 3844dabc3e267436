"""Routes of questions about the graph."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from ukge.serve import schema
from ukge.serve.browsing import As
from ukge.serve.schema import LONGEST_NAME
from ukge.serve.service import Service

Limit = Annotated[int, Query(ge=1, description="How many at most.")]
Offset = Annotated[int, Query(ge=0, le=1_000_000_000, description="How many to pass over.")]
Text = Annotated[str, Query(max_length=200)]
Relation = Annotated[str | None, Query(min_length=1, max_length=LONGEST_NAME, description="Only this relation.")]


def router(service: Service) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(prefix="/v1", tags=["browse"])
    five, twenty, fifty, hundred = (min(each, service.limits.k) for each in (5, 20, 50, 100))

    @routes.get("/entities", summary="Find entities by name")
    async def entities(search: Text = "", limit: Limit = twenty, fuzzy: bool = True) -> schema.EntitiesResponse:
        """By the beginning of the name, a word in it, any part of it, or nearly. Without a search: the best known."""
        return await service.entities(search, limit, fuzzy=fuzzy)

    @routes.get("/relations", summary="Find relations by name")
    async def relations(search: Text = "", limit: Limit = hundred) -> schema.RelationsResponse:
        return await service.relations(search, limit)

    @routes.get("/entity/{name:path}", summary="The facts of an entity")
    async def entity(
        name: Annotated[str, Path(min_length=1, max_length=LONGEST_NAME)],
        limit: Limit = hundred,
        offset: Offset = 0,
        side: Annotated[As, Query(description="Facts where it is the head, the tail, or either.")] = "both",
        relation: Relation = None,
    ) -> schema.EntityResponse:
        return await service.entity(name, limit, offset, side=side, relation=relation)

    @routes.get("/rules", summary="The rules of the graph")
    async def rules(
        relation: Relation = None, search: Text = "", limit: Limit = fifty, offset: Offset = 0
    ) -> schema.RulesResponse:
        return await service.rules(relation, search, limit, offset)

    @routes.get("/rules/{number}", summary="A rule with examples")
    async def rule(number: Annotated[int, Path(ge=0, le=1_000_000_000)], limit: Limit = five) -> schema.RuleResponse:
        return await service.rule(number, limit)

    @routes.get("/doubtful", summary="Observed facts that are contradicted")
    async def doubtful(relation: Relation = None, limit: Limit = fifty) -> schema.DoubtfulResponse:
        return await service.doubtful(relation, limit)

    @routes.get("/reliability", summary="Do confidences mean what they say?")
    async def reliability() -> schema.ReliabilityResponse:
        return await service.reliability()

    @routes.get("/audit", summary="What is wrong with the data?")
    async def audit() -> schema.AuditResponse:
        return await service.audit()

    return routes
