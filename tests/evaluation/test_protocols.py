"""What each protocol counts, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.evaluation.table_predictor import TablePredictor

from ukge.errors import ConfigError, DataError
from ukge.evaluation.baselines import baseline_predictors
from ukge.evaluation.evaluate import Evaluation, evaluate, prepare
from ukge.evaluation.metric import Bootstrap
from ukge.evaluation.protocols import Settings, protocols
from ukge.evaluation.tasks import ClassificationTask, ConfidenceTask, LinkTask, Predictor, RankingTask
from ukge.graph.audit import audit
from ukge.graph.catalogue import open_dataset
from ukge.graph.dataset import Dataset
from ukge.graph.keys import contains
from ukge.graph.uncertain import concat

QUICK = Bootstrap(20)


def judged(dataset: Dataset, predictor: Predictor, protocol: str, tau: float = 0.6) -> Evaluation:
    return evaluate(prepare(dataset, protocol, Settings(tau=tau)), {"mine": predictor}, bootstrap=QUICK)


def test_paper_counts_facts_and_negative_links_together(dataset: Dataset, predictor: TablePredictor) -> None:
    found = judged(dataset, predictor, "paper")
    asked = dataset.test_with_negatives()
    gap = predictor.confidence(asked.head, asked.relation, asked.tail) - asked.confidence
    row = found.row("mine")
    assert row.figure("confidence", "mse").value == pytest.approx(float(np.mean(gap**2)))
    assert row.figure("confidence", "mae").value == pytest.approx(float(np.mean(np.abs(gap))))
    assert [table.name for table in found.tables] == ["confidence", "ranking", "classification"]
    assert any("no ranking queries" in note for note in found.notes)


def test_split_tells_facts_from_negative_links(dataset: Dataset, predictor: TablePredictor) -> None:
    row = judged(dataset, predictor, "split").row("mine")
    assert dataset.negatives is not None
    for part, facts in (("positives", dataset.test), ("negatives", dataset.negatives)):
        gap = predictor.confidence(facts.head, facts.relation, facts.tail) - facts.confidence
        assert row.figure("confidence_apart", f"mse_{part}").value == pytest.approx(float(np.mean(gap**2)))
    plan = prepare(dataset, "split")
    links = next(task for task in plan.tasks if isinstance(task, LinkTask))
    assert list(links.ranked) == ["tail"]
    n = len(dataset.entities)
    trained = set(dataset.train.keys().tolist())
    keys = np.repeat(links.ranked["tail"].queries.given, np.diff(links.known["tail"].offsets))
    relations = np.repeat(links.ranked["tail"].queries.relation, np.diff(links.known["tail"].offsets))
    triples = (relations.astype(np.int64) * n + keys) * n + links.known["tail"].entity
    assert len(triples)
    assert set(triples.tolist()) <= trained


def test_positives_counts_no_negative_link(dataset: Dataset, predictor: TablePredictor) -> None:
    found = judged(dataset, predictor, "positives")
    gap = predictor.confidence(dataset.test.head, dataset.test.relation, dataset.test.tail) - dataset.test.confidence
    assert found.row("mine").figure("confidence", "mse").value == pytest.approx(float(np.mean(gap**2)))
    names = {table.name for table in found.tables}
    assert {f"links_{kind}_{side}" for kind in ("raw", "filtered") for side in ("both", "tail", "head")} < names
    row = found.row("mine")
    tail, head, both = (row.figure(f"links_filtered_{side}", "mrr").value for side in ("tail", "head", "both"))
    assert both == pytest.approx((tail + head) / 2)
    assert row.figure("links_filtered_both", "mr").value <= row.figure("links_raw_both", "mr").value


def test_focus_asks_for_the_surest_and_the_least_sure_tenth(dataset: Dataset, predictor: TablePredictor) -> None:
    tasks = prepare(dataset, "focus").tasks
    surest, least = (task.facts.confidence for task in tasks if isinstance(task, LinkTask))
    ordered = np.sort(dataset.test.confidence)
    assert np.array_equal(np.sort(surest), ordered[-len(surest) :])
    assert np.array_equal(np.sort(least), ordered[: len(least)])
    assert len(surest) == len(least) == len(ordered) // 10
    row = judged(dataset, predictor, "focus").row("mine")
    whole = judged(dataset, predictor, "positives").row("mine").figure("links_filtered_both", "mrr").value
    both = [row.figure(f"links_{which}_filtered_both", "mrr").value for which in ("surest", "least_sure")]
    assert both[0] > whole > both[1]  # of a predictor that knows the confidences


def test_clean_refuses_a_split_that_leaks(dataset: Dataset) -> None:
    with pytest.raises(DataError, match="needs a leak-safe split") as caught:
        prepare(dataset, "clean")
    assert "--leak-safe" in str(caught.value)


def test_clean_draws_true_negatives_of_every_kind(safe_dataset: Dataset) -> None:
    plan = prepare(safe_dataset, "clean", Settings(tau=0.6))
    known = np.sort(safe_dataset.whole().keys())
    task = next(task for task in plan.tasks if isinstance(task, ConfidenceTask))
    negatives = task.facts[len(safe_dataset.test) :]
    assert not contains(known, negatives.keys()).any()
    assert len(np.unique(negatives.keys())) == len(negatives)
    assert abs(len(negatives) - len(safe_dataset.test)) <= 4
    assert [table.name for task in plan.tasks for table in task.tables] == [
        "confidence",
        "confidence_apart",
        "ranking",
        "ranking_held_out",
        "classification",
    ]


def test_an_oracle_is_perfect(safe_dataset: Dataset) -> None:
    whole = safe_dataset.whole()
    n, r = len(safe_dataset.entities), len(safe_dataset.relations)
    table = np.zeros((r, n, n), dtype=np.float32)
    table[whole.relation, whole.head, whole.tail] = whole.confidence
    row = judged(safe_dataset, TablePredictor(table), "clean").row("mine")
    assert row.figure("confidence", "mse").value == pytest.approx(0.0, abs=1e-12)
    assert row.figure("confidence", "ece").value == pytest.approx(0.0, abs=1e-6)
    # Answers of equal confidence share a rank, which costs a little.
    assert row.figure("ranking", "linear").value == pytest.approx(1.0, abs=2e-3)
    assert row.figure("ranking_held_out", "exponential").value == pytest.approx(1.0, abs=2e-3)
    # Some links that the classifier learns as false are held-out facts, which training cannot know.
    assert row.figure("classification", "f1").value > 0.95


def test_the_twin_look_up_is_worth_nothing_on_a_clean_split(dataset: Dataset, safe_dataset: Dataset) -> None:
    name = "twin, else relation mean"
    clean = evaluate(prepare(safe_dataset, "clean", Settings(tau=0.6)), {}, bootstrap=Bootstrap(0))
    for metric in ("mse_positives", "mae_positives"):  # a negative link may be the inverse of a training fact
        twin, mean = (clean.row(each).figure("confidence_apart", metric).value for each in (name, "relation mean"))
        assert twin == mean
    leaky = evaluate(prepare(dataset, "positives"), {}, bootstrap=Bootstrap(0))
    assert (
        leaky.row(name).figure("confidence", "mse").value < leaky.row("relation mean").figure("confidence", "mse").value
    )


@pytest.mark.parametrize("protocol", ["paper", "positives"])
def test_the_baselines_are_those_of_the_audit(protocol: str, dataset: Dataset) -> None:
    found = evaluate(prepare(dataset, protocol), {}, bootstrap=Bootstrap(0))
    expected = {each.name: each for each in audit(dataset).baselines if each.fitted_on == "train"}
    unasked = {"constant, with negatives"} if protocol == "positives" else set()
    assert {row.name for row in found.rows} == set(expected) - unasked
    for row in found.rows:
        errors = expected[row.name].positives if protocol == "positives" else expected[row.name].with_negatives
        assert errors is not None
        assert row.figure("confidence", "mse").value == pytest.approx(errors.mse)
        assert row.figure("confidence", "mae").value == pytest.approx(errors.mae)


@pytest.mark.parametrize("name", ["twin, else relation mean", "twin, else 0", "relation median"])
def test_baselines_score_entities_as_they_predict_facts(name: str, dataset: Dataset) -> None:
    predictor = baseline_predictors(dataset.train)[name]
    everyone = np.arange(len(dataset.entities))
    for fact in (0, 7, 23):
        head, relation, tail = (
            column[[fact]] for column in (dataset.test.head, dataset.test.relation, dataset.test.tail)
        )
        n = len(everyone)
        np.testing.assert_allclose(
            predictor.tail_scores(head, relation)[0],
            predictor.confidence(np.repeat(head, n), np.repeat(relation, n), everyone),
            rtol=1e-6,
        )
        np.testing.assert_allclose(
            predictor.head_scores(relation, tail)[0],
            predictor.confidence(everyone, np.repeat(relation, n), np.repeat(tail, n)),
            rtol=1e-6,
        )


def test_the_classifier_never_sees_a_held_out_fact(dataset: Dataset) -> None:
    scrambled = replace(dataset, test=dataset.test.with_confidence(dataset.test.confidence[::-1].copy()))
    fitted = [
        next(
            task.fit_on
            for task in prepare(each, "paper", Settings(tau=0.6)).tasks
            if isinstance(task, ClassificationTask)
        )
        for each in (dataset, scrambled)
    ]
    assert fitted[0] == fitted[1]
    facts = fitted[0][fitted[0].confidence > 0]
    assert contains(np.sort(dataset.train.keys()), facts.keys()).all()


def test_given_negatives_and_queries_are_taken(dataset: Dataset) -> None:
    asked = np.stack([dataset.test.head[:5], dataset.test.relation[:5]], axis=1)
    plan = prepare(replace(dataset, queries=asked), "paper")
    ranking = next(task for task in plan.tasks if isinstance(task, RankingTask))
    np.testing.assert_array_equal(ranking.queries.given, asked[:, 0])
    confidence = next(task for task in plan.tasks if isinstance(task, ConfidenceTask))
    assert dataset.negatives is not None
    assert confidence.facts == concat([dataset.test, dataset.negatives])
    without = prepare(replace(dataset, negatives=None), "paper")
    assert any("has no negative links" in note for note in without.notes)


def test_negative_links_that_are_facts_are_told(dataset: Dataset) -> None:
    false = dataset.train[:3].with_confidence(np.zeros(3))
    notes = prepare(replace(dataset, negatives=false), "paper").notes
    assert any("3 of 3 negative links are facts of the graph" in note for note in notes)


def test_at_most_so_many_queries_are_asked(dataset: Dataset) -> None:
    plan = prepare(dataset, "paper", Settings(most_queries=7))
    ranking = next(task for task in plan.tasks if isinstance(task, RankingTask))
    assert len(ranking.queries) == 7


def test_classification_without_strong_facts_is_left_out(dataset: Dataset, predictor: TablePredictor) -> None:
    found = judged(dataset, predictor, "paper", tau=1.0)
    assert [table.name for table in found.tables] == ["confidence", "ranking"]
    assert any("no training fact is strong at τ = 1" in note for note in found.notes)


def test_mistakes_are_told(dataset: Dataset, predictor: TablePredictor) -> None:
    with pytest.raises(ConfigError, match="unknown protocol 'papers'") as caught:
        prepare(dataset, "papers")
    for name in protocols:
        assert name in str(caught.value)
    with pytest.raises(DataError, match="no test facts"):
        prepare(replace(dataset, test=dataset.test[:0], negatives=None), "paper")
    with pytest.raises(DataError, match="name of a trivial baseline"):
        evaluate(prepare(dataset, "positives"), {"relation mean": predictor}, bootstrap=QUICK)
    small = TablePredictor(predictor.table[:, :5, :5])
    with pytest.raises(DataError, match="knows 5 entities"):
        evaluate(prepare(dataset, "positives"), {"small": small}, bootstrap=QUICK)


def test_the_same_seed_gives_the_same_tables(dataset: Dataset, predictor: TablePredictor) -> None:
    first, second = (judged(dataset, predictor, "paper").to_dict() for _ in range(2))
    assert first == second


@pytest.mark.parametrize(("name", "mse"), [("cn15k", 0.0545), ("nl27k", 0.0563), ("ppi5k", 0.0448)])
def test_constants_on_the_benchmarks(name: str, mse: float, benchmark_data: Path) -> None:
    assert benchmark_data.is_dir()
    dataset = open_dataset(name)
    constant = baseline_predictors(dataset.train)["constant, mean"]
    plan = prepare(dataset, "positives")
    task = next(task for task in plan.tasks if isinstance(task, ConfidenceTask))
    figures = {each.metric.name: each.value for each in task.measure(constant, Bootstrap(0))["confidence"]}
    assert figures["mse"] == pytest.approx(mse, abs=3e-4)
