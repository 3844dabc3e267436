"""One question, one answer: Python, the command line and HTTP are asked the same of runs with and without evidence."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from tests.cli.asking import answered
from tests.serve.small_run import doubt_with_few_trees, make_judged_run, make_run

from ukge import UKGE, UncertainGraph, write
from ukge.asking import Predictor
from ukge.graph.uncertain import concat
from ukge.serve.server import create_app
from ukge.serve.settings import Limits


@pytest.fixture(scope="module", params=["evidence", "model"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with evidence, and one without."""
    home = tmp_path_factory.mktemp(request.param)
    return make_judged_run(home) if request.param == "evidence" else make_run(home)


@pytest.fixture(scope="module", autouse=True)
def _few_trees_of_doubt() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        doubt_with_few_trees(patch)
        yield


@pytest.fixture(scope="module")
def predictor(run: Path) -> Predictor:
    """The run in Python."""
    return Predictor.open(run)


@pytest.fixture(scope="module")
def http(run: Path) -> Iterator[TestClient]:
    """The run over HTTP."""
    app, service = create_app(run, explorer=False, limits=Limits(seconds=600))
    with TestClient(app) as client:
        service.snapshot.doubts.get()
        yield client


@pytest.fixture(scope="module")
def facts(predictor: Predictor) -> list[tuple[str, str, str]]:
    """Facts of every part, their mirrors, and links that nobody has said."""
    dataset, rng = predictor.dataset, np.random.default_rng(0)
    known = [fact[:3] for part in dataset.parts.values() for fact in part[:6]]
    entities, relations = np.array(list(dataset.entities)), np.array(list(dataset.relations))
    drawn = zip(rng.choice(entities, 6), rng.choice(relations, 6), rng.choice(entities, 6), strict=True)
    random = [(str(head), str(relation), str(tail)) for head, relation, tail in drawn]
    return [*known, *((tail, relation, head) for head, relation, tail in known), *random]


def rows(*arguments: object) -> list[dict[str, Any]]:
    """Return what a command tells as JSON."""
    told: list[dict[str, Any]] = json.loads(answered(*arguments, "--json").stdout)
    return told


def test_how_confident(
    run: Path, predictor: Predictor, http: TestClient, facts: list[tuple[str, str, str]], tmp_path: Path
) -> None:
    """`ukge explain` said 0.62 of an observed fact, and the service 0.47."""
    in_python = predictor.predict(facts)
    low, high = predictor.interval(facts)
    (tmp_path / "facts.tsv").write_text("".join("\t".join(fact) + "\n" for fact in facts), encoding="utf-8")
    told = rows("predict", run, tmp_path / "facts.tsv", "--no-header")
    names = [dict(zip(("head", "relation", "tail"), fact, strict=True)) for fact in facts]
    served = [http.get("/v1/confidence", params=each).json() for each in names]
    assert [row["confidence"] for row in told] == pytest.approx(in_python.tolist(), abs=1e-9)
    assert [each["confidence"] for each in served] == pytest.approx(in_python.tolist(), abs=1e-9)
    assert [row["low"] for row in told] == pytest.approx(low.tolist(), abs=1e-9)
    assert [each["interval"]["high"] for each in served] == pytest.approx(high.tolist(), abs=1e-9)
    stored = [each["observed"] for each in served]
    known = {fact[:3]: fact.confidence for fact in predictor.dataset.whole()}
    assert [value is not None for value in stored] == [fact in known for fact in facts]


@pytest.mark.parametrize("side", ["head", "tail"])
@pytest.mark.parametrize("seen", ["include", "exclude"])
def test_which_answers(run: Path, predictor: Predictor, http: TestClient, side: str, seen: str) -> None:
    for fact in predictor.dataset.test[:4]:
        given = {side: getattr(fact, side)}
        missing = "tail" if side == "head" else "head"
        in_python = predictor.rank(relation=fact.relation, k=7, seen=seen, **given)  # type: ignore[arg-type]
        unseen = ["--unseen"] if seen == "exclude" else []
        told = rows("rank", run, fact.relation, f"--{side}", given[side], "-k", 7, *unseen)
        served = http.get("/v1/rank", params={"relation": fact.relation, "k": 7, "observed": seen, **given}).json()
        assert [row[missing] for row in told] == [each.entity for each in in_python]
        assert [each["entity"] for each in served["answers"]] == [each.entity for each in in_python]
        values = [each.confidence for each in in_python]
        assert [row["confidence"] for row in told] == pytest.approx(values, abs=1e-9)
        assert [each["confidence"] for each in served["answers"]] == pytest.approx(values, abs=1e-9)
        assert values == sorted(values, reverse=True)
        assert [each["observed"] for each in served["answers"]] == [each.stored for each in in_python]


