"""`ukge rank` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from ukge.cli import app
from ukge.errors import ConfigError, DataError, RunError, UkgeError
from ukge.estimator import UKGE
from ukge.evidence import Evidence
from ukge.graph.dataset import Dataset
from ukge.graph.split import split
from ukge.graph.synthetic import generate

runner = CliRunner()


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    """The cut facts of a small world."""
    return split(generate(n_entities=200, n_facts=1500, seed=3).graph, val=0.15, test=0.1, seed=1, name="world")


@pytest.fixture(scope="module")
def home(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a run that has evidence, and two that have none, one of them a model for ranking."""
    path = tmp_path_factory.mktemp("home")
    model = UKGE("ukge-rect", dim=8, epochs=2, batch_size=256, every=2).fit(dataset, out=path / "run")
    model.save(path / "plain")
    UKGE("complex-all", dim=8, epochs=1).fit(dataset, out=path / "order")
    settings: dict[str, Any] = {"iterations": 10, "leaves": 7, "folds": 3, "rank_queries": 40, "rank_candidates": 5}
    Evidence.fit([model], dataset, **settings).save(path / "run" / "evidence")
    return path


def _run(*arguments: object) -> Result:
    result = runner.invoke(app, ["rank", *(str(each) for each in arguments)])
    assert result.exit_code == 0, result.output
    return result


def _refused(*arguments: object) -> UkgeError:
    error = runner.invoke(app, ["rank", *(str(each) for each in arguments)]).exception
    assert isinstance(error, UkgeError)
    return error


def test_it_tells_what_the_evidence_ranks(home: Path, dataset: Dataset) -> None:
    fact = dataset.train[0]
    evidence = Evidence.load(home / "run")
    tails = json.loads(_run(home / "run", fact.relation, "--head", fact.head, "-k", 4, "--json").stdout)
    assert tails == [each._asdict() for each in evidence.rank(fact.head, fact.relation, k=4)]
    asked = (home / "run", fact.relation, "--tail", fact.tail, "--unseen", "--coverage", 0.5, "--json")
    heads = json.loads(_run(*asked).stdout)
    expected = evidence.rank(relation=fact.relation, tail=fact.tail, unseen=True, coverage=0.5)
    assert heads == [each._asdict() for each in expected]


def test_the_table_shows_bounds_and_what_is_known(home: Path, dataset: Dataset) -> None:
    fact = dataset.train[0]
    answers = Evidence.load(home / "run").rank(fact.head, fact.relation, k=3)
    printed = _run(home / "run", fact.relation, "--head", fact.head, "-k", 3).stdout
    assert f"{fact.head} — {fact.relation} — ?" in printed
    assert "90% interval" in printed
    for each in answers:
        line = next(row for row in printed.splitlines() if f" {each.entity} " in row)
        assert f"{each.confidence:.2f}" in line
        assert f"{each.low:.2f} – {each.high:.2f}" in line
        assert each.stored is None or f" {each.stored:.2f} " in line
    assert "in the graph" in printed
    assert "in the graph" not in _run(home / "run", fact.relation, "--head", fact.head, "--unseen").stdout


def test_without_evidence_the_model_answers(home: Path, dataset: Dataset) -> None:
    fact = dataset.train[0]
    told = _run(home / "plain", fact.relation, "--head", fact.head, "-k", 2)
    first = UKGE.load(home / "plain").rank(fact.head, fact.relation, k=1)[0]
    assert first.entity in told.stdout
    assert "interval" not in told.stdout
    assert "ukge evidence fit" in told.stderr
    assert "order" not in told.stderr
    found = json.loads(_run(home / "plain", fact.relation, "--head", fact.head, "-k", 1, "--json").stdout)
    assert found == [
        {"entity": first.entity, "confidence": first.confidence, "low": None, "high": None, "stored": None}
    ]


def test_a_model_for_ranking_says_that_its_numbers_are_no_confidences(home: Path, dataset: Dataset) -> None:
    fact = dataset.train[0]
    assert "learnt an order" in _run(home / "order", fact.relation, "--head", fact.head).stderr


def test_questions_that_are_none_are_refused(home: Path, dataset: Dataset) -> None:
    fact = dataset.train[0]
    assert isinstance(_refused(home / "run", fact.relation), ConfigError)
    assert isinstance(_refused(home / "run", fact.relation, "--head", fact.head, "--tail", fact.tail), ConfigError)
    assert isinstance(_refused(home / "plain", fact.relation, "--head", fact.head, "-k", 0), ConfigError)
    assert isinstance(_refused(home / "run", fact.relation, "--head", "nobody"), DataError)
    assert isinstance(_refused(home / "plain", fact.relation, "--head", fact.head, "--unseen"), RunError)
