"""With evidence beside the run, confidences, bounds and reasons are the evidence's."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from tests.serve.small_run import make_judged_run, make_run

from ukge.errors import RunError
from ukge.evidence import Evidence
from ukge.evidence.ranking import linked_candidates
from ukge.graph.queries import Queries
from ukge.learning.estimator import UKGE
from ukge.serve.server import create_app
from ukge.serve.settings import Limits
from ukge.serve.snapshot import Snapshot


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with evidence."""
    return make_judged_run(tmp_path_factory.mktemp("judged"))


@pytest.fixture(scope="module")
def snapshot(judged: Path) -> Snapshot:
    """The run with evidence, opened."""
    return Snapshot.open(judged)


@pytest.fixture(scope="module")
def asking(judged: Path) -> Iterator[TestClient]:
    app, service = create_app(judged, explorer=False, limits=Limits(seconds=600))
    with TestClient(app) as client:
        service.snapshot.doubts.get()
        yield client


def test_confidences_have_the_evidences_bounds(asking: TestClient, judged: Path, snapshot: Snapshot) -> None:
    evidence = Evidence.load(judged)
    for fact in (snapshot.dataset.test[0], snapshot.dataset.train[0]):
        asked = (fact.head, fact.relation, fact.tail)
        told = asking.get("/v1/confidence", params=dict(zip(("head", "relation", "tail"), asked, strict=True))).json()
        low, high = evidence.interval([asked], 0.9)
        assert told["confidence"] == pytest.approx(float(evidence.predict([asked])[0]), abs=1e-6)
        assert told["interval"] == {"low": pytest.approx(float(low[0])), "high": pytest.approx(float(high[0]))}
    assert asking.get("/v1/info").json()["opinion"] == "evidence"


def test_answers_are_ranked_by_the_evidence(asking: TestClient, judged: Path, snapshot: Snapshot) -> None:
    evidence = Evidence.load(judged)
    fact = snapshot.dataset.test[0]
    told = asking.get("/v1/rank", params={"head": fact.head, "relation": fact.relation, "k": 8}).json()
    found = [each["confidence"] for each in told["answers"]]
    asked = [(fact.head, fact.relation, each["entity"]) for each in told["answers"]]
    expected = evidence.predict(asked)
    assert found == pytest.approx(expected.tolist(), abs=1e-6)
    assert found == sorted(found, reverse=True)
    assert all(each["interval"]["low"] <= each["interval"]["high"] for each in told["answers"])


def test_links_propose_what_the_model_does_not(
    asking: TestClient, judged: Path, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ukge.asking.rank.PROPOSED", 3)
    monkeypatch.setattr("ukge.asking.rank.FEW", 0)
    evidence, model = Evidence.load(judged), UKGE.load(judged)
    beyond = 0
    for fact in snapshot.dataset.test[:20]:
        query: dict[str, Any] = {"head": fact.head, "relation": fact.relation, "k": 3}
        found = {each.entity for each in model.rank(fact.head, fact.relation, k=3)}
        asked = Queries.of("tail", evidence.entities.id(fact.head), evidence.relations.id(fact.relation))
        linked = linked_candidates(evidence.features, asked, 3)[0]
        known = snapshot.known.answers(asked).entity
        every = sorted(found | set(evidence.entities.decode([*linked[linked >= 0], *known]).to_pylist()))
        judgement = evidence.predict([(fact.head, fact.relation, each) for each in every])
        best = sorted(judgement.tolist(), reverse=True)[:3]
        told = asking.get("/v1/rank", params=query).json()["answers"]
        assert [each["confidence"] for each in told] == pytest.approx(best, abs=1e-6)
        beyond += len({each["entity"] for each in told} - found)
        unseen = asking.get("/v1/rank", params={**query, "observed": "exclude"}).json()["answers"]
        assert all(each["observed"] is None for each in unseen)
        kind = {each.tail for each in snapshot.dataset.whole() if each.relation == fact.relation}
        fitting = asking.get("/v1/rank", params={**query, "type": "fitting"}).json()["answers"]
        assert {each["entity"] for each in fitting} <= kind
    assert beyond > 0


def test_reasons_add_up_to_the_confidence(asking: TestClient, snapshot: Snapshot) -> None:
    fact = snapshot.dataset.test[0]
    told = asking.get("/v1/explain", params={"head": fact.head, "relation": fact.relation, "tail": fact.tail}).json()
    total = told["base"] + sum(each["contribution"] for each in told["reasons"])
    assert total == pytest.approx(told["confidence"], abs=1e-6)


def test_a_known_fact_is_no_reason_for_itself(asking: TestClient, snapshot: Snapshot) -> None:
    known = snapshot.dataset.train[0]
    own = {"head": known.head, "relation": known.relation, "tail": known.tail}
    told = asking.get("/v1/explain", params=own).json()
    used = [{name: fact[name] for name in own} for each in told["reasons"] for fact in each["facts"]]
    assert used
    assert own not in used


def test_complete_and_doubtful_ask_the_evidence(asking: TestClient, snapshot: Snapshot) -> None:
    relation = snapshot.dataset.test[0].relation
    told = asking.get("/v1/complete", params={"relation": relation, "k": 5}).json()
    assert told["opinion"] == "evidence"
    assert all(each["observed"] is None and each["interval"] for each in told["facts"])
    doubts = asking.get("/v1/doubtful", params={"limit": 5}).json()
    assert (doubts["opinion"], len(doubts["facts"])) == ("evidence", 5)


def test_evidence_of_another_graph_is_refused(judged: Path, tmp_path: Path) -> None:
    other = make_run(tmp_path, seed=1)
    shutil.copytree(judged / "evidence", other / "evidence")
    with pytest.raises(RunError, match=r"not what the evidence in .* was fitted with"):
        Snapshot.open(other)
