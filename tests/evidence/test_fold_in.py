"""Fold-in: new facts count at once, new entities get vectors that fit their facts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.evidence.conftest import asked as asked_of

from ukge.evidence import Evidence
from ukge.evidence.backbones import Backbone
from ukge.evidence.fold_in import fold_in
from ukge.evidence.new_rows import Free, Sizes, lessons_of, widened, with_room
from ukge.evidence.paths import PathRules
from ukge.graph.dataset import Dataset
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Vocabulary
from ukge.logic.weights import Prior
from ukge.models.tables import Parameters


def _world(scorer: str, link: str, n: int = 40, dim: int = 4) -> tuple[Backbone, UncertainGraph]:
    """Random vectors, and 60 facts of the last entity, with the confidences that its own vector gives them."""
    rng = np.random.default_rng(3)
    entity = rng.standard_normal((n, dim)).astype(np.float32) * 0.7
    relation = rng.standard_normal((3, dim)).astype(np.float32)
    weights = np.array([0.8, 0.4 if link == "rectifier" else 0.1], dtype=np.float32)
    whole = Backbone("true", scorer, link, Parameters(entity, relation, weights))
    head, kind, tail = np.full(60, n - 1), rng.integers(3, size=60), rng.integers(n - 1, size=60)
    confidence = np.clip(whole.model.confidence(head, kind, tail), 0.0, 1.0)
    names = Vocabulary([f"e{i}" for i in range(n)])
    facts = UncertainGraph.from_ids(head, kind, tail, confidence, names, Vocabulary(["a", "b", "c"], kind="relation"))
    return Backbone("old", scorer, link, Parameters(entity[:-1], relation, weights)), facts


def _widened(old: Backbone, facts: UncertainGraph, ridge: float) -> Backbone:
    """Fit the names of some facts that a model does not have yet, without links taken to be false."""
    free = Free.of(facts, Sizes(len(old.parameters.entity), len(old.parameters.relation)))
    room = with_room(old, free.trained, Sizes(facts.n_entities, facts.n_relations))
    return widened(room, lessons_of(facts, free, 0, 0), free, ridge)


@pytest.mark.parametrize(
    ("scorer", "link"),
    [("distmult", "rectifier"), ("distmult", "logistic"), ("complex", "logistic"), ("transe", "logistic")],
)
def test_a_new_vector_fits_its_facts(scorer: str, link: str) -> None:
    old, facts = _world(scorer, link)
    found = _widened(old, facts, 1e-4)
    np.testing.assert_array_equal(found.parameters.entity[:39], old.parameters.entity)
    ids = facts.head, facts.relation, facts.tail
    fitted = found.model.confidence(*ids)
    mean = Parameters(
        np.concatenate([old.parameters.entity, old.parameters.entity.mean(axis=0, keepdims=True)]),
        old.parameters.relation,
        old.parameters.link,
    )
    blind = Backbone("mean", scorer, link, mean).model.confidence(*ids)
    assert np.mean((fitted - facts.confidence) ** 2) < 0.1 * np.mean((blind - facts.confidence) ** 2)


@pytest.mark.parametrize("scorer", ["distmult", "complex", "transe"])
def test_a_new_entity_of_a_model_for_ranking_stands_where_its_facts_say(scorer: str) -> None:
    whole, names, kinds = _ranking_world(scorer)
    new, n = 80, 81
    relation = np.arange(3)
    answers = np.argsort(-whole.model.tail_scores(np.full(3, new), relation)[:, :new], axis=1)[:, :8]
    # Of its eight best answers under each relation it is told every other one.
    head, kind, tail = np.full(12, new), np.repeat(relation, 4), answers[:, ::2].ravel()
    facts = UncertainGraph.from_ids(head, kind, tail, np.full(12, 0.9), names, kinds)
    weights = whole.parameters
    old = replace(whole, parameters=Parameters(weights.entity[:new], weights.relation, weights.link))
    free = Free.of(facts, Sizes(new, 3))
    room, lessons = with_room(old, free.trained, Sizes(n, 3)), lessons_of(facts, free, 4, 0)
    found = widened(room, lessons, free, 0.1)
    np.testing.assert_array_equal(found.parameters.entity[:new], old.parameters.entity)

    def place(backbone: Backbone, asked: np.ndarray) -> float:
        scores = backbone.model.tail_scores(np.full(3, new), relation)[:, :new]
        return float(
            np.mean([np.sum(row > row[each][:, None], axis=1) for row, each in zip(scores, asked, strict=True)])
        )

    as_confidences = widened(replace(room, learns_confidence=True), lessons, free, 0.1)
    for asked in (answers[:, ::2], answers[:, 1::2]):
        assert place(found, asked) < 20  # at random: 39.5
        assert place(found, asked) < place(as_confidences, asked)
    lengths = np.linalg.norm(found.parameters.entity, axis=1)
    assert 0.3 < lengths[new] / lengths[:new].mean() < 2.0


def _ranking_world(scorer: str) -> tuple[Backbone, Vocabulary, Vocabulary]:
    """Random vectors of 81 entities whose plausibilities are as far apart as those of a softmax."""
    rng = np.random.default_rng(4)
    entity, relation = (rng.standard_normal((rows, 8)).astype(np.float32) * 1.5 for rows in (81, 3))
    weights = Parameters(entity, relation, np.array([1.0, 0.0], dtype=np.float32))
    names = Vocabulary([f"e{i}" for i in range(81)])
    backbone = Backbone("order", scorer, "logistic", weights, learns_confidence=False)
    return backbone, names, Vocabulary(["a", "b", "c"], kind="relation")


def test_the_ridge_solution_is_the_least_squares_one() -> None:
    old, facts = _world("distmult", "rectifier")
    found = _widened(old, facts, 1e-9).parameters.entity[39]
    entity, relation, (weight, bias) = old.parameters.entity, old.parameters.relation, old.parameters.link
    queries = (entity[facts.tail] * relation[facts.relation]).astype(np.float64)
    target = (facts.confidence - bias) / weight
    expected = np.linalg.lstsq(queries, target, rcond=None)[0]
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_false_links_weigh_as_much_as_the_facts() -> None:
    _, facts = _world("distmult", "rectifier")
    lessons = lessons_of(facts, Free.of(facts, Sizes(39, 3)), 4, 0)
    assert len(lessons.head) == 5 * len(facts)
    assert (lessons.head == 39).all()
    assert lessons.weight[60:].sum() == pytest.approx(60)
    assert not lessons.confidence[60:].any()


def test_new_facts_are_evidence_at_once(evidence: Evidence, dataset: Dataset) -> None:
    head, relation, tail, *_ = dataset.val[0]
    known = dataset.train[0]
    taught = [(head, relation, tail, 0.77), (*known[:3], 0.11), ("someone new", relation, tail, 0.9)]
    folded = fold_in(evidence, taught)
    assert len(folded.known) == len(evidence.known) + 2
    assert len(folded.entities) == len(evidence.entities) + 1
    now = folded.columns([(head, relation, tail), known[:3]], count_itself=True)
    assert now["twins"].tolist() == [1, 1]
    assert now["twin_confidence"] == pytest.approx([0.77, 0.11])
    queries = (folded.columns([(head, relation, tail)], count_itself=True)["inverse_query_facts"],)
    before = evidence.columns([(head, relation, tail)])["inverse_query_facts"]
    assert queries[0][0] == before[0] + 2
    assert 0.0 <= folded.predict([("someone new", relation, tail)])[0] <= 1.0
    low, high = folded.interval([("someone new", relation, tail)])
    assert low[0] <= high[0]


def test_facts_far_away_change_nothing_else(evidence: Evidence, dataset: Dataset) -> None:
    """Relations keep their category, and a fact of new entities is no evidence about others but in its relation."""
    many = [(f"new {i}", dataset.relations[len(dataset.relations) - 1], f"new {i + 1}", 0.5) for i in range(900)]
    folded = fold_in(evidence, many)
    rows = dataset.val[:50]
    before, after = evidence.columns(rows), folded.columns(rows)
    for name in ("relation", "twins", "query_facts", "head_facts", "tail_confidence", "rule_best"):
        np.testing.assert_array_equal(before[name], after[name], err_msg=name)
    assert np.isfinite(folded.features.backbones[0].parameters.entity).all()


def test_folded_evidence_is_the_same_when_loaded_again(evidence: Evidence, dataset: Dataset, tmp_path: Path) -> None:
    """With so many facts more, the last relation would be the first category if categories were made anew."""
    last = dataset.relations[len(dataset.relations) - 1]
    folded = fold_in(evidence, [(f"new {i}", last, f"new {i + 1}", 0.5) for i in range(3000)])
    folded.save(tmp_path)
    again = Evidence.load(tmp_path)
    np.testing.assert_array_equal(again.features.category, evidence.features.category)
    asked = [*(fact[:3] for fact in dataset.val[:50]), ("new 7", last, "new 9")]
    np.testing.assert_array_equal(again.predict(asked), folded.predict(asked))
    assert asked_of(again).rank("new 3", last, k=3) == asked_of(folded).rank("new 3", last, k=3)


def test_nothing_new_is_nothing_done(evidence: Evidence, dataset: Dataset) -> None:
    assert fold_in(evidence, dataset.train[:0]) is evidence
    same = fold_in(evidence, dataset.train[:5])
    np.testing.assert_allclose(same.predict(dataset.val), evidence.predict(dataset.val))


@pytest.mark.parametrize(
    ("scorer", "link"), [("distmult", "rectifier"), ("complex", "logistic"), ("transe", "logistic")]
)
def test_a_new_relation_and_a_new_entity_learn_together(scorer: str, link: str) -> None:
    """Of a world whose last relation and last entity nobody has seen, the vectors of all others stay."""
    whole, facts = _world(scorer, link)
    weights = whole.parameters
    old = replace(whole, parameters=Parameters(weights.entity, weights.relation[:2], weights.link))
    found = _widened(old, facts, 1e-4).parameters
    np.testing.assert_array_equal(found.entity[:39], weights.entity)
    np.testing.assert_array_equal(found.relation[:2], weights.relation[:2])
    ids = facts.head, facts.relation, facts.tail
    fitted = replace(whole, parameters=found).model.confidence(*ids)
    blind = with_room(old, Sizes(39, 2), Sizes(40, 3)).model.confidence(*ids)
    assert np.mean((fitted - facts.confidence) ** 2) < 0.2 * np.mean((blind - facts.confidence) ** 2)


def test_rules_keep_their_meaning_among_more_relations() -> None:
    """Of five relations become seven: r stays r, and the inverse step 5 + p becomes 7 + p."""
    keys = np.array([(0 * 10 + 1) * 10 + 7, (3 * 10 + 9) * 10 + 4], dtype=np.int64)
    rules = PathRules(keys, np.ones(2), np.ones(2), Prior(0.5, 1.0), 0.7)
    assert rules.among(5, 7).key.tolist() == [(0 * 14 + 1) * 14 + 9, (3 * 14 + 11) * 14 + 4]


def test_a_new_relation_is_known_and_judged(evidence: Evidence, dataset: Dataset) -> None:
    one, two = dataset.entities[0], dataset.entities[1]
    rows = dataset.val[:40]
    folded = fold_in(evidence, [(one, "never seen", two, 0.5), ("nobody", "never seen", two, 0.8)])
    assert "never seen" in folded.relations
    assert folded.columns([(one, "never seen", two)], count_itself=True)["twin_confidence"] == pytest.approx([0.5])
    assert 0.0 <= folded.predict([("nobody", "never seen", one)])[0] <= 1.0
    for name in ("relation", "rule_best", "rules", "implied_confidence"):
        np.testing.assert_array_equal(evidence.columns(rows)[name], folded.columns(rows)[name], err_msg=name)
    assert asked_of(folded).rank("nobody", "never seen", k=2)
