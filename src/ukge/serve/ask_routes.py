"""Routes of questions about facts."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from ukge.asking.judges import COVERAGE
from ukge.asking.rank import Seen
from ukge.serve import schema
from ukge.serve.rank_query import RankQuery
from ukge.serve.schema import LONGEST_NAME
from ukge.serve.service import Service

Name = Annotated[str, Query(min_length=1, max_length=LONGEST_NAME)]
MaybeName = Annotated[str | None, Query(min_length=1, max_length=LONGEST_NAME)]
Coverage = Annotated[float, Query(gt=0, lt=1, description="Share of facts that the interval shall cover.")]
K = Annotated[int, Query(ge=1, description="How many at most.")]
Minimum = Annotated[float, Query(ge=0, le=1, description="Only answers at least as confident.")]
Type = Annotated[
    str,
    Query(
        description="Which entities may be answers: `any`; `fitting`, those observed at this place of the relation; "
        "`heads:RELATION` or `tails:RELATION`, those observed there.",
        pattern=r"^(any|fitting|(heads|tails):.+)$",
        max_length=LONGEST_NAME,
    ),
]


def router(service: Service) -> APIRouter:
    """Return the routes."""
    routes = APIRouter(prefix="/v1", tags=["ask"])
    ten, twenty = (min(each, service.limits.k) for each in (10, 20))

    @routes.get("/confidence", summary="How likely is this fact?")
    async def confidence(head: Name, relation: Name, tail: Name, coverage: Coverage = COVERAGE) -> schema.PredictedFact:
        return (await service.confidence([(head, relation, tail)], coverage))[0]

    @routes.post("/confidence", summary="How likely are these facts?")
    async def confidences(asked: schema.ConfidenceRequest) -> schema.ConfidenceResponse:
        facts = [(fact.head, fact.relation, fact.tail) for fact in asked.facts]
        return schema.ConfidenceResponse(facts=await service.confidence(facts, asked.coverage))

    @routes.get("/rank", summary="Which tail (or head) fits best?", response_model=schema.RankResponse)
    async def rank(
        relation: Name,
        head: MaybeName = None,
        tail: MaybeName = None,
        k: K = ten,
        type: Type = "any",  # noqa: A002 — the word of the API
        prefix: Annotated[str, Query(description="Only entities whose name begins so.", max_length=LONGEST_NAME)] = "",
        min_confidence: Minimum = 0.0,
        observed: Annotated[Seen, Query(description="Answers that the graph holds already.")] = "include",
        exact: Annotated[bool, Query(description="Do without the approximate index, if there is one.")] = False,
        coverage: Coverage = COVERAGE,
    ) -> Response:
        """Give a head, and the tails are ranked; give a tail, and the heads are. One of them, not both."""
        told = await service.rank(
            RankQuery(relation, head, tail, k, type, prefix, min_confidence, observed, exact, coverage)
        )
        # Written here, not by FastAPI, which would check the answer once more: this is the busiest route.
        return Response(told.model_dump_json(), media_type="application/json")

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
        k: K = twenty,
    ) -> schema.CompleteResponse:
        """The most confident unseen facts. If time runs out, `examined` is less than 1."""
        return await service.complete(relation or (), k, min_confidence, fitting=type == "fitting")

    return routes
