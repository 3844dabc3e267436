"""Reasons: they add up, and what they quote is what the evidence rests on."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import ukge
from ukge.errors import DataError
from ukge.evidence import Evidence
from ukge.evidence.explain import Explanation, explain_all, top_reasons
from ukge.evidence.reasons import OTHER, Witness, subject_of
from ukge.graph.dataset import Dataset
from ukge.graph.uncertain import Fact
from ukge.logic.syntax import parse_rule

Triples = list[tuple[str, str, str]]


@pytest.fixture(scope="module")
def triples(dataset: Dataset) -> Triples:
    """Validation facts, training facts and links of random entities."""
    rng = np.random.default_rng(0)
    named = [(fact.head, fact.relation, fact.tail) for fact in [*dataset.val[:30], *dataset.train[:30]]]
    heads, tails = (dataset.entities.decode(rng.integers(300, size=20)).to_pylist() for _ in range(2))
    kinds = dataset.relations.decode(rng.integers(len(dataset.relations), size=20)).to_pylist()
    return [*named, *zip(heads, kinds, tails, strict=True)]


def test_evidence_explains_itself(evidence: Evidence, triples: Triples) -> None:
    assert [evidence.explain(*triples[0], coverage=0.8)] == list(explain_all(evidence, triples[:1], coverage=0.8))
    assert ukge.Evidence is Evidence


@pytest.mark.parametrize(("assume_holds", "count_itself"), [(False, False), (True, False), (False, True)])
def test_contributions_add_up(evidence: Evidence, triples: Triples, assume_holds: bool, count_itself: bool) -> None:
    found = list(explain_all(evidence, triples, assume_holds=assume_holds, count_itself=count_itself))
    predicted = evidence.predict(triples, assume_holds=assume_holds, count_itself=count_itself)
    low, high = evidence.interval(triples, assume_holds=assume_holds, count_itself=count_itself)
    for row, told in enumerate(found):
        assert told.fact == triples[row]
        assert told.confidence == predicted[row]
        assert told.interval == (low[row], high[row])
        total = math.fsum([told.base or 0.0, *(reason.contribution or 0.0 for reason in told.reasons)])
        assert total == pytest.approx(told.confidence, abs=1e-12)


def test_a_model_that_learnt_an_order_speaks_of_places(evidence: Evidence, triples: Triples, tmp_path: Path) -> None:
    backbone = evidence.features.backbones[0]
    ordered = evidence.over(replace(evidence.features, backbones=(replace(backbone, learns_confidence=False),)))
    ordered.save(tmp_path)
    for triple in triples[:10]:
        head, relation, tail = evidence.ids([triple])
        scores = backbone.model.tail_scores(head, relation)[0]
        place = sorted(scores.tolist(), reverse=True).index(scores[tail[0]]) + 1
        for each in (ordered, Evidence.load(tmp_path)):
            assert said_by_model(each, triple) == f"Model ukge-rect puts the tail at place {place} of 300."
        confidence = backbone.model.confidence(head, relation, tail)[0]
        assert said_by_model(evidence, triple) == f"Model ukge-rect gives it a confidence of {confidence:.2f}."


def said_by_model(evidence: Evidence, triple: tuple[str, str, str]) -> str:
    head, relation, tail = (int(ids[0]) for ids in evidence.ids([triple]))
    values = {name: float(column[0]) for name, column in evidence.columns([triple], count_itself=True).items()}
    witness = Witness(evidence.features, (head, relation, tail), values, -1)
    return witness.top({"model:ukge-rect": 1.0}).sentence


def test_every_column_speaks_of_something(evidence: Evidence) -> None:
    assert {subject_of(name) for name in evidence.feature_names} >= {"pair", "rule", "query", "analogue tail"}
    assert OTHER not in {subject_of(name) for name in evidence.feature_names}


def test_ground_rules_are_those_of_the_evidence(evidence: Evidence, triples: Triples) -> None:
    columns = evidence.columns(triples, count_itself=True)
    stored = {fact[:3]: fact.confidence for fact in evidence.known}
    fired = 0
    for row, told in enumerate(explain_all(evidence, triples, count_itself=True)):
        rules = [reason for reason in told.reasons if reason.rule is not None]
        assert len(rules) == columns["rules"][row]
        trust = []
        for reason in rules:
            rule = parse_rule(str(reason.rule))
            assert rule.head.relation == told.fact[1]
            where = {rule.head.subject: told.fact[0], rule.head.object: told.fact[2]}
            for atom, fact in zip(rule.body, reason.facts, strict=True):
                assert fact.relation == atom.relation
                assert stored[fact[:3]] == fact.confidence
                for variable, name in zip(atom.variables, (fact.head, fact.tail), strict=True):
                    assert where.setdefault(variable, name) == name
            trust.append(rule.weight * (sum(fact.confidence for fact in reason.facts) - 1.0))
            fired += 1
        assert max(trust, default=0.0) == pytest.approx(columns["rule_best"][row], abs=1e-6)
    assert fired > 10


def test_facts_of_the_pair_are_all_named(evidence: Evidence, triples: Triples) -> None:
    columns = evidence.columns(triples, count_itself=True)
    for row, told in enumerate(explain_all(evidence, triples, count_itself=True)):
        quoted = [r.facts[0] for r in told.reasons if r.kind in ("repeat", "inverse", "pair") and r.facts]
        n = sum(columns[name][row] for name in ("twins", "inverse_twins", "pair_facts", "pair_facts_inverse"))
        assert len(quoted) == n
        assert all({fact.head, fact.tail} == {told.fact[0], told.fact[2]} for fact in quoted)


def test_analogues_are_the_nearest(evidence: Evidence, triples: Triples) -> None:
    columns = evidence.columns(triples, count_itself=True)
    compared = 0
    for row, told in enumerate(explain_all(evidence, triples, count_itself=True)):
        near = [
            r.facts[0] for r in told.reasons if r.kind == "analogue" and r.facts and r.facts[0].head == told.fact[0]
        ]
        expected = columns["nearest_tail_confidence"][row]
        if near and not np.isnan(expected):
            assert any(fact.confidence == pytest.approx(expected, abs=1e-6) for fact in near)
            compared += 1
    assert compared > 5


def test_a_fact_is_not_its_own_reason_unless_asked(evidence: Evidence, dataset: Dataset) -> None:
    fact = dataset.train[0]
    known = evidence.explain(*fact[:3], count_itself=True)
    without = evidence.explain(*fact[:3])
    assert known.observed == without.observed == pytest.approx(fact.confidence)
    assert any(reason.kind == "repeat" for reason in known.reasons)
    assert not any(quoted[:3] == fact[:3] for reason in without.reasons for quoted in reason.facts)


def test_an_explanation_is_told_in_sentences_and_as_json(evidence: Evidence, dataset: Dataset) -> None:
    told = evidence.explain(*dataset.val[0][:3])
    lines = str(told).splitlines()
    assert f"confidence {told.confidence:.2f}" in lines[0]
    assert all(line.endswith(".") for line in lines)
    again = json.loads(json.dumps(told.to_json()))
    assert again["fact"] == list(told.fact)
    assert [each["contribution"] for each in again["reasons"]] == [each.contribution for each in told.reasons]
    quoted = [fact for reason in again["reasons"] for fact in reason["facts"]]
    assert quoted
    assert set(quoted[0]) == {"head", "relation", "tail", "confidence"}
    rebuilt = [Fact(**fact) for fact in quoted]
    assert {fact[:4] for fact in rebuilt} <= {fact[:4] for fact in evidence.known}


def test_reasons_that_name_facts_come_first(evidence: Evidence, triples: Triples) -> None:
    for top, told in zip(top_reasons(evidence, triples[:20]), explain_all(evidence, triples[:20]), strict=True):
        assert isinstance(told, Explanation)
        reasons = [reason for reason in told.reasons if reason.kind != OTHER]
        heaviest = max(reason.weight for reason in reasons)
        named = [reason.weight for reason in reasons if reason.facts and reason.weight >= max(5e-4, heaviest / 10)]
        assert [reason.weight for reason in reasons[: len(named)]] == sorted(named, reverse=True)
        assert top == reasons[0]


def test_what_is_usual_is_no_reason(evidence: Evidence, dataset: Dataset) -> None:
    """What the expectation moved goes to the evidence that it was made of, and nothing is lost."""
    facts = [fact[:3] for fact in dataset.test[:30]]
    taken = evidence.contributions(facts)
    moved = taken.parts[:, list(taken.names).index("expected")]
    assert (np.abs(moved) > 1e-3).any()
    for told in explain_all(evidence, facts):
        assert not [reason for reason in told.reasons if "such evidence" in reason.sentence]
        total = (told.base or 0.0) + sum(reason.contribution or 0.0 for reason in told.reasons)
        assert total == pytest.approx(told.confidence, abs=1e-9)
        rest = [reason.weight for reason in told.reasons if reason.kind == OTHER]
        assert sum(rest) < 5e-3  # of reasons too small to be told, each below 5e-4


def test_an_unknown_name_is_refused(evidence: Evidence, dataset: Dataset) -> None:
    with pytest.raises(DataError, match="unknown entity 'nobody'"):
        evidence.explain("nobody", dataset.relations[0], dataset.entities[0])


def test_the_top_reason_is_the_first_of_all(evidence: Evidence, dataset: Dataset) -> None:
    facts = [fact[:3] for fact in dataset.test[:60]]
    told = list(explain_all(evidence, facts))
    found = top_reasons(evidence, facts)
    for whole, top in zip(told, found, strict=True):
        assert top.weight == pytest.approx(whole.reasons[0].weight, abs=1e-12)
        assert top in whole.reasons or not top.contribution


def test_no_entity_is_said_to_be_like_itself(evidence: Evidence) -> None:
    every = explain_all(evidence, evidence.known[:40], count_itself=True)
    told = [reason.sentence for each in every for reason in each.reasons]
    assert not [sentence for sentence in told if re.match(r"(.+) is like \1 \(", sentence)]
    assert any(sentence.startswith("The fact itself is known: ") for sentence in told)
