"""The API tells what the model and the graph say."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pytest
from fastapi.testclient import TestClient
from tests.serve.small_run import HOSTILE

from ukge import UKGE
from ukge.graph.queries import Queries
from ukge.serve.snapshot import Snapshot


@pytest.fixture(scope="module")
def model(run: Path) -> UKGE:
    return UKGE.load(run)


@pytest.fixture(scope="module")
def fact(snapshot: Snapshot) -> dict[str, str]:
    first = snapshot.dataset.train[0]
    return {"head": first.head, "relation": first.relation, "tail": first.tail}


def test_one_fact_has_the_models_confidence(client: TestClient, model: UKGE, fact: dict[str, str]) -> None:
    told = client.get("/v1/confidence", params=fact).json()
    assert told["confidence"] == pytest.approx(float(model.predict([tuple(fact.values())])[0]), abs=1e-6)
    assert 0 <= told["interval"]["low"] <= told["confidence"] <= told["interval"]["high"] <= 1
    assert told["observed"] is not None


def test_many_facts_come_back_in_their_order(client: TestClient, model: UKGE, snapshot: Snapshot) -> None:
    facts = [snapshot.dataset.test[i] for i in (3, 0, 2)]
    asked = [{"head": each.head, "relation": each.relation, "tail": each.tail} for each in facts]
    told = client.post("/v1/confidence", json={"facts": asked}).json()["facts"]
    expected = model.predict([(each.head, each.relation, each.tail) for each in facts])
    assert [{name: each[name] for name in ("head", "relation", "tail")} for each in told] == asked
    assert [each["confidence"] for each in told] == pytest.approx(expected.tolist(), abs=1e-6)


@pytest.mark.parametrize("side", ["head", "tail"])
def test_rank_gives_what_the_estimator_gives(client: TestClient, model: UKGE, fact: dict[str, str], side: str) -> None:
    asked: dict[str, Any] = {"relation": fact["relation"], side: fact[side], "k": 7}
    told = client.get("/v1/rank", params=asked).json()
    expected = model.rank(relation=fact["relation"], k=7, **{side: fact[side]})
    assert [each["entity"] for each in told["answers"]] == [each.entity for each in expected]
    found = [each["confidence"] for each in told["answers"]]
    assert found == pytest.approx([each.confidence for each in expected], abs=1e-5)
    assert told["search"] == {"kind": "exact", "recall": 1.0}


def test_rank_keeps_observed_answers_out_or_only(client: TestClient, snapshot: Snapshot, fact: dict[str, str]) -> None:
    asked: dict[str, Any] = {"head": fact["head"], "relation": fact["relation"], "k": 50}
    known = {
        snapshot.entities[int(each)]
        for each in snapshot.known.answers(
            Queries.of("tail", snapshot.entity(fact["head"]), snapshot.relation(fact["relation"]))
        ).entity
    }
    answers = {
        kind: client.get("/v1/rank", params={**asked, "observed": kind}).json()["answers"]
        for kind in ("exclude", "only", "include")
    }
    assert fact["tail"] in known
    assert not known & {each["entity"] for each in answers["exclude"]}
    assert {each["entity"] for each in answers["only"]} == known
    assert all(each["observed"] is None for each in answers["exclude"])
    assert all(each["observed"] is not None for each in answers["only"])
    assert all((each["entity"] in known) == (each["observed"] is not None) for each in answers["include"])


def test_rank_takes_types_prefixes_and_a_least_confidence(
    client: TestClient, snapshot: Snapshot, fact: dict[str, str]
) -> None:
    asked: dict[str, Any] = {"head": fact["head"], "relation": fact["relation"], "k": 50}
    fitting = client.get("/v1/rank", params={**asked, "type": "fitting"}).json()["answers"]
    whole = snapshot.dataset.whole()
    tails = set(
        whole.entities.decode(np.unique(whole.tail[whole.relation == snapshot.relation(fact["relation"])])).to_pylist()
    )
    assert {each["entity"] for each in fitting} <= tails
    same = client.get("/v1/rank", params={**asked, "type": f"tails:{fact['relation']}"}).json()["answers"]
    assert same == fitting
    cities = client.get("/v1/rank", params={**asked, "prefix": "concept:city:"}).json()["answers"]
    assert {each["entity"] for each in cities} == {"concept:city:new_york", "concept:city:boston"}
    everything = client.get("/v1/rank", params=asked).json()["answers"]
    middle = everything[5]["confidence"]
    sure = client.get("/v1/rank", params={**asked, "min_confidence": middle}).json()["answers"]
    assert sure == everything[:6]


def test_explain_tells_the_stored_confidence_and_what_fits(
    client: TestClient, snapshot: Snapshot, fact: dict[str, str]
) -> None:
    told = client.get("/v1/explain", params=fact).json()
    stored = snapshot.known.stored(*snapshot.ids([(fact["head"], fact["relation"], fact["tail"])]))
    assert told["observed"] == pytest.approx(stored[0])
    assert told["opinion"] == "model"
    assert told["base"] is None
    assert told["reasons"]
    for reason in told["reasons"]:
        assert reason["contribution"] is None
        assert reason["facts"]
        assert fact not in [{name: each[name] for name in fact} for each in reason["facts"]]


def test_entities_are_found_by_beginning_word_part_and_misspelling(client: TestClient) -> None:
    def found(text: str) -> list[tuple[str, str]]:
        told = client.get("/v1/entities", params={"search": text, "limit": 3}).json()["entities"]
        return [(each["name"], each["match"]) for each in told]

    assert found("new york")[0] == ("concept:city:new_york", "exact")
    assert found("New Y")[0] == ("concept:city:new_york", "prefix")
    assert found("york")[0] == ("concept:city:new_york", "word")
    assert found("ew_yor")[0] == ("concept:city:new_york", "inside")
    assert found("nwe york")[0] == ("concept:city:new_york", "near")
    told = client.get("/v1/entities", params={"search": "new york"}).json()["entities"][0]
    assert (told["label"], told["category"], told["facts"]) == ("new york", "city", 1)


def test_entities_without_a_search_are_the_best_known(client: TestClient, snapshot: Snapshot) -> None:
    told = client.get("/v1/entities", params={"limit": 5}).json()["entities"]
    assert [each["facts"] for each in told] == sorted(snapshot.known.degree.tolist(), reverse=True)[:5]


@pytest.mark.parametrize("name", sorted({fact[place] for fact in HOSTILE for place in (0, 2)}))
def test_any_name_can_be_asked_for(client: TestClient, name: str) -> None:
    told = client.get(f"/v1/entity/{quote(name, safe='')}").json()
    expected = [fact for fact in HOSTILE if name in (fact[0], fact[2])]
    assert told["name"] == name
    assert sorted((each["head"], each["tail"]) for each in told["facts"]) == sorted((f[0], f[2]) for f in expected)


def test_facts_of_an_entity_are_paged_and_chosen(client: TestClient, snapshot: Snapshot) -> None:
    name = snapshot.entities[int(np.argmax(snapshot.known.degree))]
    whole = client.get(f"/v1/entity/{quote(name)}", params={"limit": 50}).json()["facts"]
    values = [each["confidence"] for each in whole]
    assert values == sorted(values, reverse=True)
    second = client.get(f"/v1/entity/{quote(name)}", params={"limit": 2, "offset": 2}).json()["facts"]
    assert second == whole[2:4]
    heads = client.get(f"/v1/entity/{quote(name)}", params={"side": "head"}).json()["facts"]
    assert {each["head"] for each in heads} <= {name}


def test_complete_gives_unseen_facts_of_fitting_entities(client: TestClient, snapshot: Snapshot) -> None:
    relation = snapshot.relations[int(np.argmax(snapshot.facts_by_relation))]
    told = client.get("/v1/complete", params={"relation": relation, "k": 10}).json()
    assert told["examined"] == 1.0
    assert all(each["observed"] is None for each in told["facts"])
    rows = snapshot.dataset.whole()
    rows = rows[rows.relation == snapshot.relation(relation)]
    best = -1.0
    observed = {(int(h), int(t)) for h, t in zip(rows.head, rows.tail, strict=True)}
    for head in np.unique(rows.head).tolist():
        for tail in np.unique(rows.tail).tolist():
            if (head, tail) not in observed and head != tail:
                triple = np.array([head]), np.array([snapshot.relation(relation)]), np.array([tail])
                best = max(best, float(snapshot.predictor.model.confidence(*triple)[0]))
    assert told["facts"][0]["confidence"] == pytest.approx(best, abs=1e-5)
    values = [each["confidence"] for each in told["facts"]]
    assert values == sorted(values, reverse=True)


def test_rules_come_with_figures_and_examples(client: TestClient, snapshot: Snapshot) -> None:
    told = client.get("/v1/rules", params={"limit": 50}).json()
    assert told["total"] == len(snapshot.rulebook.get().scored) > 0
    first = client.get("/v1/rules/0").json()
    assert first["rule"] == told["rules"][0]
    for example in first["examples"]:
        truth = sum(each["confidence"] for each in example["body"]) - (len(example["body"]) - 1)
        assert example["truth"] == pytest.approx(truth, abs=1e-9)
    ratios = [each.measures.hit_ratio for each in snapshot.rulebook.get().scored]
    doubtful = min(range(len(ratios)), key=ratios.__getitem__)
    assert ratios[doubtful] < 1
    heads = [each["head"]["observed"] is None for each in client.get(f"/v1/rules/{doubtful}").json()["examples"]]
    assert set(heads) == {True, False}
    relation = next(iter(snapshot.rulebook.get().scored)).rule.head.relation
    some = client.get("/v1/rules", params={"relation": relation}).json()
    assert all(relation in each["rule"] for each in some["rules"])
    assert client.get("/v1/rules/999999").status_code == 404


def test_doubtful_facts_are_those_of_the_predictor(client: TestClient, snapshot: Snapshot) -> None:
    told = client.get("/v1/doubtful", params={"limit": 5}).json()["facts"]
    expected = snapshot.predictor.doubt(5)
    assert [(each["head"], each["relation"], each["tail"]) for each in told] == [
        (each.head, each.relation, each.tail) for each in expected
    ]
    assert [each["predicted"] for each in told] == pytest.approx([each.expected for each in expected])


def test_reliability_audit_and_info_tell_of_the_run(client: TestClient, snapshot: Snapshot) -> None:
    reliability = client.get("/v1/reliability").json()
    assert reliability["part"] == "test"
    assert sum(each["facts"] for each in reliability["bins"]) == len(snapshot.dataset.test)
    negatives = reliability["with_negatives"]
    assert reliability["negatives"] == "drawn"
    assert sum(each["facts"] for each in negatives["bins"]) == 2 * len(snapshot.dataset.test)
    assert client.get("/v1/audit").json()["whole"]["rows"] == len(snapshot.dataset.whole())
    info = client.get("/v1/info").json()
    assert (info["run"], info["model"], info["opinion"]) == ("run", "ukge-logi", "model")
    assert info["bounds"] == "validation"
    assert info["limits"]["k"] == 50
    assert str(snapshot.run.path.parent) not in str(info)


def test_health_and_metrics(client: TestClient) -> None:
    assert client.get("/healthz").json() == {"status": "ok", "run": "run"}
    client.get("/v1/no-such-path-1")
    client.get("/v1/no-such-path-2")
    text = client.get("/metrics").text
    assert 'ukge_requests_total{method="GET",route="/healthz",status="200"}' in text
    assert "no-such-path" not in text
    assert "ukge_search_recall 1.0" in text


def test_the_document_has_examples_that_work(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    asked = 0
    for path, operations in document["paths"].items():
        operation = operations.get("get")
        if operation is None:
            continue
        parameters = operation.get("parameters", [])
        given = {each["name"]: each["example"] for each in parameters if "example" in each}
        response = client.get(
            path.replace("{number}", "0").replace("{name}", quote(given.get("name", ""))), params=given
        )
        assert response.status_code == 200, (path, given, response.text)
        asked += 1
    assert asked >= 13
    body = document["components"]["schemas"]["ConfidenceRequest"]["example"]
    assert client.post("/v1/confidence", json=body).status_code == 200
