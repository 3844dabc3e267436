"""The HTTP API as a FastAPI application: errors as problem documents, an OpenAPI document that says all of them."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Annotated, Any, Literal

from fastapi import APIRouter, FastAPI, Path, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ukge._version import __version__
from ukge.errors import UkgeError
from ukge.runs.labels import LONGEST_PERSON
from ukge.serve import schema
from ukge.serve.desk import Desk
from ukge.serve.problems import MEDIA_TYPE, Problem, ProblemDocument, invalid, short, unknown_name
from ukge.serve.schema import LONGEST_NAME, Coverage, End, Limit, Minimum, Name
from ukge.serve.service import Service
from ukge.serve.settings import Limits
from ukge.serve.snapshot import Snapshot, UnknownNameError

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"

Offset = Annotated[int, Query(ge=0, le=1_000_000_000, description="How many to pass over.")]
Text = Annotated[str, Query(max_length=200)]
NodeType = Annotated[
    str | None,
    Query(min_length=1, max_length=LONGEST_NAME, description="Only entities of this type of the node data."),
]
Source = Annotated[str | None, Query(min_length=1, max_length=LONGEST_NAME, description="Only facts from it.")]
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
        head_type: NodeType = None,
        tail_type: NodeType = None,
        min_confidence: Minimum = 0.0,
        k: Limit = twenty,
    ) -> schema.CompleteResponse:
        """The most confident unseen facts. If time runs out, `examined` is less than 1."""
        types = head_type, tail_type
        return await service.complete(relation or (), k, min_confidence, fitting=type == "fitting", types=types)

    return routes


def write(service: Service) -> APIRouter:
    """Return the routes that change what is known."""
    routes = APIRouter(prefix="/v1", tags=["write"])

    @routes.post("/facts", summary="Take facts in")
    async def add(asked: schema.AddRequest, request: Request) -> schema.AdditionResponse:
        """New entities and relations too. All of them are taken in or none; they are served a moment later."""
        address = request.client.host if request.client else "unknown"
        return await service.add(asked, f"HTTP {address}")

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
    async def doubtful(
        relation: Relation = None,
        limit: Limit = fifty,
        direction: Annotated[schema.Direction, Query(description="Only those stored too high, or too low.")] = "any",
        source: Source = None,
    ) -> schema.DoubtfulResponse:
        return await service.doubtful(relation, limit, direction, source)

    @routes.get("/likely-false", summary="Observed facts that likely do not hold")
    async def likely_false(
        relation: Relation = None, limit: Limit = fifty, source: Source = None
    ) -> schema.LikelyFalseResponse:
        """By the chance that a fact does not hold at all, whatever confidence is stored with it."""
        return await service.likely_false(relation, limit, source)

    @routes.get("/doubt-by-source", summary="Whose facts are doubtful")
    async def doubt_by_source() -> schema.DoubtBySourceResponse:
        return await service.doubt_by_source()

    @routes.get("/reliability", summary="Do confidences mean what they say?")
    async def reliability() -> schema.ReliabilityResponse:
        return await service.found(service.snapshot.quality)

    @routes.get("/audit", summary="What is wrong with the data?")
    async def audit() -> schema.AuditResponse:
        found = await service.found(service.snapshot.audit)
        return schema.AuditResponse.model_validate(found.to_dict())

    return routes


def label(service: Service, desk: Desk) -> APIRouter:
    """Return the routes of what people say of facts."""
    routes = APIRouter(prefix="/v1", tags=["review"])
    twenty, hundred = (min(each, service.limits.k) for each in (20, 100))

    @routes.get("/review", summary="What should a person look at next?")
    async def review(
        by: Annotated[str, Query(max_length=LONGEST_PERSON, description="Who will look.")] = "", limit: Limit = twenty
    ) -> schema.ReviewResponse:
        """The facts of which a label tells most, with the reasons in words."""
        return await desk.next_for(by, limit)

    @routes.get("/labels", summary="What people said")
    async def labels(limit: Limit = hundred, offset: Offset = 0) -> schema.LabelsResponse:
        return await desk.labelled(limit, offset)

    @routes.post("/labels", summary="Say whether facts hold")
    async def say(said: schema.LabelsRequest) -> schema.LabelsKept:
        """The labels are on the disk when this answers. The last word of the same person about a fact counts."""
        words = [((each.head, each.relation, each.tail), each.word) for each in said.labels]
        return await desk.keep(said.by, words)

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
    routers = (*(make(service) for make in (ask, browse, write, status)), label(service, Desk(service)))
    found = [each for router in routers for each in router.routes if isinstance(each, APIRoute)]
    return [(", ".join(sorted(each.methods or ())), each.path_format, each.summary or "") for each in found]


DESCRIPTION = """How likely a fact is, which answers fit a query, and why. Confidences are numbers from 0 to 1.

