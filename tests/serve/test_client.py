"""The Python client asks the real service and gets typed answers."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient

from ukge.client import Client, ServiceError
from ukge.serve.snapshot import Snapshot


@pytest.fixture(scope="module")
def graph(client: TestClient) -> Client:
    """The client, whose requests the test client sends: it may speak another library's HTTP than ours."""

    def sent(request: httpx.Request) -> httpx.Response:
        told = client.request(request.method, str(request.url), content=request.content, headers=dict(request.headers))
        return httpx.Response(told.status_code, headers=dict(told.headers), content=told.content)

    return Client("http://testserver", transport=httpx.MockTransport(sent))


def test_every_question_is_answered(graph: Client, snapshot: Snapshot) -> None:
    fact = snapshot.dataset.train[0]
    asked = (fact.head, fact.relation, fact.tail)
    predicted = graph.confidence([asked] * 3)
    assert len(predicted) == 3
    assert graph.rank(fact.head, fact.relation, k=4).answers[0].confidence > 0
    assert len(graph.rank(relation=fact.relation, tail=fact.tail, k=4).answers) == 4
    assert graph.explain(*asked).confidence == pytest.approx(predicted[0].confidence)
    assert graph.complete([fact.relation], k=3).facts[0].observed is None
    assert graph.entities("new york")[0].name == "concept:city:new_york"
    assert graph.relations("likes", limit=5)[0].name == "likes"
    assert graph.entity("a/b", limit=10).name == "a/b"
    assert graph.rules(limit=2).rules[0].number == 0
    assert graph.rule(0).rule.number == 0
    assert len(graph.doubtful(limit=3)) == 3
    assert graph.reliability().part == "test"
    assert graph.audit().headlines
    assert graph.info().run == "run"


def test_problems_are_errors_with_near_names(graph: Client) -> None:
    with pytest.raises(ServiceError) as caught:
        graph.rank("concept:city:new_yrok", "likes")
    assert (caught.value.status, caught.value.kind) == (404, "unknown-entity")
    assert "concept:city:new_york" in caught.value.near
    assert "concept:city:new_york" in str(caught.value)
    misspelt: dict[str, Any] = {"min_confidnece": 0.9}
    with pytest.raises(ServiceError, match="min_confidnece"):
        graph.rank("concept:city:new_york", "likes", **misspelt)


def test_the_client_waits_while_the_service_prepares() -> None:
    answers = [
        httpx.Response(503, headers={"retry-after": "0"}, json={"detail": "later"}),
        httpx.Response(200, json={"total": 0, "offset": 0, "rules": []}),
    ]
    asking = Client("http://testserver", transport=httpx.MockTransport(lambda _: answers.pop(0)), retries=1)
    assert asking.rules().total == 0


def test_what_is_no_problem_document_is_told_all_the_same() -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(502, text="bad gateway"))
    with pytest.raises(ServiceError, match="answered 502"):
        Client("http://testserver", transport=transport).info()

    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused")

    with pytest.raises(ServiceError, match="does not answer"):
        Client("http://testserver", transport=httpx.MockTransport(refuse)).info()
