"""`POST /v1/facts`: facts are taken in behind the key, once, and served without a request being dropped."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from tests.serve.small_run import make_judged_run

from ukge import Predictor, add, undo
from ukge.client import Client
from ukge.serve.schema import AddRequest, NewFact, RankQuery
from ukge.serve.server import create_app
from ukge.serve.settings import Access, Limits
from ukge.storage.locks import alone

KEY = "a key of sixteen characters and more"
HEADERS = {"authorization": f"Bearer {KEY}"}
ALLOWED = Access(KEY, any_host=True)
NEW = [("somebody new", "likes", "a/b", 0.9), ("somebody new", "detests", "something new", 0.2)]


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_judged_run(tmp_path_factory.mktemp("adding"))


@pytest.fixture
def own(judged: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(judged, tmp_path / "run"))


@pytest.fixture
def asking(own: Path) -> Iterator[tuple[TestClient, Any]]:
    limits = Limits(facts=5, seconds=600)
    app, service = create_app(own, explorer=False, access=ALLOWED, limits=limits, watch_seconds=None)
    with TestClient(app) as client:
        yield client, service


def served(client: TestClient, number: int | None) -> None:
    """Wait until an addition is served."""
    for _ in range(3_000):
        if client.get("/v1/info", headers=HEADERS).json()["addition"] == number:
            return
        client.portal.call(asyncio.sleep, 0.02)  # type: ignore[union-attr]
    raise AssertionError(f"addition {number} is not served")


def send(client: TestClient, facts: list[tuple[str, str, str, float]], identity: str) -> Any:
    """Send facts under a name."""
    rows = [dict(zip(("head", "relation", "tail", "confidence"), fact, strict=True)) for fact in facts]
    return client.post("/v1/facts", json={"facts": rows, "id": identity, "source": "a test"}, headers=HEADERS)


def test_facts_that_are_sent_are_served(asking: tuple[TestClient, Any], own: Path) -> None:
    client, service = asking
    before = service.snapshot
    made = send(client, NEW, "first").json()
    assert {name: made[name] for name in ("number", "facts", "entities", "relations")} == {
        "number": 1,
        "facts": 2,
        "entities": 2,
        "relations": 1,
    }
    assert send(client, NEW, "first").json() == made, "sent again, it is the same addition"
    other = send(client, NEW[:1], "first")
    assert (other.status_code, "other facts" in other.json()["detail"]) == (422, True)
    served(client, 1)
    assert service.snapshot.rulebook is before.rulebook, "what takes long is found anew when no more comes"
    names = [{"head": head, "relation": relation, "tail": tail} for head, relation, tail, _ in NEW]
    found = client.post("/v1/confidence", json={"facts": names}, headers=HEADERS).json()["facts"]
    assert [each["observed"] for each in found] == [0.9, 0.2]
    opened = Predictor.open(own)
    assert opened.added is not None
    assert opened.added.additions[0].who == "HTTP testclient"
    assert [each["confidence"] for each in found] == pytest.approx(opened.predict([fact[:3] for fact in NEW]))
    for path, params in (("rank", {"head": "somebody new", "relation": "detests"}), ("explain", names[0])):
        assert client.get(f"/v1/{path}", params=params, headers=HEADERS).status_code == 200
    entities = client.get("/v1/entities", params={"search": "somebody new"}, headers=HEADERS).json()["entities"]
    assert entities[0]["name"] == "somebody new"
    assert client.get("/v1/info", headers=HEADERS).json()["added"] == 2
    undo(own)
    assert client.portal is not None
    client.portal.call(lambda: service.live.reload(whole=False))
    served(client, None)
    gone = client.get("/v1/rank", params={"head": "somebody new", "relation": "likes"}, headers=HEADERS)
    assert gone.status_code == 404


def test_the_client_sends_facts_once_however_often_it_tries() -> None:
    sent: list[dict[str, Any]] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(json.loads(request.content))
        if len(sent) == 1:
            return httpx.Response(503, headers={"retry-after": "0"}, json={"detail": "later"})
        counts = dict.fromkeys(("facts", "updated", "repeated", "held_out", "entities", "relations"), 0)
        return httpx.Response(200, json={"number": 7, **counts})

    made = Client("http://testserver", transport=httpx.MockTransport(answer), retries=1).add(NEW, source="a file")
    assert made.number == 7
    assert sent[0] == sent[1]
    assert len(sent[0]["id"]) == 32
    assert sent[0]["facts"][1] == {"head": NEW[1][0], "relation": "detests", "tail": NEW[1][2], "confidence": 0.2}


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"facts": []}, 422),
        ({"facts": [{"head": "a", "relation": "r", "tail": "b"}]}, 422),
        ({"facts": [{"head": "a", "relation": "r", "tail": "b", "confidence": 1.5}]}, 422),
        ({"facts": [{"head": " ", "relation": "r", "tail": "b", "confidence": 0.5}]}, 422),
        ({"facts": [{"head": "a", "relation": "r", "tail": "b", "confidence": "much"}]}, 422),
        ({"facts": [{"head": "a", "relation": "r", "tail": "b", "confidence": 0.5}] * 6}, 422),
        ({"facts": [{"head": "a", "relation": "r", "tail": "b", "confidence": 0.5}], "id": ""}, 422),
        ({"facts": [{"head": "a", "relation": "r", "tail": "b", "confidence": 0.5}], "twice": 1}, 422),
    ],
)
def test_a_fault_takes_nothing_in(asking: tuple[TestClient, Any], own: Path, body: Any, status: int) -> None:
    client, _ = asking
    answer = client.post("/v1/facts", json=body, headers=HEADERS)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert not (own / "added").exists()


def test_only_who_has_the_key_writes(own: Path, asking: tuple[TestClient, Any]) -> None:
    client, _ = asking
    body = {"facts": [{"head": "a", "relation": "r", "tail": "b", "confidence": 0.5}]}
    assert client.post("/v1/facts", json=body).status_code == 401
    app, _ = create_app(own, explorer=False, access=Access(any_host=True), watch_seconds=None)
    with TestClient(app) as open_to_all:  # it comes from no address of this machine
        refused = open_to_all.post("/v1/facts", json=body)
        assert (refused.status_code, refused.json()["type"]) == (403, "urn:ukge:problem:read-only")
    assert not (own / "added").exists()


def test_who_comes_second_is_told_to_come_back(asking: tuple[TestClient, Any], own: Path) -> None:
    client, _ = asking
    body = {"facts": [{"head": "a", "relation": "r", "tail": "b", "confidence": 0.5}]}
    with alone(own):
        busy = client.post("/v1/facts", json=body, headers=HEADERS)
    assert (busy.status_code, busy.json()["type"]) == (503, "urn:ukge:problem:busy")
    assert busy.headers["retry-after"] == "1"
    assert client.post("/v1/facts", json=body, headers=HEADERS).json()["number"] == 1


def test_no_request_is_dropped_while_facts_come(own: Path) -> None:
    """Questions are asked all the time while additions come over HTTP and from another process's place."""
    _, service = create_app(own, explorer=False, access=ALLOWED, limits=Limits(seconds=600), watch_seconds=0.05)

    async def scenario() -> int:
        watching = asyncio.create_task(service.live.watch(0.05))
        relation, head = service.snapshot.relations[0], service.snapshot.entities[0]
        done, answered = asyncio.Event(), 0

        async def ask() -> None:
            nonlocal answered
            while not done.is_set():
                assert (await service.rank(RankQuery(relation=relation, head=head, k=3))).answers
                assert await service.confidence([(head, relation, service.snapshot.entities[1])])
                answered += 1

        asker = asyncio.create_task(ask())
        for number in range(3):
            fact = NewFact(head=f"new {number}", relation="likes", tail="a/b", confidence=0.5)
            made = await service.add(AddRequest(facts=[fact], id=None, source="a test"), "a test")
            assert made.number == number + 1
        await asyncio.to_thread(add, own, [("by command", "likes", "a/b", 0.4)])
        while service.info().addition != 4:
            await asyncio.sleep(0.02)
        done.set()
        await asker
        watching.cancel()
        service.live.close()
        service.work.close()
        return answered

    assert asyncio.run(scenario()) > 3
