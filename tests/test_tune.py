"""The search: every point once, the best by validation alone, failures recorded, and going on after any end."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ukge.learning.tuning.tune
from ukge.errors import ConfigError, RunError
from ukge.graph.dataset import Dataset
from ukge.graph.split import split
from ukge.graph.synthetic import generate
from ukge.learning.estimator import UKGE
from ukge.learning.train import EpochEvent, Trained, train
from ukge.learning.tuning.search_spaces import Choices, Range, defaults_in, grid, space_for, spaces
from ukge.learning.tuning.studies import TrialSummary, open_study
from ukge.learning.tuning.tune import TuneResult, tune
from ukge.models.tables import Parameters
from ukge.runs.learnt import Collapse
from ukge.settings.config import Config, read_config
from ukge.settings.variants import variant

QUICK: dict[str, Any] = {"epochs": 6, "every": 2, "patience": 9, "threads": 1, "rule_weight": 0.0}
ONE_RATE: dict[str, Any] = {**QUICK, "dim": 8, "batch_size": 256}
"""Leaves three points of the paper's grid: its learning rates."""


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    return split(generate(n_entities=200, n_facts=1000, seed=1).graph, seed=0, name="world")


def outcome(result: TuneResult) -> list[tuple[Any, ...]]:
    """What a search found, without what differs from one machine or one interruption to the next."""
    ended = [trial for trial in result.trials if trial.state != "interrupted"]
    return [(trial.state, trial.value, trial.epoch, trial.epochs, dict(trial.settings)) for trial in ended]


def pretend(values: Callable[[Config], list[float]]) -> Callable[..., Trained]:
    """Return a training that validates to given values, one per `every` epochs."""

    def pretended(_: Any, __: Any, config: Config, **more: Any) -> Trained:
        seen = values(config)
        for place, value in enumerate(seen, start=1):
            event = EpochEvent(place * 2, 6, {}, 0.0, 1, 1.0, "mse", value, min(seen[:place]), 2)
            for callback in more["callbacks"]:
                callback(event)
        weights = Parameters(np.zeros((1, 1), np.float32), np.zeros((1, 1), np.float32))
        return Trained(weights, config, "mse", min(seen), 2, 6, 1.0)

    return pretended


def test_the_papers_grid() -> None:
    space = space_for("paper", Config(), False, {})
    points = grid(space, seed=0)
    assert points is not None
    expected = {
        (lr, dim, size) for lr in (0.001, 0.005, 0.01) for dim in (64, 128, 256, 512) for size in (128, 256, 512, 1024)
    }
    assert len(points) == len(expected) == 48
    assert {(point["lr"], point["dim"], point["batch_size"]) for point in points} == expected
    assert grid(space, seed=0) == points != grid(space, seed=1)
    fixed = grid(space_for("paper", Config(), False, {"dim": 64}), seed=0)
    assert fixed is not None
    assert len(fixed) == 12


@pytest.mark.parametrize("model", ["ukge-rect", "ukge-n", "transe", "complex", "urge"])
def test_the_wide_space_fits_every_model(model: str) -> None:
    config = variant(model)
    space = space_for("wide", config, True, {})
    assert grid(space, seed=0) is None
    assert ("negatives" in space) == (model != "ukge-n")
    assert ("margin" in space) == (model == "transe")
    for name, values in space.items():
        ends = values.values if isinstance(values, Choices) else (values.low, values.high)
        for end in ends:
            config.replace(**{name: int(end) if isinstance(values, Range) and values.whole else end})
    assert defaults_in(space, config)["lr"] == config.optimiser.lr
    assert "rule_weight" not in space_for("wide", config, False, {})


@pytest.mark.parametrize(
    ("model", "searched"),
    [
        ("ukge-rect", {"lr", "l2", "by_degree", "negative_weight"}),
        ("ukge-n", {"lr", "l2"}),
        ("transe", {"lr", "l2", "by_degree"}),
    ],
)
def test_the_near_space_holds_what_the_model_can_use(model: str, searched: set[str]) -> None:
    assert set(space_for("near", variant(model), True, {})) == searched
    assert "by_degree" not in space_for("near", variant(model).replace(in_range=True), True, {})


def test_a_range_holds_its_bounds() -> None:
    assert 1 in Range(1, 50)
    assert 50.0 in Range(1, 50)
    assert 0.5 not in Range(1, 50)
    assert "x" not in Range(1, 50)


