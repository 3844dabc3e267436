"""The routes of the API: questions about facts, questions about the graph, and what tells of the service itself."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from fastapi.routing import APIRoute
from starlette.responses import Response

from ukge.serve import schema
from ukge.serve.schema import LONGEST_NAME, Coverage, End, Limit, Minimum, Name
from ukge.serve.service import Service

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"

Offset = Annotated[int, Query(ge=0, le=1_000_000_000, description="How many to pass over.")]
Text = Annotated[str, Query(max_length=200)]
Relation = Annotated[str | None, Query(min_length=1, max_length=LONGEST_NAME, description="Only this relation.")]


def ask(service: Service) -> APIRouter:
    """Return the routes of questions about facts."""
    routes = APIRouter(prefix="/v1", tags=["ask"])
    ten, twenty = (min(each, service.limits.k) for each in (10, 20))

    @routes.get("/confidence", summary="How likely is this fact?")
    async def confidence(
        head: Name, relation: Name, tail: Name, coverage: Coverage = schema.COVERAGE
    ) -> schema.PredictedFact:
        return (await service.confidence([(head, relation, tail)], coverage))[0]

    @routes.post("/confidence", summary="How likely are these facts?")
    async def confidences(asked: schema.ConfidenceRequest) -> schema.ConfidenceResponse:
        facts = [(fact.head, fact.relation, fact.tail) for fact in asked.facts]
        return schema.ConfidenceResponse(facts=await service.confidence(facts, asked.coverage))

    @routes.get("/rank", summary="Which tail (or head) fits best?", response_model=schema.RankResponse)
    async def rank(query: Annotated[schema.RankQuery, Query()]) -> Response:
        """Give a head, and the tails are ranked; give a tail, and the heads are. One of them, not both."""
        if "k" not in query.model_fields_set:
            query.k = ten
        # Written here, not by FastAPI, which would check the answer once more: this is the busiest route.
        return Response((await service.rank(query)).model_dump_json(), media_type="application/json")

    @routes.get("/explain", summary="Why is this fact likely or not?")
    async def explain(head: Name, relation: Name, tail: Name) -> schema.ExplainResponse:
        return await service.explain(head, relation, tail)

    @routes.get("/complete", summary="Which facts are missing?")
    async def complete(
        relation: Annotated[list[Name] | None, Query(description="Only these relations; all if not given.")] = None,
        type: Annotated[  # noqa: A002 — the word of the API
            Literal["fitting", "any"],
            Query(description="`fitting`: tails observed with the relation; `any`: all entities as tails."),
        ] = "fitting",
        min_confidence: Minimum = 0.0,
        k: Limit = twenty,
    ) -> schema.CompleteResponse:
        """The most confident unseen facts. If time runs out, `examined` is less than 1."""
        return await service.complete(relation or (), k, min_confidence, fitting=type == "fitting")

    return routes


def browse(service: Service) -> APIRouter:
    """Return the routes of questions about the graph."""
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
        side: Annotated[End, Query(description="Facts where it is the head, the tail, or either.")] = "both",
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
        return await service.found(service.snapshot.quality)

    @routes.get("/audit", summary="What is wrong with the data?")
    async def audit() -> schema.AuditResponse:
        found = await service.found(service.snapshot.audit)
        return schema.AuditResponse.model_validate(found.to_dict())

    return routes


def status(service: Service) -> APIRouter:
    """Return the routes that tell of the service itself."""
    routes = APIRouter(tags=["status"])

    @routes.get("/v1/info", summary="What is served?")
    async def info() -> schema.InfoResponse:
        return service.info()

    @routes.get("/healthz", summary="Is the service well?")
    async def health() -> schema.HealthResponse:
        return schema.HealthResponse(status="ok", run=service.snapshot.name)

    @routes.get(
        "/metrics",
        summary="Figures for Prometheus",
        response_class=Response,
        responses={200: {"description": "Figures", "content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    async def metrics() -> Response:
        recall = service.snapshot.searcher.describe().get("recall")
        service.live.metrics.recall.set(float(recall) if isinstance(recall, (int, float)) else float("nan"))
        return Response(service.live.metrics.text(), media_type=PROMETHEUS)

    return routes


def listed(service: Service) -> list[tuple[str, str, str]]:
    """Return the method, the path and the summary of every route."""
    found = [each for router in (ask, browse, status) for each in router(service).routes if isinstance(each, APIRoute)]
    return [(", ".join(sorted(each.methods or ())), each.path_format, each.summary or "") for each in found]
