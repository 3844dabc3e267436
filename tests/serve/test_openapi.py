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

from ukge.serve.server import create_app
from ukge.serve.settings import Access, Limits

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
WITHOUT_PARAMETERS = [
    ("GET", "/v1/reliability"),
    ("GET", "/v1/audit"),
    ("GET", "/v1/doubt-by-source"),
    ("GET", "/v1/info"),
    ("GET", "/healthz"),
    ("GET", "/metrics"),
]
WITH_PARAMETERS = [
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
    ("GET", "/v1/likely-false"),
    ("GET", "/v1/review"),
    ("GET", "/v1/labels"),
]
WRITES = [("POST", "/v1/facts"), ("POST", "/v1/labels")]
"""The service that is asked has no key: it takes nothing in, whatever is sent."""
KNOWN = {"head": "a/b", "relation": "likes", "tail": "a/b", "name": "a/b", "number": 0}
EXAMPLES = settings(deadline=None, max_examples=20, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def served(run: Path) -> Iterator[Any]:
    app, service = create_app(run, explorer=False, access=Access(any_host=True), limits=Limits(seconds=600))
    with TestClient(app):
        for later in (service.snapshot.rulebook, service.snapshot.holding, service.snapshot.audit):
            later.get()
        asked = schemathesis.openapi.from_asgi("/openapi.json", app)
        # A body may be refused for its size before anybody reads what is wrong in it.
        refusal = asked.config.checks.negative_data_rejection
        refusal.expected_statuses = [*refusal.expected_statuses, "413"]
        yield asked


def test_no_route_is_left_out(served: Any) -> None:
    operations = [each.ok() for each in served.get_all_operations()]
    told = {(each.method.upper(), each.path): bool(len(each.query) or each.body) for each in operations}
    assert told == dict.fromkeys(WITH_PARAMETERS + WRITES, True) | dict.fromkeys(WITHOUT_PARAMETERS, False)


@pytest.mark.parametrize(("method", "path"), WITH_PARAMETERS + WRITES + WITHOUT_PARAMETERS)
def test_every_answer_is_documented(served: Any, method: str, path: str) -> None:
    @EXAMPLES
    @given(served[path][method].as_strategy(generation_mode=GenerationMode.POSITIVE))
    def ask(case: Any) -> None:
        case.call_and_validate(checks=CHECKS)

    ask()


@pytest.mark.parametrize(("method", "path"), WITH_PARAMETERS + WRITES)
def test_what_is_not_allowed_is_refused(served: Any, method: str, path: str) -> None:
    @EXAMPLES
    @given(served[path][method].as_strategy(generation_mode=GenerationMode.NEGATIVE))
    def ask(case: Any) -> None:
        case.call_and_validate(checks=CHECKS)

    ask()


@pytest.mark.parametrize(("method", "path"), WITH_PARAMETERS)
def test_what_the_graph_knows_is_answered_as_documented(served: Any, method: str, path: str) -> None:
    """Names that are drawn at random are unknown: here they are those of the graph, and all else is drawn."""
    statuses: set[int] = set()

    @EXAMPLES
    @given(served[path][method].as_strategy(generation_mode=GenerationMode.POSITIVE))
    def ask(case: Any) -> None:
        statuses.add(case_of_known_names(case).call_and_validate(checks=CHECKS).status_code)

    ask()
    assert statuses == {200}


def case_of_known_names(case: Any) -> Any:
    """Put names of the graph where a case has any."""
    for given_names in (case.query, case.path_parameters):
        for name in KNOWN.keys() & (given_names or {}).keys():
            given_names[name] = [KNOWN[name]] if isinstance(given_names[name], list) else KNOWN[name]
    if case.path == "/v1/rank":
        case.query["head"] = KNOWN["head"]
        case.query.pop("tail", None)
        kind, colon, _ = str(case.query.get("type", "any")).partition(":")
        of_relation = bool(colon) and kind in ("heads", "tails")
        case.query["type"] = f"{kind}:likes" if of_relation else kind if kind == "fitting" else "any"
    for name in ("head_type", "tail_type", "source"):  # no entity of this graph has a type, and no fact a source
        (case.query or {}).pop(name, None)
    if case.method == "POST":
        case.body["facts"] = [{name: KNOWN[name] for name in ("head", "relation", "tail")} for _ in case.body["facts"]]
    return case