Errors are problem documents (RFC 9457); an unknown name comes with near ones. Where the service was given an API key,
send it as `Authorization: Bearer KEY` or as `X-API-Key: KEY`."""

STATUSES = {
    400: "The request cannot be read",
    401: "The API key is missing or wrong",
    403: "Nothing may be changed from there",
    404: "The graph has no such name",
    413: "The body is too large",
    415: "What is to be changed is not said in JSON",
    421: "The service is not known by this host name",
    422: "The request is not valid",
    503: "Overloaded, out of time, or not ready yet",
}

LIMITED = ("k", "limit")
"""Parameters whose largest value is a limit of the service."""


def create_api(service: Service) -> FastAPI:
    """Return the API of a service."""
    documented: dict[int | str, dict[str, Any]] = {
        status: {
            "description": text,
            "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/ProblemDocument"}}},
        }
        for status, text in STATUSES.items()
    }
    app = FastAPI(
        title="ukge",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        responses=documented,
        separate_input_output_schemas=False,
    )
    for router in (ask, browse, write, status):
        app.include_router(router(service))
    app.include_router(label(service, Desk(service)))
    _handle_errors(app, service)
    app.openapi = _document(app.openapi, service)  # type: ignore[method-assign]
    return app


def _document(plain: Callable[[], dict[str, Any]], service: Service) -> Callable[[], dict[str, Any]]:
    """Return what makes the OpenAPI document, with examples from the run that is served then."""
    kept: tuple[Snapshot, dict[str, Any]] | None = None

    def document() -> dict[str, Any]:
        nonlocal kept
        snapshot = service.snapshot
        if kept is None or kept[0] is not snapshot:
            made = deepcopy(plain())
            schemas = made.setdefault("components", {}).setdefault("schemas", {})
            told = ProblemDocument.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas |= told.pop("$defs", {})
            schemas["ProblemDocument"] = told
            _with_examples(made, snapshot, service.limits)
            kept = snapshot, made
        return kept[1]

    return document


def _with_examples(document: dict[str, Any], snapshot: Snapshot, limits: Limits) -> None:
    """Put examples and limits into an OpenAPI document."""
    head, relation, tail = snapshot.example()
    values = {"head": head, "relation": relation, "tail": tail, "name": head, "search": head[:3], "prefix": ""}
    for path, operations in document["paths"].items():
        for operation in operations.values():
            for parameter in operation.get("parameters", []):
                _bounded(parameter, values, path, limits)
    request = document["components"]["schemas"]["ConfidenceRequest"]
    request["properties"]["facts"]["maxItems"] = limits.facts
    adding = document["components"]["schemas"]["AddRequest"]
    adding["properties"]["facts"]["maxItems"] = limits.facts
    adding["example"] = {"facts": [{"head": head, "relation": relation, "tail": tail, "confidence": 0.9}]}
    request["example"] = {"facts": [{"head": head, "relation": relation, "tail": tail}], "coverage": 0.9}
    fact = {"head": head, "relation": relation, "tail": tail}
    request["example"] = {"facts": [fact], "coverage": 0.9}
    said = document["components"]["schemas"]["LabelsRequest"]
    said["properties"]["labels"]["maxItems"] = limits.facts
    said["example"] = {"by": "anna", "labels": [{**fact, "word": "yes"}]}


def _bounded(parameter: dict[str, Any], values: dict[str, str], path: str, limits: Limits) -> None:
    name, schema = parameter["name"], parameter["schema"]
    if name in LIMITED and "maximum" not in schema:
        schema["maximum"] = limits.k
    if (path, name) == ("/v1/rank", "tail"):  # either a head or a tail: the example has a head
        return
    if (name in values and parameter.get("required", False)) or (path, name) == ("/v1/rank", "head"):
        parameter["example"] = values[name]


def _handle_errors(app: FastAPI, service: Service) -> None:
    """Turn whatever goes wrong into a problem document."""
    told: dict[type[Exception], Callable[[Any], Problem]] = {
        Problem: lambda error: error,
        RequestValidationError: _invalid,
        UkgeError: lambda error: Problem(422, "invalid-request", error.what),
        HTTPException: _http,
    }

    for kind, tell in told.items():

        async def answer(_: Request, error: Exception, tell: Callable[[Any], Problem] = tell) -> Response:
            return tell(error).response()

        app.add_exception_handler(kind, answer)

    async def unknown(_: Request, error: Exception) -> Response:
        if not isinstance(error, UnknownNameError):
            raise error
        return unknown_name(error.kind, error.name, await service.near(error)).response()

    app.add_exception_handler(UnknownNameError, unknown)


def _invalid(error: RequestValidationError) -> Problem:
    """Return which places are wrong; a body that is no JSON at all cannot be read, which is another matter."""
    found = error.errors()
    if any(each["type"] == "json_invalid" for each in found):
        return Problem(400, "unreadable-body", "The body is not JSON.")
    return invalid([(".".join(str(part) for part in each["loc"]), short(str(each["msg"]))) for each in found])


def _http(error: HTTPException) -> Problem:
    kinds = {400: "unreadable-request", 404: "unknown-path", 405: "method-not-allowed"}
    kind = kinds.get(error.status_code, "refused")
    return Problem(error.status_code, kind, f"{error.detail}.", headers=dict(error.headers or {}))
