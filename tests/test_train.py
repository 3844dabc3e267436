"""The loop: stopping, keeping the best, resuming, refusing to diverge, and never seeing the test split."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ukge.errors import ConfigError, DataError, RunError
from ukge.graph.dataset import Dataset
from ukge.graph.keys import triple_keys
from ukge.graph.split import split
from ukge.graph.synthetic import generate
from ukge.graph.uncertain import UncertainGraph
from ukge.learning.data import from_heads, rules_for
from ukge.learning.estimator import UKGE
from ukge.learning.train import EpochEvent, train, training_data
from ukge.logic.ground_rules import GroundRules
from ukge.runs.directory import Run
from ukge.runs.learnt import still_learning
from ukge.settings.config import Config
from ukge.settings.variants import variant

QUICK: dict[str, Any] = {
    "dim": 8,
    "epochs": 12,
    "every": 2,
    "batch_size": 256,
    "lr": 0.02,
    "threads": 1,
    "checkpoint_seconds": 0.0,
}


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return split(generate(n_entities=300, n_facts=3000, seed=1).graph, seed=0, name="world")


@pytest.fixture(scope="module")
def trained(dataset: Dataset, tmp_path_factory: pytest.TempPathFactory) -> tuple[UKGE, Path]:
    path = tmp_path_factory.mktemp("runs") / "whole"
    return UKGE("ukge-rect", **QUICK).fit(dataset, out=path), path


def test_training_learns(dataset: Dataset, trained: tuple[UKGE, Path]) -> None:
    model, _ = trained
    predicted = model.predict(dataset.val)
    constant = float(dataset.train.confidence.mean())
    assert np.mean((predicted - dataset.val.confidence) ** 2) < np.mean((constant - dataset.val.confidence) ** 2) * 1.5
    events = model.trained.events if model.trained else []
    assert events[-1].loss < 0.6 * events[0].loss


def test_scrambling_the_test_split_changes_nothing(
    dataset: Dataset, trained: tuple[UKGE, Path], tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    scrambled = dataset.test[rng.permutation(len(dataset.test))].with_confidence(rng.random(len(dataset.test)))
    other = UKGE("ukge-rect", **QUICK).fit(dataclasses.replace(dataset, test=scrambled), out=tmp_path / "run")
    _, path = trained
    assert (tmp_path / "run" / "weights.safetensors").read_bytes() == (path / "weights.safetensors").read_bytes()
    first = [(line["epoch"], line["loss"], line["value"]) for line in Run(path).trace()]
    assert first == [(line["epoch"], line["loss"], line["value"]) for line in Run(tmp_path / "run").trace()]
    assert other.trained is not None
    assert other.trained.best_epoch == Run(path).manifest()["result"]["best_epoch"]


def test_the_best_epoch_is_kept_and_patience_stops(dataset: Dataset) -> None:
    # A learning rate this large overfits within a few epochs.
    config = Config().replace(**{**QUICK, "lr": 0.3, "epochs": 60, "every": 1, "patience": 3, "negatives": 2})
    seen: list[EpochEvent] = []
    result = train(dataset.train, dataset.val, config, callbacks=[seen.append])
    values = [event.value for event in seen if event.value is not None]
    assert result.best == min(values)
    assert values.index(min(values)) + 1 == result.best_epoch
    assert result.epochs == result.best_epoch + 3 < 60
    again = train(dataset.train, dataset.val, config.replace(epochs=result.best_epoch))
    np.testing.assert_array_equal(again.parameters.entity, result.parameters.entity)


@pytest.mark.parametrize(
    ("values", "remark"),
    [
        ([None, 0.05, None, 0.04], "validation mse was still falling when training ended after 4 epochs"),
        ([0.3, 0.4], "validation mse was still rising when training ended after 2 epochs"),  # a metric to be raised
        ([0.05, 0.0496], ""),  # better by less than a hundredth
        ([0.05, 0.03, 0.04, 0.035], ""),  # it had been better: patience may have stopped it
        ([0.05, None], ""),  # nothing to compare with
    ],
)
def test_a_training_that_ended_while_it_was_learning_says_so(values: list[float | None], remark: str) -> None:
    measured = [value for value in values if value is not None]
    goal = max(measured) if measured[-1] == max(measured) else min(measured)
    best, trace = None, []
    for epoch, value in enumerate(values, 1):
        if value is not None and (best is None or abs(value - goal) < abs(best[0] - goal)):
            best = value, epoch
        known = (None, -1) if best is None else best
        trace.append({"epoch": epoch, "metric": "mse", "value": value, "best": known[0], "best_epoch": known[1]})
    assert still_learning(trace) == remark


def test_without_validation_facts_all_epochs_are_run_and_the_last_one_is_kept(dataset: Dataset, tmp_path: Path) -> None:
    config = Config().replace(**{**QUICK, "epochs": 5, "every": 1, "patience": 1})
    whole = dataclasses.replace(dataset, val=dataset.val[:0])
    model = UKGE(config=config).fit(whole, out=tmp_path / "run")
    assert model.trained is not None
    assert (model.trained.best, model.trained.epochs) == (None, 5)
    as_many = train(dataset.train, dataset.val, config.replace(patience=5, every=5))  # looks at the last epoch alone
    np.testing.assert_array_equal(model.trained.parameters.entity, as_many.parameters.entity)
    assert UKGE.load(tmp_path / "run").history["value"].isna().all()


class _KilledError(Exception):
    pass


@pytest.mark.parametrize("moment", [1, 3, 6, 11])
def test_an_interrupted_run_ends_like_a_whole_one(
    dataset: Dataset, trained: tuple[UKGE, Path], tmp_path: Path, moment: int
) -> None:
    def kill(event: EpochEvent) -> None:
        if event.epoch == moment:
            raise _KilledError

    with pytest.raises(_KilledError):
        UKGE("ukge-rect", **QUICK).fit(dataset, out=tmp_path / "cut", callbacks=[kill])
    UKGE.resume(tmp_path / "cut")
    _, path = trained
    assert (tmp_path / "cut" / "weights.safetensors").read_bytes() == (path / "weights.safetensors").read_bytes()
    assert [line["epoch"] for line in Run(tmp_path / "cut").trace()] == list(range(1, 13))


def test_resuming_a_finished_run_changes_nothing(dataset: Dataset, trained: tuple[UKGE, Path]) -> None:
    model, path = trained
    before = (path / "weights.safetensors").read_bytes()
    again = UKGE.resume(path)
    assert (path / "weights.safetensors").read_bytes() == before
    np.testing.assert_array_equal(again.predict(dataset.val), model.predict(dataset.val))


def test_divergence_stops_with_the_last_good_checkpoint(dataset: Dataset, tmp_path: Path) -> None:
    settings = {**QUICK, "lr": 1e30, "optimiser": "adagrad"}
    with pytest.raises(RunError, match="training diverged in epoch") as caught:
        UKGE("ukge-rect", **settings).fit(dataset, out=tmp_path / "run")
    assert "Lower lr" in str(caught.value)
    assert Run(tmp_path / "run").manifest()["status"] == "diverged"
    with pytest.raises(RunError, match="not finished"):
        UKGE.load(tmp_path / "run")


@pytest.mark.parametrize(
    "model", ["ukge-rect", "ukge-logi", "ukge-n", "ukge-p", "transe", "distmult", "complex", "urge"]
)
def test_every_model_of_the_paper_trains_ranks_and_predicts(dataset: Dataset, model: str) -> None:
    # The contract of the engines compiles steps of one scorer with inner products: others would be minutes.
    engine = "fused" if variant(model).model.scorer == "distmult" else "torch"
    fitted = UKGE(model, engine=engine, **{**QUICK, "epochs": 4, "tau": 0.6}).fit(dataset)
    predicted = fitted.predict(dataset.test)
    assert np.isfinite(predicted).all()
    assert predicted.min() >= 0.0
    assert predicted.max() <= 1.0
    fact = dataset.test[0]
    answers = fitted.rank(fact.head, fact.relation, k=5)
    assert len(answers) == 5
    assert [a.confidence for a in answers] == sorted((a.confidence for a in answers), reverse=True)
    heads = fitted.rank(relation=fact.relation, tail=fact.tail, k=3)
    assert fitted.predict([(heads[0].entity, fact.relation, fact.tail)])[0] == pytest.approx(
        heads[0].confidence, abs=1e-5
    )


def test_ground_rules_pull_their_heads_up(dataset: Dataset) -> None:
    rng = np.random.default_rng(0)
    head, tail = (rng.integers(len(dataset.entities), size=60).astype(np.int32) for _ in range(2))
    ones = np.ones(60, np.float32)
    rules = GroundRules(head, np.zeros(60, np.int32), tail, ones, ones)
    strong = {**QUICK, "epochs": 20, "rules_per_fact": 0.5, "patience": 99}
    with_rules = UKGE("ukge-rect", rule_weight=5.0, **strong).fit(dataset, rules=rules)
    without = UKGE("ukge-p", **strong).fit(dataset, rules=rules)
    told, untold = (m.predictor.confidence(head, rules.relation, tail) for m in (with_rules, without))
    assert told.mean() > untold.mean() + 0.3


def test_urge_ignores_relations(dataset: Dataset) -> None:
    fitted = UKGE("urge", engine="torch", **{**QUICK, "epochs": 2}).fit(dataset)
    fact = dataset.test[0]
    values = {fitted.predict([(fact.head, relation, fact.tail)])[0] for relation in dataset.relations}
    assert len(values) == 1


def test_deterministic_models_learn_from_strong_facts_only(dataset: Dataset) -> None:
    data = training_data(dataset.train, Config().replace(strong_only=True, tau=0.7))
    assert len(data) == int((dataset.train.confidence > 0.7).sum()) < len(dataset.train)
    assert (data.confidence == 1.0).all()
    with pytest.raises(DataError, match="no training fact is strong"):
        training_data(dataset.train, Config().replace(strong_only=True, tau=1.0))


@pytest.mark.parametrize("settings", [{"engine": "fused", "sampler": "shared"}, {"loss": "softmax", "sampler": "none"}])
def test_settings_that_cannot_be_trained_leave_no_directory(
    dataset: Dataset, tmp_path: Path, settings: dict[str, Any]
) -> None:
    with pytest.raises(ConfigError):
        UKGE("ukge-rect", **settings).fit(dataset, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_settings_that_fail_later_lose_nothing(dataset: Dataset, tmp_path: Path) -> None:
    def refuse(*_: object) -> None:
        raise ConfigError("enough")

    with pytest.raises(ConfigError, match="enough"):
        UKGE("ukge-rect", dim=4, epochs=2, every=1).fit(dataset, out=tmp_path / "run", callbacks=[refuse])
    assert (tmp_path / "run" / "trace.jsonl").read_text(encoding="utf-8")


def test_save_and_load(dataset: Dataset, trained: tuple[UKGE, Path], tmp_path: Path) -> None:
    model, path = trained
    model.save(tmp_path / "saved")
    for place in (path, tmp_path / "saved"):
        np.testing.assert_array_equal(UKGE.load(place).predict(dataset.test), model.predict(dataset.test))
    with pytest.raises(RunError, match="exists and is not empty"):
        model.save(tmp_path / "saved")


@pytest.mark.parametrize("name", ["config.toml", "entities.parquet", "weights.safetensors", "manifest.json"])
def test_an_edited_file_of_a_run_is_named(
    dataset: Dataset, trained: tuple[UKGE, Path], tmp_path: Path, name: str
) -> None:
    trained[0].save(tmp_path / "run")
    file = tmp_path / "run" / name
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(bytes(content))
    with pytest.raises(RunError, match=rf"{name} is damaged"):
        UKGE.load(tmp_path / "run")


def test_unknown_names_are_suggested(trained: tuple[UKGE, Path], dataset: Dataset) -> None:
    name = dataset.entities[0]
    with pytest.raises(DataError, match="unknown entity"):
        trained[0].predict([(name + "x", dataset.relations[0], name)])
    with pytest.raises(DataError, match="either a head or a tail"):
        trained[0].rank(name)


def test_rule_heads_become_ground_rules(dataset: Dataset) -> None:
    rules = from_heads(dataset.val[:5], weight=0.5)
    assert rules.weight.tolist() == [0.5] * 5
    np.testing.assert_allclose(rules.body, dataset.val.confidence[:5], rtol=1e-6)


def test_rules_from_a_file_are_grounded_on_strong_training_facts(tmp_path: Path) -> None:
    train = UncertainGraph.from_facts(
        [("college", "synonym", "university", 0.99), ("university", "synonym", "institute", 0.86), ("a", "s", "b", 0.5)]
    )
    file = tmp_path / "transitive.psl"
    file.write_text("2.0: synonym(A, B) & synonym(B, C) -> synonym(A, C) ^2\n", encoding="utf-8")
    found = rules_for(Dataset("words", train, train[:0], train[:0]), file, tau=0.85)
    assert found is not None
    assert (train.entities[found.head[0]], train.entities[found.tail[0]]) == ("college", "institute")
    assert found.body.tolist() == pytest.approx([0.85])  # the paper's example
    assert found.weight.tolist() == [2.0]


def test_mined_rules_are_learnt_from(dataset: Dataset) -> None:
    rules = rules_for(dataset, "mined", tau=0.7)
    assert rules is not None
    known = set(dataset.train.keys().tolist())
    heads = triple_keys(rules.head, rules.relation, rules.tail, len(dataset.entities), len(dataset.relations))
    assert not known & set(heads.tolist())
    assert 0 < rules.weight.min() <= rules.weight.max() <= 1
    fitted = UKGE("ukge-rect", **{**QUICK, "epochs": 2}).fit(dataset, rules="mined")
    assert fitted.trained is not None
    assert fitted.trained.events[0].losses["rules"] > 0
    assert rules_for(dataset, "none", tau=0.7) is None
    with pytest.raises(DataError, match=r"there is no file of rules nowhere\.psl"):
        rules_for(dataset, "nowhere.psl", tau=0.7)
