"""`ukge rank` as a user meets it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from tests.cli.asking import answered, on_a_terminal, refused

from ukge.asking import Predictor
from ukge.errors import ConfigError, DataError
from ukge.evidence.explain import top_reasons
from ukge.graph.dataset import Dataset
from ukge.graph.files import open_text
from ukge.learning.estimator import UKGE


@pytest.fixture(scope="module")
def order(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of a model for ranking."""
    path = tmp_path_factory.mktemp("order") / "run"
    UKGE("complex-all", dim=8, epochs=1).fit(dataset, out=path)
    return path


def test_it_tells_what_the_evidence_ranks(home: Path, dataset: Dataset) -> None:
    fact = dataset.train[0]
    predictor = Predictor.open(home / "run")
    tails = json.loads(answered("rank", home / "run", fact.relation, "--head", fact.head, "-k", 4, "--json").stdout)
    expected = predictor.rank(fact.head, fact.relation, k=4)
    assert [(row["tail"], row["confidence"], row["low"], row["high"], row["stored"]) for row in tails] == [
        each[:5] for each in expected
    ]
    assert {(row["head"], row["relation"]) for row in tails} == {(fact.head, fact.relation)}
    triples = [(row["head"], row["relation"], row["tail"]) for row in tails]
    assert [row["reason"] for row in tails] == [each.sentence for each in top_reasons(predictor.fitted, triples)]
    asked = (home / "run", fact.relation, "--tail", fact.tail, "--unseen", "--coverage", 0.5, "--json")
    heads = json.loads(answered("rank", *asked).stdout)
    expected = predictor.rank(relation=fact.relation, tail=fact.tail, seen="exclude", coverage=0.5)
    assert [(row["head"], row["confidence"], row["low"], row["high"], row["stored"]) for row in heads] == [
        each[:5] for each in expected
    ]


def test_the_table_shows_bounds_what_is_known_and_why(home: Path, dataset: Dataset) -> None:
    predictor, k = Predictor.open(home / "run"), 3
    asking = ((fact, predictor.rank(fact.head, fact.relation, k=k)) for fact in dataset.train)
    fact, answers = next(each for each in asking if any(answer.stored is not None for answer in each[1]))
    asked = ("rank", home / "run", fact.relation, "--head", fact.head, "-k", k)
    reasons = [row["reason"] for row in json.loads(answered(*asked, "--json").stdout)]
    printed = on_a_terminal(*asked)
    lines = printed.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].strip() == f"{fact.head} — {fact.relation} — ?"
    assert "in the" in lines[1]
    for each, reason in zip(answers, reasons, strict=True):
        line = next(row for row in lines if " – " in row and row.rstrip().endswith(f" {each.entity}"))
        assert f" {each.confidence:.2f}  {each.low:.2f} – {each.high:.2f} " in line
        assert each.stored is None or f" {each.stored:.2f} " in line
        assert reason in " ".join(printed.split())
    bare = on_a_terminal(*asked, "--no-reasons", "--unseen")
    assert "in the" not in bare
    assert len([line for line in bare.splitlines() if " – " in line]) == k


def test_a_pipe_gets_lines_and_a_file_what_its_name_says(home: Path, dataset: Dataset, tmp_path: Path) -> None:
    fact = dataset.train[0]
    asked = ("rank", home / "run", fact.relation, "--head", fact.head, "-k", 3)
    rows = json.loads(answered(*asked, "--json").stdout)
    piped = list(csv.DictReader(io.StringIO(answered(*asked).stdout), delimiter="\t", quoting=csv.QUOTE_NONE))
    assert [row["tail"] for row in piped] == [row["tail"] for row in rows]
    assert list(piped[0]) == ["head", "relation", "tail", "confidence", "low", "high", "stored", "reason"]
    for ending in ("jsonl", "jsonl.gz", "ndjson.zst"):
        assert not answered(*asked, "--out", tmp_path / f"told.{ending}").stdout
        with open_text(tmp_path / f"told.{ending}") as text:
            assert [json.loads(line) for line in text] == rows
    answered(*asked, "--out", tmp_path / "told.parquet")
    assert pq.read_table(tmp_path / "told.parquet").to_pylist() == rows
    assert isinstance(refused(*asked, "--out", tmp_path / "told.xyz"), DataError)


def test_without_evidence_the_model_answers(home: Path, dataset: Dataset) -> None:
    fact = dataset.train[0]
    told = answered("rank", home / "plain", fact.relation, "--head", fact.head, "-k", 2)
    first = UKGE.load(home / "plain").rank(fact.head, fact.relation, k=1)[0]
    assert first.entity in told.stdout
    assert "low" in told.stdout  # as wide as the model's errors on validation facts
    assert "ukge evidence fit" in told.stderr
    assert "order" not in told.stderr
    found = json.loads(answered("rank", home / "plain", fact.relation, "--head", fact.head, "-k", 1, "--json").stdout)
    assert [(row["head"], row["tail"], row["confidence"]) for row in found] == [
        (fact.head, first.entity, pytest.approx(first.confidence))
    ]


def test_a_model_for_ranking_says_that_its_numbers_are_no_confidences(order: Path, dataset: Dataset) -> None:
    fact = dataset.train[0]
    assert "learnt an order" in answered("rank", order, fact.relation, "--head", fact.head).stderr


def test_questions_that_are_none_are_refused(home: Path, dataset: Dataset) -> None:
    fact = dataset.train[0]
    assert isinstance(refused("rank", home / "run", fact.relation), ConfigError)
    both = ("--head", fact.head, "--tail", fact.tail)
    assert isinstance(refused("rank", home / "run", fact.relation, *both), ConfigError)
    assert isinstance(refused("rank", home / "run", fact.relation, "--head", "nobody"), DataError)
