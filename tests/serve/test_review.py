"""Reviewing over HTTP: what to look at next, words that are kept, and the doubt that they are about."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.testclient import TestClient
from tests.serve.small_run import make_run

from ukge.asking.review import to_review
from ukge.client import Client
from ukge.runs.labels import Label, all_words, keep_labels, last_words, read_labels
from ukge.serve.server import create_app
from ukge.serve.service import Service
from ukge.serve.settings import Limits

HERE = {"base_url": "http://127.0.0.1", "client": ("127.0.0.1", 50_000)}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestClient, Service, Path]]:
    run = make_run(tmp_path_factory.mktemp("review"))
    app, service = create_app(run, explorer=False, limits=Limits(facts=20, k=50, seconds=600))
    with TestClient(app, **HERE) as client:  # type: ignore[arg-type]
        for later in (service.snapshot.doubts, service.snapshot.holding):
            later.get()
        yield client, service, run


def say(client: TestClient, by: str, *labels: dict[str, Any]) -> Any:
    return client.post("/v1/labels", json={"by": by, "labels": list(labels)})


def named(fact: dict[str, Any], word: str) -> dict[str, Any]:
    return {name: fact[name] for name in ("head", "relation", "tail")} | {"word": word}


def test_what_is_next_is_not_what_was_said(served: tuple[TestClient, Service, Path]) -> None:
    client, _, run = served
    first = client.get("/v1/review", params={"by": "anna", "limit": 5}).json()
    assert len(first["facts"]) == 5
    assert all(each["why"] for each in first["facts"])
    sure, other, third, *_ = first["facts"]
    kept = say(client, "anna", named(sure, "yes"), named(other, "unsure")).json()
    assert kept == {"kept": 2, "labelled": 1}
    assert [(each.word, each.by) for each in all_words(run)] == [("yes", "anna"), ("unsure", "anna")]

    def asks(by: str) -> list[tuple[str, str, str]]:
        facts = client.get("/v1/review", params={"by": by, "limit": 50}).json()["facts"]
        return [(each["head"], each["relation"], each["tail"]) for each in facts]

    names = [(each["head"], each["relation"], each["tail"]) for each in (sure, other, third)]
    assert not {names[0], names[1]} & set(asks("anna"))
    assert names[0] not in asks("ben")  # it is decided
    say(client, "ben", named(sure, "no"))
    assert asks("cleo")[0] == names[0]  # about which people disagree
    (labelled,) = client.get("/v1/labels").json()["facts"]
    assert (labelled["label"], labelled["reviewers"]) == (0.5, "anna, ben")
    say(client, "ben", named(sure, "withdrawn"))
    assert [row["label"] for row in read_labels(run).to_pylist()] == [1.0]


def test_the_client_says_and_reads(served: tuple[TestClient, Service, Path]) -> None:
    client, _, _ = served

    def sent(request: httpx.Request) -> httpx.Response:
        told = client.request(request.method, str(request.url), content=request.content, headers=dict(request.headers))
        return httpx.Response(told.status_code, headers=dict(told.headers), content=told.content)

    with Client("http://127.0.0.1", transport=httpx.MockTransport(sent)) as graph:
        fact = graph.review("dora", 1).facts[0]
        before = graph.labels(1).total
        assert graph.label("dora", {(fact.head, fact.relation, fact.tail): "no"}).kept == 1
        assert graph.labels(1).total == before + 1
        assert graph.labels(1, offset=before).facts[0].label == 0.0
        assert graph.likely_false(limit=3).facts[0].chance <= graph.likely_false(limit=3).facts[1].chance
        (everything,) = graph.doubt_by_source()
        assert 0.0 <= everything.false <= 1.0


def test_what_is_no_fact_or_too_much_is_refused_whole(served: tuple[TestClient, Service, Path]) -> None:
    client, service, run = served
    before = len(all_words(run))
    fact = client.get("/v1/review", params={"limit": 1}).json()["facts"][0]
    unknown = {"head": "a/b", "relation": "likes", "tail": "a/b", "word": "yes"}
    refused = say(client, "anna", named(fact, "yes"), unknown)
    assert (refused.status_code, refused.json()["type"]) == (404, "urn:ukge:problem:unknown-fact")
    assert say(client, "anna", *[named(fact, "yes")] * 21).status_code == 422
    assert say(client, "  ", named(fact, "yes")).status_code == 422
    assert say(client, "anna", named(fact, "maybe")).status_code == 422
    assert say(client, "anna", {"head": "x", "relation": "likes", "tail": "a/b", "word": "no"}).status_code == 404
    assert len(all_words(run)) == before
    assert service.limits.facts == 20


def test_directions_of_doubt(served: tuple[TestClient, Service, Path]) -> None:
    client, service, _ = served
    both = client.get("/v1/doubtful", params={"limit": 50}).json()["facts"]
    for direction, sign in (("too-high", 1), ("too-low", -1)):
        found = client.get("/v1/doubtful", params={"limit": 50, "direction": direction}).json()["facts"]
        assert all(sign * (each["stored"] - each["predicted"]) >= 0 for each in found)
        own = [each for each in both if sign * (each["stored"] - each["predicted"]) > 0]
        assert found[: len(own)] == own
    assert client.get("/v1/doubtful", params={"direction": "sideways"}).status_code == 422
    refused = client.get("/v1/likely-false", params={"source": "nobody"})
    assert refused.status_code == 422
    assert "no fact of this graph says where it came from" in refused.json()["detail"]
    shown = client.get("/v1/likely-false", params={"limit": 50}).json()["facts"]
    told = [(each.head, each.relation, each.tail, each.chance) for each in service.snapshot.predictor.likely_false(50)]
    assert [(each["head"], each["relation"], each["tail"], each["chance"]) for each in shown] == told


def test_labels_survive_a_reload(served: tuple[TestClient, Service, Path]) -> None:
    client, service, _ = served
    fact = client.get("/v1/review", params={"by": "eve", "limit": 1}).json()["facts"][0]
    say(client, "eve", named(fact, "no"))
    before = client.get("/v1/labels").json()
    assert client.portal is not None
    assert client.portal.call(service.live.reload)
    assert client.get("/v1/labels").json() == before
    asked = client.get("/v1/review", params={"by": "eve", "limit": 50}).json()["facts"]
    assert named(fact, "no") not in [named(each, "no") for each in asked]


def test_what_is_shown_next_is_spread_over_relations(served: tuple[TestClient, Service, Path]) -> None:
    _, service, run = served
    predictor = service.snapshot.predictor
    index, holding = predictor.features().index, service.snapshot.holding.get()
    found = to_review(holding, index, last_words(all_words(run)), "fay", k=12)
    assert len({each.relation for each in found}) >= 6
    assert len({each.fact for each in found}) == 12
    keep_labels(run, [Label.now(each.fact, "yes", "fay") for each in found])
    after = to_review(holding, index, last_words(all_words(run)), "gus", k=12)
    assert not {each.fact for each in after} & {each.fact for each in found}
