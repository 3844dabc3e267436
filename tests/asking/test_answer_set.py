"""Answer sets of a run: no known answer, larger for more coverage, and held-out answers in them as promised."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.cli.asking import answered
from tests.evidence.conftest import SMALL

from ukge.asking import Predictor
from ukge.errors import RunError
from ukge.evaluation.answer_sets import FEWEST, WITHIN, scores_of_answers
from ukge.evidence import Evidence, EvidenceSettings
from ukge.evidence.ranking import HELD_OUT, held_out
from ukge.graph.dataset import Dataset
from ukge.graph.index import FactIndex
from ukge.graph.queries import SIDES, Queries
from ukge.graph.split import split
from ukge.graph.synthetic import generate
from ukge.graph.uncertain import concat
from ukge.learning.estimator import UKGE


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


def test_held_out_answers_are_in_their_sets_on_each_side_and_in_each_relation() -> None:
    """Over a fresh world the shares are those of chance: within four deviations of so many facts."""
    dataset = split(generate(n_entities=800, n_facts=10_000, seed=5).graph, val=0.3, test=0.3, seed=2, name="sets")
    model = UKGE("ukge-rect", dim=8, epochs=3, batch_size=256, lr=0.01, every=3, seed=0, engine="torch").fit(dataset)
    evidence = Evidence.fit([model], dataset, **SMALL)
    sets, known = evidence.answer_sets, FactIndex(dataset.train)
    assert sets is not None
    judged = 0
    for number, side in enumerate(SIDES):
        found = scores_of_answers(evidence, dataset.test, known, side)
        own = np.bincount(sets.relation[sets.side == number], minlength=known.n_relations)
        for coverage in (0.8, 0.9):
            for within in WITHIN:
                groups = [slice(None)] if within == "all" else np.flatnonzero(own >= FEWEST).tolist()
                least = sets.least_score(side, found.relation, coverage, within)
                for group in groups:
                    rows = found.relation == group if within == "relation" else group
                    held = found.score[rows] >= least[rows]
                    n = own[group].sum()
                    deviation = np.sqrt(coverage * (1 - coverage) * (1 / n + 1 / len(held)))
                    assert held.mean() > coverage - 4 * deviation, (side, coverage, group)
                    assert held.mean() < coverage + 4 * deviation + 2 / n, (side, coverage, group)
                    judged += 1
    assert judged > 12


def test_calibration_scores_are_those_that_answers_get(evidence: Evidence, dataset: Dataset) -> None:
    """One entity of each query, scored alone, has the score that it has among all."""
    facts, ranker = dataset.test, evidence.ranker
    new = np.flatnonzero(~evidence.features.index.known(facts.head, facts.relation, facts.tail))[:200]
    assert ranker is not None
    ends = facts.head, facts.tail
    for side, (given, answer) in zip(SIDES, (ends, ends[::-1]), strict=True):
        queries = Queries.of(side, given[new], facts.relation[new])
        level = evidence.predict_ids(facts.head[new], facts.relation[new], facts.tail[new], assume_holds=True)
        alone = ranker.scores_of(evidence.features, queries, answer[new], level)
        among = queries.scores(evidence)[np.arange(len(new)), answer[new]]
        np.testing.assert_allclose(alone, among, rtol=1e-6)
        assert 0.1 < np.mean(alone > 0) < 1.0, "some are candidates"


def test_held_out_facts_are_drawn_one_by_one_and_hidden_from_the_ranking(dataset: Dataset) -> None:
    settings, val = EvidenceSettings(), dataset.val
    twice = concat([val, val])
    for facts in (val, twice):
        held = held_out(facts, settings)
        assert held.sum() == len(facts) // len(val) * (len(np.unique(val.keys())) // HELD_OUT)
    np.testing.assert_array_equal(held[: len(val)], held[len(val) :])
    # A query with many answers has some of them held out and others not.
    first = held[: len(val)]
    query = np.unique(val.relation * val.n_entities + val.tail, return_inverse=True)[1]
    count, some = np.bincount(query), np.bincount(query, first)
    assert ((some > 0) & (some < count)).sum() > 10


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
