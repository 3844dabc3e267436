"""Who may change something: one rule for every address that takes something in."""

from __future__ import annotations

import pytest
from fastapi.testclient import TestClient
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from ukge.serve.guard import COOKIE, Guard
from ukge.serve.metrics import Metrics
from ukge.serve.settings import Access, Limits
from ukge.serve.writes import WRITES

KEY = "correct-horse-battery-staple"
HERE = "http://127.0.0.1:8000"


async def _said(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer whether a page may offer to change something."""
    await JSONResponse({"may_change": scope["may_change"]})(scope, receive, send)


def asking(access: Access, *, at: str = HERE, client: str = "127.0.0.1") -> TestClient:
    return TestClient(Guard(_said, access, Limits(), Metrics()), base_url=at, client=(client, 50_000))


@pytest.fixture
def open_service() -> TestClient:
    return asking(Access(any_host=True))


@pytest.mark.parametrize("path", sorted(WRITES))
def test_a_person_at_this_machine_needs_no_key(open_service: TestClient, path: str) -> None:
    assert open_service.post(path, json={}).json() == {"may_change": True}
    own = {"origin": HERE, "sec-fetch-site": "same-origin"}
    assert open_service.post(path, json={}, headers=own).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://elsewhere.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:3000"},  # another service of the same machine
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
)
@pytest.mark.parametrize("key", [None, KEY])
def test_a_page_of_another_site_changes_nothing(headers: dict[str, str], key: str | None) -> None:
    access = Access(key)
    client = asking(access)
    shown = {"cookie": f"{COOKIE}={access.browser_pass()}"} if key else {}
    response = client.post("/v1/labels", json={}, headers=headers | shown)
    assert response.status_code in (401, 403)
    if key:  # whatever else it carries
        response = client.post("/v1/labels", json={}, headers=headers | {"x-api-key": KEY})
        assert (response.status_code, response.json()["type"]) == (403, "urn:ukge:problem:foreign-page")


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"])
def test_what_a_form_can_send_is_refused(open_service: TestClient, kind: str) -> None:
    """A form of another site, in a browser that does not say where it comes from."""
    response = open_service.post("/v1/labels", content=b"{}", headers={"content-type": kind})
    assert (response.status_code, response.json()["type"]) == (415, "urn:ukge:problem:json-needed")
    assert open_service.post("/v1/labels").status_code == 415


@pytest.mark.parametrize(
    ("at", "client", "headers"),
    [
        (HERE, "192.0.2.7", {}),
        ("http://graph.example", "127.0.0.1", {}),
        (HERE, "127.0.0.1", {"x-forwarded-for": "192.0.2.7"}),
        (HERE, "127.0.0.1", {"via": "1.1 proxy"}),
    ],
)
def test_without_a_key_others_only_read(at: str, client: str, headers: dict[str, str]) -> None:
    asked = asking(Access(any_host=True), at=at, client=client)
    response = asked.post("/v1/labels", json={}, headers=headers)
    assert (response.status_code, response.json()["type"]) == (403, "urn:ukge:problem:read-only")
    assert "UKGE_API_KEY" in response.json()["detail"]
    assert asked.get("/v1/labels", headers=headers).json() == {"may_change": False}


def test_with_a_key_it_is_needed_here_too() -> None:
    access = Access(KEY, any_host=True)
    client = asking(access, at="http://graph.example", client="192.0.2.7")
    assert client.post("/v1/labels", json={}).status_code == 401
    assert client.post("/v1/labels", json={}, headers={"x-api-key": KEY}).json() == {"may_change": True}
    shown = {"cookie": f"{COOKIE}={access.browser_pass()}", "origin": "http://graph.example"}
    assert client.post("/v1/labels", json={}, headers=shown).status_code == 200


def test_questions_are_asked_as_before(open_service: TestClient) -> None:
    response = open_service.post("/v1/confidence", content=b"{}", headers={"content-type": "text/plain"})
    assert response.status_code == 200
