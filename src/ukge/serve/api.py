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
from ukge.serve import routes
from ukge.serve.problems import MEDIA_TYPE, Problem, ProblemDocument, invalid, short, unknown_name
from ukge.serve.service import Service
from ukge.serve.settings import Limits
from ukge.serve.snapshot import Snapshot, UnknownNameError

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
    for router in (routes.ask, routes.browse, routes.status):
        app.include_router(router(service))
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
    request["example"] = {"facts": [{"head": head, "relation": relation, "tail": tail}], "coverage": 0.9}


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
