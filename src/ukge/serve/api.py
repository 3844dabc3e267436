"""The HTTP API as a FastAPI application: errors as problem documents, an OpenAPI document that says all of them."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ukge._version import __version__
from ukge.errors import UkgeError
from ukge.serve import ask_routes, browse_routes, status_routes
from ukge.serve.deadlines import NotReadyError, TimeLimitError
from ukge.serve.examples import with_examples
from ukge.serve.problems import (
    MEDIA_TYPE,
    Problem,
    ProblemDocument,
    invalid,
    not_ready,
    out_of_time,
    overloaded,
    short,
    unknown_name,
)
from ukge.serve.service import Service
from ukge.serve.snapshot import Snapshot, UnknownNameError
from ukge.serve.work import OverloadedError

DESCRIPTION = """How likely a fact is, which answers fit a query, and why. Confidences are numbers from 0 to 1.

Errors are problem documents (RFC 9457); an unknown name comes with near ones. Where the service was given an API key,
send it as `Authorization: Bearer KEY` or as `X-API-Key: KEY`."""

STATUSES = {
    400: "The request cannot be read",
    401: "The API key is missing or wrong",
    404: "The graph has no such name",
    413: "The body is too large",
    421: "The service is not known by this host name",
    422: "The request is not valid",
    503: "Overloaded, out of time, or not ready yet",
}


def create_api(service: Service) -> FastAPI:
    """Return the API of a service."""
    documented: dict[int | str, dict[str, Any]] = {
        status: {"description": text, "content": {MEDIA_TYPE: {"schema": _reference()}}}
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
    for routes in (ask_routes, browse_routes, status_routes):
        app.include_router(routes.router(service))
    _handle_errors(app, service)
    app.openapi = _document(app.openapi, service)  # type: ignore[method-assign]
    return app


def _reference() -> dict[str, str]:
    return {"$ref": "#/components/schemas/ProblemDocument"}


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
            with_examples(made, snapshot, service.limits)
            kept = snapshot, made
        return kept[1]

    return document


def _handle_errors(app: FastAPI, service: Service) -> None:
    """Turn whatever goes wrong into a problem document."""

    seconds = service.limits.seconds
    told: dict[type[Exception], Callable[[Any], Problem]] = {
        Problem: lambda error: error,
        RequestValidationError: _invalid,
        TimeLimitError: lambda _: out_of_time(seconds),
        NotReadyError: lambda error: not_ready(error.what),
        OverloadedError: lambda _: overloaded(),
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
