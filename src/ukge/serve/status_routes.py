"""Routes that tell of the service itself."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from ukge.serve import schema
from ukge.serve.service import Service

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


def router(service: Service) -> APIRouter:
    """Return the routes."""
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
