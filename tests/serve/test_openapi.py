"""schemathesis asks whatever the OpenAPI document allows, and what it does not: every answer must be documented."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from ukge.serve.app import create_app
from ukge.serve.settings import Access

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
ROUTES = [
    ("GET", "/v1/confidence"),
    ("POST", "/v1/confidence"),
    ("GET", "/v1/rank"),
    ("GET", "/v1/explain"),
    ("GET", "/v1/complete"),
    ("GET", "/v1/entities"),
    ("GET", "/v1/relations"),
    ("GET", "/v1/entity/{name}"),
    ("GET", "/v1/rules"),
    ("GET", "/v1/rules/{number}"),
    ("GET", "/v1/doubtful"),
    ("GET", "/v1/reliability"),
    ("GET", "/v1/audit"),
    ("GET", "/v1/info"),
    ("GET", "/healthz"),
    ("GET", "/metrics"),
]


@pytest.fixture(scope="module")
def served(run: Path) -> Iterator[Any]:
    app, service = create_app(run, explorer=False, access=Access(any_host=True))
    with TestClient(app):
        for later in (service.snapshot.rulebook, service.snapshot.doubts, service.snapshot.audit):
            later.get()
        yield schemathesis.openapi.from_asgi("/openapi.json", app)


def test_no_route_is_left_out(served: Any) -> None:
    documented = {(each.ok().method.upper(), each.ok().path) for each in served.get_all_operations()}
    assert documented == set(ROUTES)


@pytest.mark.parametrize(("method", "path"), ROUTES)
@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
def test_every_answer_is_documented(served: Any, method: str, path: str, mode: GenerationMode) -> None:
    operation = served[path][method]
    if mode.is_negative and not (len(operation.query) or operation.body):
        pytest.skip("a request without parameters cannot be wrong")

    @settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))
    @given(operation.as_strategy(generation_mode=mode))
    def ask(case: Any) -> None:
        case.call_and_validate(checks=CHECKS)

    ask()