def test_why(run: Path, predictor: Predictor, http: TestClient) -> None:
    for part in predictor.dataset.parts.values():
        fact = part[0][:3]
        in_python = predictor.explain(*fact)
        told = json.loads(answered("explain", run, *fact, "--json").stdout)
        served = http.get("/v1/explain", params=dict(zip(("head", "relation", "tail"), fact, strict=True))).json()
        for other in (told, served):
            assert other["confidence"] == pytest.approx(in_python.confidence, abs=1e-9)
            assert other["observed"] == in_python.observed is not None
            assert [each["sentence"] for each in other["reasons"]] == [each.sentence for each in in_python.reasons]
        assert predictor.predict(fact) == pytest.approx(in_python.confidence, abs=1e-9)
        assert not any(quoted[:3] == fact for reason in in_python.reasons for quoted in reason.facts)


def test_what_is_missing(run: Path, predictor: Predictor, http: TestClient) -> None:
    """The command line offered the user's own validation and test facts as discoveries, the service did not."""
    relation = predictor.dataset.test[0].relation
    in_python = predictor.complete(relations=[relation], k=8, min_confidence=0.0)
    names = [fact[:3] for fact in in_python]
    told = rows("complete", run, "--relation", relation, "-k", 8, "--min-confidence", 0)
    served = http.get("/v1/complete", params={"relation": relation, "k": 8}).json()
    assert [(row["head"], row["relation"], row["tail"]) for row in told] == names
    assert [(each["head"], each["relation"], each["tail"]) for each in served["facts"]] == names
    assert [each["confidence"] for each in served["facts"]] == pytest.approx(in_python.confidence.tolist(), abs=1e-9)
    known = {fact[:3] for fact in predictor.dataset.whole()}
    assert len(names) == 8
    assert not known & set(names)


def test_what_is_doubtful(run: Path, predictor: Predictor, http: TestClient) -> None:
    in_python = [(each.head, each.relation, each.tail, each.expected) for each in predictor.doubt(5)]
    told = [(row["head"], row["relation"], row["tail"], row["expected"]) for row in rows("doubt", run, "-k", 5)]
    served = http.get("/v1/doubtful", params={"limit": 5}).json()["facts"]
    assert told == in_python
    assert [(each["head"], each["relation"], each["tail"], each["predicted"]) for each in served] == in_python


def test_a_triple_said_twice_has_one_confidence(tmp_path: Path) -> None:
    """It was the last, the mean, the highest or the first, depending on who was asked."""
    home = tmp_path / "twice"
    run = make_run(home)
    dataset = Predictor.open(run).dataset
    fact = dataset.train[0]
    again = UncertainGraph.from_facts([(*fact[:3], 0.0)])
    write(concat([dataset.whole(), again]), tmp_path / "facts.tsv")
    UKGE("ukge-logi", dim=8, epochs=1, engine="torch").fit(tmp_path / "facts.tsv", out=tmp_path / "run")
    predictor = Predictor.open(tmp_path / "run")
    app, _ = create_app(tmp_path / "run", explorer=False, limits=Limits(seconds=600))
    with TestClient(app) as client:
        served = client.get("/v1/confidence", params=dict(zip(("head", "relation", "tail"), fact[:3], strict=True)))
    mean = pytest.approx(fact.confidence / 2)
    assert served.json()["observed"] == mean
    assert predictor.explain(*fact[:3]).observed == mean
    ranked = predictor.rank(fact.head, fact.relation, k=len(predictor.entities))
    assert next(each.stored for each in ranked if each.entity == fact.tail) == mean
