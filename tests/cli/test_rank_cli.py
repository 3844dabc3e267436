"""`ukge rank` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.asking import answered, refused

from ukge.errors import ConfigError, DataError, RunError
from ukge.estimator import UKGE
from ukge.evidence import Evidence
from ukge.graph.dataset import Dataset


@pytest.fixture(scope="module")
def order(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a model for ranking."""
    path = tmp_path_factory.mktemp("order") / "run"
    UKGE("complex-all", dim=8, epochs=1).fit(dataset, out=path)
    return path


def test_it_tells_what_the_evidence_ranks(home: Path, dataset: Dataset) -> None:
    fact = dataset.train[0]
    evidence = Evidence.load(home / "run")
    tails = json.loads(answered("rank", home / "run", fact.relation, "--head", fact.head, "-k", 4, "--json").stdout)
    assert tails == [each._asdict() for each in evidence.rank(fact.head, fact.relation, k=4)]
    asked = (home / "run", fact.relation, "--tail", fact.tail, "--unseen", "--coverage", 0.5, "--json")
    heads = json.loads(answered("rank", *asked).stdout)
    expected = evidence.rank(relation=fact.relation, tail=fact.tail, unseen=True, coverage=0.5)
    assert heads == [each._asdict() for each in expected]


def test_the_table_shows_bounds_and_what_is_known(home: Path, dataset: Dataset) -> None:
    fact = dataset.train[0]
    answers = Evidence.load(home / "run").rank(fact.head, fact.relation, k=3)
    printed = answered("rank", home / "run", fact.relation, "--head", fact.head, "-k", 3).stdout
    assert f"{fact.head} — {fact.relation} — ?" in printed
    assert "90% interval" in printed
    for each in answers:
        line = next(row for row in printed.splitlines() if f" {each.entity} " in row)
        assert f"{each.confidence:.2f}" in line
        assert f"{each.low:.2f} – {each.high:.2f}" in line
        assert each.stored is None or f" {each.stored:.2f} " in line
    assert "in the graph" in printed
    assert "in the graph" not in answered("rank", home / "run", fact.relation, "--head", fact.head, "--unseen").stdout


def test_without_evidence_the_model_answers(home: Path, dataset: Dataset) -> None:
    fact = dataset.train[0]
    told = answered("rank", home / "plain", fact.relation, "--head", fact.head, "-k", 2)
    first = UKGE.load(home / "plain").rank(fact.head, fact.relation, k=1)[0]
    assert first.entity in told.stdout
    assert "interval" not in told.stdout
    assert "ukge evidence fit" in told.stderr
    assert "order" not in told.stderr
    found = json.loads(answered("rank", home / "plain", fact.relation, "--head", fact.head, "-k", 1, "--json").stdout)
    assert found == [
        {"entity": first.entity, "confidence": first.confidence, "low": None, "high": None, "stored": None}
    ]


def test_a_model_for_ranking_says_that_its_numbers_are_no_confidences(order: Path, dataset: Dataset) -> None:
    fact = dataset.train[0]
    assert "learnt an order" in answered("rank", order, fact.relation, "--head", fact.head).stderr


def test_questions_that_are_none_are_refused(home: Path, dataset: Dataset) -> None:
    fact = dataset.train[0]
    assert isinstance(refused("rank", home / "run", fact.relation), ConfigError)
    both = ("--head", fact.head, "--tail", fact.tail)
    assert isinstance(refused("rank", home / "run", fact.relation, *both), ConfigError)
    assert isinstance(refused("rank", home / "plain", fact.relation, "--head", fact.head, "-k", 0), ConfigError)
    assert isinstance(refused("rank", home / "run", fact.relation, "--head", "nobody"), DataError)
    assert isinstance(refused("rank", home / "plain", fact.relation, "--head", fact.head, "--unseen"), RunError)