def test_the_best_trial_is_the_one_that_separate_trainings_find(dataset: Dataset, tmp_path: Path) -> None:
    result = tune(dataset, UKGE(**ONE_RATE), directory=tmp_path / "study", pruner="none")
    config = variant("ukge-rect").replace(**ONE_RATE)
    expected = {lr: train(dataset.train, dataset.val, config.replace(lr=lr)).best for lr in (0.001, 0.005, 0.01)}
    assert {trial.settings["lr"]: trial.value for trial in result.trials} == expected
    assert result.best is not None
    assert result.config is not None
    assert result.best.value == min(value for value in expected.values() if value is not None)
    assert expected[result.config.optimiser.lr] == result.best.value
    written = read_config(tmp_path / "study" / "best.toml")
    assert written == result.config
    again = UKGE("ukge-rect", config=written).fit(dataset).trained
    assert again is not None
    assert (again.best, again.best_epoch) == (result.best.value, result.best.epoch)


def test_a_finished_search_only_reports(dataset: Dataset, tmp_path: Path) -> None:
    first = tune(dataset, UKGE(**ONE_RATE), directory=tmp_path, trials=1)
    begun: list[TrialSummary] = []
    second = tune(dataset, UKGE(**ONE_RATE), directory=tmp_path, trials=1, on_trial=begun.append)
    assert second == first
    assert begun == []
    assert len(tune(dataset, UKGE(**ONE_RATE), directory=tmp_path, trials=2).trials) == 2


def test_a_higher_metric_is_better(dataset: Dataset, tmp_path: Path) -> None:
    result = tune(dataset, UKGE(metric="mrr", **ONE_RATE), directory=tmp_path, pruner="none")
    assert result.higher_is_better
    assert result.best is not None
    assert result.best.value == max(trial.value or 0.0 for trial in result.trials)
    assert len({trial.value for trial in result.trials}) > 1


@pytest.mark.parametrize(("space", "trials"), [("paper", 3), ("wide", 5)])
def test_an_interrupted_search_goes_on_as_if_it_had_not_been(
    dataset: Dataset, tmp_path: Path, space: str, trials: int
) -> None:
    settings = {**ONE_RATE, "negatives": 2} if space == "wide" else ONE_RATE
    whole = tune(dataset, UKGE(**settings), directory=tmp_path / "whole", space=space, trials=trials)
    starts = 0

    def interrupt(event: EpochEvent) -> None:
        nonlocal starts
        starts += event.epoch == 1
        if starts == 2 and event.epoch == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(dataset, UKGE(**settings), directory=tmp_path / "cut", space=space, trials=trials, on_epoch=interrupt)
    journal = tmp_path / "cut" / "journal.log"
    journal.write_bytes(journal.read_bytes() + b'{"op_code":7,"worker_id":"')  # and a write cut short
    gone_on = tune(dataset, UKGE(**settings), directory=tmp_path / "cut", space=space, trials=trials)
    assert outcome(gone_on) == outcome(whole)
    assert [trial.state for trial in gone_on.trials].count("interrupted") == 1
    assert gone_on.config == whole.config


def test_the_wide_space_begins_with_the_models_own_settings(dataset: Dataset, tmp_path: Path) -> None:
    result = tune(dataset, UKGE(**ONE_RATE), directory=tmp_path, space="wide", trials=2)
    first, second = (trial.settings for trial in result.trials)
    assert first == {
        "lr": 0.001,
        "l2": 0.005,
        "init_scale": 0.3,
        "negatives": 10,
        "by_degree": 0.0,
        "negative_weight": 1.0,
    }
    assert first.keys() == second.keys()
    assert first != second


