"""`Evidence` as its users meet it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import numpy.typing as npt
import pytest
from tests.evidence.conftest import asked
from typer.testing import CliRunner

from ukge.errors import ConfigError, DataError, RunError
from ukge.evaluation.classification import classification
from ukge.evaluation.evaluate import evaluate, prepare
from ukge.evaluation.metric import Bootstrap
from ukge.evaluation.protocols import Settings
from ukge.evaluation.tasks import ClassificationTask
from ukge.evidence import Evidence, EvidenceSettings
from ukge.evidence.fitting import GATHERING, mixed_negatives
from ukge.evidence.layout import arrays_of
from ukge.evidence.ranking import TIED, model_scores, propose
from ukge.evidence.settings import Changes, Error, RegressorChanges
from ukge.graph.dataset import Dataset
from ukge.graph.queries import Queries
from ukge.graph.split import split
from ukge.graph.synthetic import generate
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.writers import write
from ukge.learning.estimator import UKGE

runner = CliRunner()


def errors(predicted: npt.NDArray[np.float64], facts: UncertainGraph) -> float:
    return float(np.mean((predicted - facts.confidence) ** 2))


def test_it_beats_the_model_it_wraps_and_a_constant(evidence: Evidence, model: UKGE, dataset: Dataset) -> None:
    test = dataset.test
    held = errors(evidence.predict(test, assume_holds=True), test)
    assert held < errors(np.full(len(test), dataset.train.confidence.mean()), test)
    assert held < errors(model.predict(test), test)


def test_confidences_lie_between_0_and_1_and_false_links_get_less(evidence: Evidence, dataset: Dataset) -> None:
    from ukge.graph.negatives import negative_links

    facts, false = dataset.test, negative_links(dataset, kind="uniform")
    sure, unsure = evidence.predict(facts), evidence.predict(false)
    for each in (sure, unsure):
        assert each.min() >= 0.0
        assert each.max() <= 1.0
    assert unsure.mean() < sure.mean() / 2


def test_facts_are_given_by_name_by_graph_or_by_id(evidence: Evidence, dataset: Dataset) -> None:
    part = dataset.test[:7]
    by_graph = evidence.predict(part)
    np.testing.assert_array_equal(by_graph, evidence.predict([fact[:3] for fact in part]))
    np.testing.assert_array_equal(by_graph, evidence.predict_ids(part.head, part.relation, part.tail))
    other = UncertainGraph.from_facts([tuple(fact[:4]) for fact in part])
    np.testing.assert_array_equal(by_graph, evidence.predict(other))


def test_an_unknown_name_is_told(evidence: Evidence, dataset: Dataset) -> None:
    fact = dataset.test[0]
    with pytest.raises(DataError, match="nobody-of-that-name"):
        evidence.predict([("nobody-of-that-name", fact.relation, fact.tail)])


def test_no_fact_is_evidence_for_itself_unless_asked(evidence: Evidence, dataset: Dataset) -> None:
    known = dataset.train[:50]
    own = evidence.features.index.find(known.head, known.relation, known.tail)
    np.testing.assert_array_equal(evidence.features.index.triples.keys[own], known.keys())
    assert (evidence.predict(known) != evidence.predict(known, count_itself=True)).any()
    columns = evidence.columns(known)
    assert columns["twins"].sum() == 0
    unseen = dataset.test[:50]
    np.testing.assert_array_equal(evidence.predict(unseen), evidence.predict(unseen, count_itself=True))


def test_nothing_of_the_test_part_is_read(
    evidence: Evidence, dataset: Dataset, model: UKGE, small: dict[str, Any]
) -> None:
    """And other trees over the same evidence are those that a new fit gives."""
    scrambled = dataset.test.with_confidence(np.random.default_rng(0).random(len(dataset.test)))
    other = replace(dataset, test=scrambled[::2], negatives=dataset.test)
    anew = Evidence.fit([model], other, **{**small, "error": "absolute", "rank_queries": 0})
    changed = evidence.refit(error="absolute", rank_queries=0)
    assert changed.settings == anew.settings
    assert changed.ranker is anew.ranker is None
    fitted, again = (arrays_of(each.regressor, "head") for each in (changed, anew))
    assert fitted.keys() == again.keys()
    for name, array in fitted.items():
        np.testing.assert_array_equal(array, again[name])
    part = dataset.val
    np.testing.assert_array_equal(changed.interval(part), anew.interval(part))
    with pytest.raises(ConfigError, match="min_hit_ratio cannot be changed"):
        evidence.refit(min_hit_ratio=0.2)  # type: ignore[call-arg]


@pytest.mark.parametrize("error", ["squared", "absolute"])
def test_contributions_add_up(error: Error, evidence: Evidence, dataset: Dataset) -> None:
    fitted = evidence.refit(error=error, iterations=5, rank_queries=0)
    part = dataset.test[:40]
    for assume_holds in (True, False):
        found = fitted.contributions(part, assume_holds=assume_holds)
        assert found.names == fitted.feature_names
        total = found.base + found.parts.sum(axis=1)
        np.testing.assert_allclose(total, fitted.predict(part, assume_holds=assume_holds), atol=1e-9)


def test_a_saved_one_says_the_same(evidence: Evidence, dataset: Dataset, tmp_path: Path) -> None:
    evidence.save(tmp_path / "run" / "evidence")
    again = Evidence.load(tmp_path / "run")
    part = dataset.test[:60]
    np.testing.assert_array_equal(again.predict(part), evidence.predict(part))
    np.testing.assert_array_equal(again.interval(part), evidence.interval(part))
    assert again.settings == evidence.settings
    fact = dataset.test[0]
    assert asked(again).rank(fact.head, fact.relation) == asked(evidence).rank(fact.head, fact.relation)


@pytest.mark.parametrize(
    "name", ["evidence.safetensors", "entities.parquet", "data/train.parquet", "weights-0.safetensors"]
)
def test_a_damaged_file_is_told(name: str, evidence: Evidence, tmp_path: Path) -> None:
    evidence.save(tmp_path)
    content = bytearray((tmp_path / name).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / name).write_bytes(bytes(content))
    with pytest.raises(RunError, match=name):
        Evidence.load(tmp_path).check()


@pytest.mark.parametrize(
    ("part", "fails"),
    [
        ("ranking.value", {"rank"}),
        ("bounds.0.error", {"interval"}),
        ("bounds.1.difficulty.0.value", {"interval_if_held"}),
        ("head.holds.value", {"predict", "interval", "interval_if_held", "rank"}),
        ("tables.by_head.total", {"predict", "interval", "interval_if_held", "rank"}),
    ],
)
def test_no_damaged_part_is_used_and_sound_ones_answer(
    part: str, fails: set[str], evidence: Evidence, dataset: Dataset, tmp_path: Path
) -> None:
    evidence.save(tmp_path)
    flip_a_bit(tmp_path / "evidence.safetensors", part)
    facts = dataset.test[:5]
    ids = facts.head, facts.relation
    questions: dict[str, Callable[[Evidence], Any]] = {
        "predict": lambda each: each.predict(facts).tolist(),
        "interval": lambda each: np.stack(each.interval(facts)).tolist(),
        "interval_if_held": lambda each: np.stack(each.interval(facts, assume_holds=True)).tolist(),
        "rank": lambda each: each.tail_scores(*(column[:1] for column in ids)).tolist(),
    }
    for name, ask in questions.items():
        damaged = Evidence.load(tmp_path)
        if name in fails:
            with pytest.raises(RunError, match=r"evidence\.safetensors is damaged"):
                ask(damaged)
        else:
            assert ask(damaged) == ask(evidence)


def flip_a_bit(file: Path, array: str) -> None:
    content = bytearray(file.read_bytes())
    size = int.from_bytes(content[:8], "little")
    start, end = json.loads(content[8 : 8 + size])[array]["data_offsets"]
    content[8 + size + (start + end) // 2] ^= 1
    file.write_bytes(bytes(content))


def test_no_evidence_is_told(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="holds no evidence"):
        Evidence.load(tmp_path)


@pytest.mark.parametrize("by", ["band", "relation", "all"])
@pytest.mark.parametrize("assume_holds", [True, False])
def test_intervals_hold_the_share_asked_for(by: str, assume_holds: bool, evidence: Evidence, dataset: Dataset) -> None:
    low, high = evidence.interval(dataset.test, 0.8, by=by, assume_holds=assume_holds)  # type: ignore[arg-type]
    assert (low >= 0).all()
    assert (high <= 1).all()
    assert (low <= high).all()
    if assume_holds:  # test facts are drawn like the validation facts that it was calibrated on
        held = (low <= dataset.test.confidence) & (dataset.test.confidence <= high)
        assert 0.70 <= held.mean() <= 0.92
    wider = evidence.interval(dataset.test, 0.95, by=by, assume_holds=assume_holds)  # type: ignore[arg-type]
    assert (wider[1] - wider[0] >= high - low - 1e-12).all()


def test_wrong_settings_are_told(evidence: Evidence, dataset: Dataset, model: UKGE) -> None:
    with pytest.raises(ConfigError, match="coverage"):
        evidence.interval(dataset.test[:2], 1.5)
    with pytest.raises(ConfigError, match="kind of interval"):
        evidence.interval(dataset.test[:2], by="head")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="cubic"):
        Evidence.fit([model], dataset, error="cubic")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="validation facts"):
        Evidence.fit([model], replace(dataset, val=dataset.val[:10]))
    stranger = split(generate(n_entities=200, n_facts=1500, seed=9).graph, name="stranger")
    with pytest.raises(DataError, match="other names"):
        Evidence.fit([model], stranger)


def test_a_candidate_ranks_by_a_confidence_no_answer_exceeds(evidence: Evidence, dataset: Dataset) -> None:
    """However sure it is that a candidate is an answer, it is expected to have the confidence of one, not 1."""
    facts = dataset.test[:20]
    queries = Queries.of("tail", facts.head, facts.relation)
    found = propose(evidence.features, queries, model_scores(evidence.features, queries), 10)
    scores = evidence.tail_scores(facts.head, facts.relation)[found.query, found.entity]
    if_held = evidence.predict_ids(*queries.facts(found.query, found.entity), assume_holds=True)
    assert (scores >= 0).all()
    assert (scores <= if_held + TIED).all()
    assert scores.max() > 0


def test_only_negative_links_that_are_drawn_blindly_may_be_facts(dataset: Dataset) -> None:
    blind = replace(dataset, test=dataset.test[:0])
    known = np.concatenate([blind.train.keys(), blind.val.keys()])
    shares = {"paper": 1.0}
    for may_hold in (False, True):
        chosen = EvidenceSettings(negatives=shares, negatives_per_fact=6.0, negatives_may_hold=may_hold)
        links, _ = mixed_negatives(blind, chosen)
        assert np.isin(links.keys(), known).any() == may_hold
        assert not links.confidence.any()
        assert (links.head != links.tail).all()


@pytest.mark.parametrize("protocol", ["paper", "positives", "split"])
def test_the_protocols_take_it_as_a_predictor(protocol: str, evidence: Evidence, dataset: Dataset) -> None:
    plan = prepare(dataset, protocol, Settings(tau=0.6, most_queries=40))
    judged = evaluate(plan, {"evidence": evidence}, bootstrap=Bootstrap(0))
    assert judged.row("evidence").figures


def test_without_models_it_still_judges(dataset: Dataset, small: dict[str, Any]) -> None:
    fitted = Evidence.fit([], dataset, **{**small, "rank_queries": 0})
    held = fitted.predict(dataset.test, assume_holds=True)
    assert errors(held, dataset.test) < float(dataset.test.confidence.var())
    assert len(asked(fitted).rank(dataset.test[0].head, dataset.test[0].relation, k=3)) == 3


def test_the_command_keeps_evidence_in_the_run(tmp_path: Path) -> None:
    from ukge.cli.evidence import evidence_app

    write(generate(n_entities=300, n_facts=3000, seed=4).graph, tmp_path / "world.tsv")
    from ukge.cli import app

    quick = ["--dim", "8", "--epochs", "1", "--every", "1", "--batch-size", "256", "--quiet"]
    trained = runner.invoke(app, ["train", str(tmp_path / "world.tsv"), "--out", str(tmp_path / "run"), *quick])
    assert trained.exit_code == 0, trained.output
    result = runner.invoke(evidence_app, ["fit", str(tmp_path / "run"), "--json", "--trees", "3"])
    assert result.exit_code == 0, result.output
    assert '"mse_if_held"' in result.stdout
    _the_evidence_is_evaluated(tmp_path / "run")


def _the_evidence_is_evaluated(run: Path) -> None:
    """The command tells what the evidence itself says of the test facts, in the reading of the protocol."""
    from ukge.cli import app
    from ukge.runs.learnt import open_run

    fitted, test = Evidence.load(run), open_run(run).dataset.test
    for protocol, held in (("paper", False), ("positives", True)):
        asked = ["evaluate", str(run), "--evidence", "--protocol", protocol, "--json", "--replicates", "0"]
        result = runner.invoke(app, asked)
        assert result.exit_code == 0, result.output
        rows = {row["name"]: row["figures"] for row in json.loads(result.stdout)["rows"]}
        told = rows["run/evidence"]["confidence"]["mse"]["value"]
        if held:
            expected = float(np.mean((fitted.predict(test, assume_holds=True) - test.confidence) ** 2))
            assert told == pytest.approx(expected, rel=1e-6)
        else:
            assert told < max(
                row["confidence"]["mse"]["value"] for row in rows.values() if row is not rows["run/evidence"]
            )
    (run / "evidence" / "evidence.safetensors").unlink()
    refused = runner.invoke(app, ["evaluate", str(run), "--evidence"])
    assert isinstance(refused.exception, RunError)


def test_answers_of_the_same_confidence_are_in_the_order_of_the_model(dataset: Dataset, small: dict[str, Any]) -> None:
    sure = dataset.train.with_confidence(np.ones(len(dataset.train)))
    certain = replace(dataset, train=sure)
    model = UKGE("ukge-rect", dim=8, epochs=2, batch_size=256, seed=0, engine="torch").fit(certain)
    evidence = Evidence.fit([model], certain, **{**small, "expectation_trees": 0, "iterations": 3})
    head, relation = sure.head[:40], sure.relation[:40]
    scores = evidence.tail_scores(head, relation)
    beliefs = model_scores(evidence.features, Queries.of("tail", head, relation))[0]
    for query in range(len(head)):
        known = np.unique(sure.tail[(sure.head == head[query]) & (sure.relation == relation[query])])
        assert (scores[query, known] >= 1.0).all()
        assert len(np.unique(scores[query, known])) == len(known)
        np.testing.assert_array_equal(np.argsort(scores[query, known]), np.argsort(beliefs[query, known]))


def test_strong_facts_are_told_from_weak_ones_and_from_false_links(evidence: Evidence, dataset: Dataset) -> None:
    tau = float(np.median(dataset.val.confidence))
    head = evidence.strong(tau)
    chance = head.chance(dataset.test)
    strong = dataset.test.confidence > tau
    right = np.mean((chance > 0.5) == strong)
    assert right > max(np.mean(strong), 1 - np.mean(strong)) + 0.05
    assert chance[strong].mean() > chance[~strong].mean() + 0.1
    part = dataset.train[:50]
    assert (head.chance(part) != head.chance(part, count_itself=True)).any()
    with pytest.raises(ConfigError, match="τ is 1"):
        evidence.strong(1.0)
    weak = dataset.val[np.flatnonzero(dataset.val.confidence <= tau)]
    with pytest.raises(DataError, match="no validation fact has a confidence above"):
        evidence.strong(tau, replace(dataset, val=weak))


def test_the_keywords_are_the_settings() -> None:
    assert get_type_hints(Changes) == get_type_hints(EvidenceSettings)
    assert set(get_type_hints(RegressorChanges)) == set(get_type_hints(EvidenceSettings)) - GATHERING
    with pytest.raises(ConfigError, match=r"unknown setting 'leafs' of evidence\nWhat to do: Did you mean 'leaves'\?"):
        EvidenceSettings().replace(leafs=3)  # type: ignore[call-arg]


def test_evidence_answers_in_the_shape_of_the_question(evidence: Evidence, dataset: Dataset) -> None:
    some = dataset.test[:5]
    expected = evidence.predict(some)
    assert evidence.predict(some[0]) == expected[0]
    frame = some.facts("pandas")
    answered = evidence.predict(frame)
    np.testing.assert_array_equal(answered["confidence"], expected)
    np.testing.assert_array_equal(answered["given"], some.confidence)


def test_evidence_says_what_it_is(evidence: Evidence, dataset: Dataset) -> None:
    known = f"about {len(dataset.train):,} known facts"
    mse = evidence.unseen_errors()["mse"]
    expected = f"Evidence(ukge-rect and {len(evidence.feature_names)} columns {known}; mse on unseen facts {mse:.5f})"
    assert repr(evidence) == expected
    assert f"{mse:.3f}" in evidence._repr_html_()


def test_protocols_let_evidence_tell_strong_facts_itself(evidence: Evidence, dataset: Dataset) -> None:
    """A classifier fitted to training facts, which evidence knows, found none: F1 was 0 on CN15k, and is .59."""
    tau = float(np.median(dataset.val.confidence))
    task = ClassificationTask(dataset.train, dataset.test, tau, "")
    ((sample,),) = task.samples(evidence).values()
    chance = evidence.strong(tau).chance(dataset.test, count_itself=True)
    told = classification(chance > 0.5, dataset.test.confidence > tau)
    assert sample.point()["f1"] == pytest.approx(told.f1)
    assert told.f1 > 0.3
    assert len(task.curve(evidence).threshold) == len(np.unique(chance))
    ids = dataset.test.head, dataset.test.relation, dataset.test.tail
    assert evidence.strong_chance(*ids, tau=float(dataset.val.confidence.max())) is None
