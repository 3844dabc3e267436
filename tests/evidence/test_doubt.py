"""Doubt finds confidences that were replaced, and tells them as they are stored."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ukge.errors import ConfigError, DataError
from ukge.evidence import Evidence
from ukge.evidence.doubt import SETTINGS, Judgement, _surprise, doubt, judge
from ukge.evidence.features import Features
from ukge.evidence.fitting import parts_of_facts
from ukge.evidence.paths import PathRules
from ukge.evidence.tables import Tables
from ukge.graph.index import FactIndex
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Vocabulary
from ukge.logic.weights import Prior

QUICK = replace(SETTINGS, iterations=40, leaves=15)


@pytest.fixture(autouse=True)
def _few_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ukge.evidence.doubt.PARTS", 5)


@pytest.fixture(scope="module")
def chosen() -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Rows whose confidences are replaced."""
    return np.random.default_rng(5).permutation(1500)[:75]


@pytest.fixture(scope="module")
def judged(chosen: np.ndarray[tuple[int], np.dtype[np.intp]]) -> tuple[UncertainGraph, Judgement]:
    """500 pairs linked by three relations that agree, but for facts whose confidence is half a unit off."""
    rng = np.random.default_rng(1)
    keys = rng.permutation(60 * 60)[:500]
    head, tail = np.tile(keys // 60, 3), np.tile(keys % 60, 3) + 60
    confidence = np.clip(np.tile(rng.random(500), 3) + 0.02 * rng.standard_normal(1500), 0.0, 1.0)
    confidence[chosen] = (confidence[chosen] + 0.5) % 1.0
    names = Vocabulary([f"e{i}" for i in range(120)])
    relations = Vocabulary(["a", "b", "c"], kind="relation")
    graph = UncertainGraph.from_ids(head, np.repeat([0, 1, 2], 500), tail, confidence, names, relations)
    rules = PathRules.of([], Prior(0.5, 1.0), 0.5, relations)
    index = FactIndex(graph)
    return graph, judge(Features.of(index, Tables.of(index), rules, ()), QUICK)


def test_replaced_confidences_come_first(
    judged: tuple[UncertainGraph, Judgement], chosen: np.ndarray[tuple[int], np.dtype[np.intp]]
) -> None:
    worst = np.argsort(-judged[1].surprise)[: len(chosen)]
    assert np.isin(worst, chosen).mean() > 0.6


def test_a_fact_said_again_is_judged_by_other_facts_alone() -> None:
    """Confidences that nothing but the repeat of a row tells cannot be expected."""
    rng = np.random.default_rng(3)
    keys = rng.permutation(60 * 60)[:600]
    head, tail, confidence = (np.tile(column, 2) for column in (keys // 60, keys % 60 + 60, rng.random(600)))
    names, relations = Vocabulary([f"e{i}" for i in range(120)]), Vocabulary(["r"], kind="relation")
    graph = UncertainGraph.from_ids(head, np.zeros(1200, np.int32), tail, confidence, names, relations)
    index = FactIndex(graph)
    part = parts_of_facts(index, 5, np.random.default_rng(0))
    assert (part[:600] == part[600:]).all()
    assert np.bincount(part).min() > 150
    rules = PathRules.of([], Prior(0.5, 1.0), 0.5, relations)
    expected = judge(Features.of(index, Tables.of(index), rules, ()), QUICK).expected
    assert abs(np.corrcoef(expected, confidence)[0, 1]) < 0.3


def test_a_small_difference_contradicts_an_exact_copy_but_not_a_vague_one() -> None:
    """One column says the confidence exactly for half of the facts, and only roughly for the others."""
    rng = np.random.default_rng(11)
    n = 4000
    stored, exact = rng.random(n), np.arange(n) % 2 == 0
    said = np.where(exact, stored, stored + 0.2 * rng.standard_normal(n))
    wrong = rng.permutation(n)[:200]
    stored[wrong] = np.abs(stored[wrong] - rng.uniform(0.05, 0.3, 200))
    usual = np.where(exact, 0.02, 0.2)
    columns = np.stack([np.zeros(n), exact, said, said, usual], axis=1).astype(np.float32)
    few = replace(SETTINGS, iterations=60)
    surprise = _surprise(columns, [2, 3], stored, rng.permutation(n) % 3, few, lambda _: None)
    is_wrong = np.isin(np.arange(n), wrong)
    assert np.median(surprise[is_wrong & exact]) > np.quantile(surprise[~is_wrong], 0.95)
    assert np.median(surprise[is_wrong & ~exact]) < np.median(surprise[is_wrong & exact])


def test_what_is_expected_does_not_follow_what_is_stored(
    judged: tuple[UncertainGraph, Judgement], chosen: np.ndarray[tuple[int], np.dtype[np.intp]]
) -> None:
    """Every replaced confidence is 0.5 off; an expectation that knew of it would be nearer."""
    graph, judgement = judged
    gap = np.abs(graph.confidence - judgement.expected)
    assert np.median(gap[chosen]) > 0.3
    assert np.median(np.delete(gap, chosen)) < 0.15


def test_doubts_are_told_by_falling_surprise(evidence: Evidence) -> None:
    found = doubt(evidence.features, k=10**6, settings=QUICK)
    surprise = [each.surprise for each in found]
    assert surprise == sorted(surprise, reverse=True)
    assert sorted(each[:4] for each in evidence.known) == sorted((d.head, d.relation, d.tail, d.stored) for d in found)
    first = found[0]
    assert first.surprise == pytest.approx(abs(first.gap) / first.error + np.log(2 * first.error))
    assert f"too {'high' if first.gap > 0 else 'low'}" in str(first)
    name = evidence.relations[1]
    some = doubt(evidence.features, k=3, relations=[name], settings=QUICK)
    assert some == [each for each in found if each.relation == name][:3]


def test_models_have_no_say(evidence: Evidence) -> None:
    features = evidence.features
    (backbone,) = features.backbones
    turned = replace(backbone.parameters, relation=-backbone.parameters.relation)
    other = replace(features, backbones=(replace(backbone, parameters=turned),))
    asked = replace(QUICK, iterations=5)
    np.testing.assert_array_equal(judge(other, asked).expected, judge(features, asked).expected)


def test_mistakes_are_named(evidence: Evidence) -> None:
    with pytest.raises(ConfigError, match="1 or more"):
        doubt(evidence.features, k=0)
    few = FactIndex(evidence.known[:10])
    with pytest.raises(DataError, match="too few"):
        judge(Features.of(few, Tables.of(few), evidence.features.rules, ()), QUICK)
