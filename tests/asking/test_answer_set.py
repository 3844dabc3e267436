"""Answer sets of a run: no known answer, larger for more coverage, and held-out answers in them as promised."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.asking import answered

from ukge.asking import Predictor
from ukge.errors import RunError
from ukge.evidence import Evidence
from ukge.graph.dataset import Dataset


def test_a_set_grows_with_its_coverage_and_has_no_known_answer(predictor: Predictor, dataset: Dataset) -> None:
    head, relation, *_ = dataset.test[0]
    known = {fact.tail for fact in dataset.whole() if fact[:2] == (head, relation)}
    n = len(dataset.entities)
    small, large = (predictor.answer_set(head, relation, coverage=each, k=n) for each in (0.5, 0.95))
    names = [{each.entity for each in found.answers} for found in (small, large)]
    assert [found.size for found in (small, large)] == [len(each) for each in names]
    assert names[0] <= names[1]
    assert not names[1] & known
    confidences = [each.confidence for each in large.answers]
    assert confidences == sorted(confidences, reverse=True)
    assert len(predictor.answer_set(head, relation, coverage=0.95, k=3).answers) == min(3, large.size)


def test_held_out_answers_are_in_their_sets(predictor: Predictor, dataset: Dataset) -> None:
    assert predictor.answer_sets is not None
    test, train = dataset.test, {fact[:3] for fact in dataset.train}
    held = []
    for fact in [each for each in test if each[:3] not in train][:150]:
        query = dataset.relations.id(fact.relation)
        scores = predictor.fitted.tail_scores(np.array([dataset.entities.id(fact.head)]), np.array([query]))[0]
        least = predictor.answer_sets.least_score("tail", np.array([query]), 0.8)[0]
        held.append(scores[dataset.entities.id(fact.tail)] >= least)
    assert np.mean(held) > 0.68  # three deviations below


def test_the_command_tells_the_set_and_heeds_the_prior(evidence: Evidence, dataset: Dataset, tmp_path: Path) -> None:
    run = tmp_path / "kept"
    evidence.save(run)
    head, relation, *_ = dataset.test[0]
    result = answered("rank", run, relation, "--head", head, "--answer-set", "0.8", "-k", "5", "--json")
    found = Predictor.open(run).answer_set(head, relation, coverage=0.8, k=5)
    assert [each["tail"] for each in json.loads(result.stdout)] == [each.entity for each in found.answers]
    assert f"among {found.size:,} of {len(dataset.entities):,} entities with a chance of 80%" in result.stderr
    rare = json.loads(answered("rank", run, relation, "--head", head, "--prior", "0.05", "--json").stdout)
    expected = Predictor.open(run, prior=0.05).rank(head, relation)
    assert [each["confidence"] for each in rare] == pytest.approx([each.confidence for each in expected])
    assert rare[0]["confidence"] < Predictor.open(run).rank(head, relation)[0].confidence


def test_a_model_has_sets_and_no_prior(run: Path) -> None:
    with pytest.raises(RunError, match="has no evidence"):
        Predictor.open(run, prior=0.1)
    asked = Predictor.open(run)
    head, relation, *_ = asked.dataset.test[0]
    assert asked.answer_set(head, relation, coverage=0.5).size > 0