def test_a_trial_that_diverges_or_does_not_fit_is_recorded_and_the_search_goes_on(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def diverge(*given: Any, **more: Any) -> Trained:
        if given[2].optimiser.lr == 0.005:
            raise RunError("training diverged in epoch 3")
        return train(*given, **more)

    def refuse(needed: Any) -> None:
        if needed == "rate 0.01":
            raise ConfigError("training needs about 9 TiB of memory")

    monkeypatch.setattr(ukge.learning.tuning.tune, "train", diverge)
    monkeypatch.setattr(ukge.learning.tuning.tune, "estimate", lambda config, *_: f"rate {config.optimiser.lr}")
    monkeypatch.setattr(ukge.learning.tuning.tune, "refuse_if_too_large", refuse)
    result = tune(dataset, UKGE(**ONE_RATE), directory=tmp_path)
    found = {trial.settings["lr"]: (trial.state, trial.note) for trial in result.trials}
    assert found == {
        0.001: ("complete", ""),
        0.005: ("failed", "training diverged in epoch 3"),
        0.01: ("failed", "training needs about 9 TiB of memory"),
    }
    assert result.config is not None
    assert result.config.optimiser.lr == 0.001


def test_a_search_without_a_complete_trial_has_no_best(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ukge.learning.tuning.tune, "train", pretend(lambda _: [float("nan")]))
    result = tune(dataset, UKGE(**ONE_RATE), directory=tmp_path)
    assert [trial.state for trial in result.trials] == ["failed"] * 3
    assert "nan" in result.trials[0].note
    assert result.best is None
    assert result.config is None
    assert not (tmp_path / "best.toml").exists()


@pytest.mark.parametrize("harmless", [False, True])
def test_a_trial_that_learnt_nothing_is_dead_and_never_the_best(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harmless: bool
) -> None:
    found = Collapse("all are 0.5", "the steps of ‹lr=0.001› are too long", "Train again.", harmless=harmless)

    def pretended(*arguments: Any, **more: Any) -> Trained:
        config = arguments[2]
        trained = pretend(lambda _: [config.optimiser.lr])(*arguments, **more)
        return dataclasses.replace(trained, collapsed=found if config.optimiser.lr == 0.001 else None)

    monkeypatch.setattr(ukge.learning.tuning.tune, "train", pretended)
    result = tune(dataset, UKGE(**ONE_RATE), directory=tmp_path)
    trials = {trial.settings["lr"]: trial for trial in result.trials}
    assert result.best is not None
    if harmless:
        assert result.best.settings["lr"] == 0.001
        return
    assert (trials[0.001].state, trials[0.001].value) == ("dead", 0.001)
    assert trials[0.001].note == "one prediction for everything: the steps of lr=0.001 are too long"
    assert trials[0.001].seconds is not None
    assert result.best.settings["lr"] == 0.005
    assert read_config(tmp_path / "best.toml").optimiser.lr == 0.005
    assert outcome(tune(dataset, UKGE(**ONE_RATE), directory=tmp_path)) == outcome(result)  # none is tried again


def test_a_hopeless_trial_is_pruned_at_its_third_validation(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = [0.5, 0.4, 0.3]

    def values(config: Config) -> list[float]:
        return [value + (10.0 if config.model.dim == 64 else 0.0) for value in good]

    monkeypatch.setattr(ukge.learning.tuning.tune, "train", pretend(values))
    fixed = {name: value for name, value in QUICK.items() if name != "dim"}
    result = tune(dataset, UKGE(lr=0.001, **fixed), directory=tmp_path)
    assert len(result.trials) == 16
    for place, trial in enumerate(result.trials):
        hopeless = trial.settings["dim"] == 64
        complete_before = sum(other.state == "complete" for other in result.trials[:place])
        assert (trial.state == "pruned") == (hopeless and complete_before >= 5)
        assert trial.epochs == 6
    assert "pruned" in [trial.state for trial in result.trials]


def test_the_test_split_does_not_matter(dataset: Dataset, tmp_path: Path) -> None:
    scrambled = dataset.test.with_confidence(np.linspace(0.0, 1.0, len(dataset.test)))
    other = dataclasses.replace(dataset, test=scrambled[::-1])
    first = tune(dataset, UKGE(**ONE_RATE), directory=tmp_path / "one", trials=2)
    second = tune(other, UKGE(**ONE_RATE), directory=tmp_path / "two", trials=2)
    assert outcome(first) == outcome(second)
    assert (tmp_path / "one" / "study.json").read_bytes() == (tmp_path / "two" / "study.json").read_bytes()


def test_another_search_in_the_same_directory_is_refused(dataset: Dataset, tmp_path: Path) -> None:
    tune(dataset, UKGE(**ONE_RATE), directory=tmp_path, trials=1)
    with pytest.raises(RunError, match=r"settings\.stopping\.epochs was 6, now it is 7"):
        tune(dataset, UKGE(**{**ONE_RATE, "epochs": 7}), directory=tmp_path, trials=1)
    less = dataclasses.replace(dataset, train=dataset.train[:-1])
    with pytest.raises(RunError, match=r"data\.train"):
        tune(less, UKGE(**ONE_RATE), directory=tmp_path, trials=1)
    tune(dataset, UKGE(**{**ONE_RATE, "threads": 2}), directory=tmp_path, trials=1)


def test_a_directory_with_something_else_is_left_alone(dataset: Dataset, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(RunError, match="holds no search"):
        tune(dataset, UKGE(**ONE_RATE), directory=tmp_path)
    with pytest.raises(RunError, match="is a file"):
        tune(dataset, UKGE(**ONE_RATE), directory=tmp_path / "thesis.tex")


@pytest.mark.parametrize("left", [None, "lr = 0.5\n"])
def test_the_best_settings_are_there_after_a_kill_before_they_were_written(
    dataset: Dataset, tmp_path: Path, left: str | None
) -> None:
    result = tune(dataset, UKGE(**ONE_RATE), directory=tmp_path, trials=1)
    file = tmp_path / "best.toml"
    written = file.read_bytes()
    file.unlink()
    if left is not None:
        file.write_text(left, encoding="utf-8")
    (tmp_path / ".best.toml.0123abcd.tmp").write_text("half", encoding="utf-8")
    again = tune(dataset, UKGE(**ONE_RATE), directory=tmp_path, trials=1)
    assert again.config == result.config == read_config(file)
    assert file.read_bytes() == written
    assert not list(tmp_path.glob(".*"))


def test_a_search_that_was_killed_at_its_first_file_begins_again(dataset: Dataset, tmp_path: Path) -> None:
    (tmp_path / ".study.json.0123abcd.tmp").write_text("{", encoding="utf-8")
    assert tune(dataset, UKGE(**ONE_RATE), directory=tmp_path, trials=1).best is not None


def test_two_searches_at_once_are_refused(dataset: Dataset, tmp_path: Path) -> None:
    def again(_: EpochEvent) -> None:
        with ThreadPoolExecutor(1) as other, pytest.raises(RunError, match="is in use by process"):
            other.submit(lambda: tune(dataset, UKGE(**ONE_RATE), directory=tmp_path, trials=1)).result()

    tune(dataset, UKGE(**{**ONE_RATE, "epochs": 1}), directory=tmp_path, trials=1, on_epoch=again)


@pytest.mark.parametrize("name", ["journal.log", "study.json"])
def test_a_damaged_file_is_named(dataset: Dataset, tmp_path: Path, name: str) -> None:
    tune(dataset, UKGE(**ONE_RATE), directory=tmp_path, trials=1)
    content = (tmp_path / name).read_text()
    (tmp_path / name).write_text(content[: len(content) // 2] + "\0\n" + content[len(content) // 2 :])
    with pytest.raises(RunError, match=name):
        tune(dataset, UKGE(**ONE_RATE), directory=tmp_path, trials=1)


def test_the_journal_is_json_lines(dataset: Dataset, tmp_path: Path) -> None:
    tune(dataset, UKGE(**ONE_RATE), directory=tmp_path, trials=1)
    lines = (tmp_path / "journal.log").read_text().splitlines()
    assert len(lines) > 3
    assert all(isinstance(json.loads(line), dict) for line in lines)


def test_without_optuna_the_error_says_how_to_install_it(
    dataset: Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ConfigError, match=r"pip install 'ukge\[tune\]'"):
        tune(dataset, UKGE(**ONE_RATE), directory=tmp_path / "study")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"space": "narrow"}, "near, paper, wide"),
        ({"pruner": "never"}, "halving, median, none"),
        ({"model": UKGE(**ONE_RATE, lr=0.1)}, "nothing is left to search"),
        ({"lr": 0.1}, "no keyword 'lr'"),
        ({"trials": 0}, "trials must be above 0"),
        ({"timeout": -1.0}, "timeout must be above 0"),
    ],
)
def test_what_cannot_be_searched_is_said(dataset: Dataset, tmp_path: Path, given: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        tune(dataset, **{"model": UKGE(**ONE_RATE), "directory": tmp_path / "study", **given})
    assert not (tmp_path / "study").exists()


def test_no_trial_begins_after_the_timeout(dataset: Dataset, tmp_path: Path) -> None:
    result = tune(dataset, UKGE(**ONE_RATE), directory=tmp_path, timeout=1e-9)
    assert result.trials == ()


def test_every_space_and_pruner_is_tried(tmp_path: Path) -> None:
    assert spaces.names() == ["fit", "near", "paper", "wide"]
    for place, pruner in enumerate(("median", "halving", "none")):
        space = {"lr": Choices((0.1, 0.2))}
        path = tmp_path / str(place)
        with open_study(path, {}, space, pruner=pruner, every=2, higher_is_better=False) as study:
            trial = study.ask(0, {"lr": 0.2})
            assert trial.params == {"lr": 0.2}
            trial.report(1.0, step=2)
            assert not trial.should_prune()
            assert study.finish(trial, "complete", value=1.0).value == 1.0
