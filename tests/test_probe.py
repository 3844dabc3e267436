"""The probe before training: which settings it leaves open, what it tries, and that no graph dies of the paper's λ."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ukge import UKGE
from ukge.cli.train import resolved
from ukge.errors import ConfigError
from ukge.graph.dataset import Dataset
from ukge.graph.split import split
from ukge.graph.uncertain import UncertainGraph
from ukge.learning import probe as probing
from ukge.learning.probe import LAMBDAS, RATES, probe
from ukge.learning.validation import Validation, metrics
from ukge.settings.config import Config

QUICK: dict[str, Any] = {
    "dim": 8,
    "epochs": 4000,
    "batch_size": 64,
    "engine": "torch",
    "threads": 1,
    "rule_weight": 0.0,
}


@pytest.fixture(scope="module")
def dataset() -> Dataset:
    """Two groups of friends: nearly all within one know each other, nobody knows anyone of the other."""
    rng = np.random.default_rng(0)
    pairs = [(a, b) for a in range(40) for b in range(a) if (a < 20) == (b < 20) and rng.random() < 0.9]
    facts = [(f"e{a}", "knows", f"e{b}", 0.9) for a, b in pairs]
    return split(UncertainGraph.from_facts(facts), val=0.2, test=0.0, seed=0, undirected="none")


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep rungs short."""
    monkeypatch.setattr(probing, "RUNGS", ((40, 3), (120, 1)))
    monkeypatch.setattr(probing, "FEWEST", 10)


def test_a_lambda_that_shrinks_everything_is_left_for_one_that_learns(dataset: Dataset) -> None:
    fatal = Config().replace(**QUICK, l2=5.0, lr=0.03, probe="l2")
    found = probe(dataset, fatal, None)
    assert found is not None
    assert found.chosen.l2 in LAMBDAS
    assert found.chosen.lr == 0.03
    assert found.chosen.value < 0.8 * found.own.value
    assert {each.lr for each in found.tried} == {0.03}


def test_every_candidate_gets_the_first_rung_and_the_best_the_next(dataset: Dataset) -> None:
    config = Config().replace(**QUICK, probe="both")
    found = probe(dataset, config, None)
    assert found is not None
    pairs = {(lr, l2) for lr in RATES for l2 in LAMBDAS} | {(config.optimiser.lr, config.objective.l2)}
    first = [each for each in found.tried if each.steps == 40]
    second = [each for each in found.tried if each.steps == 120]
    assert {(each.lr, each.l2) for each in first} == pairs
    assert [each[:2] for each in second] == [each[:2] for each in sorted(first, key=lambda each: each.value)[:3]]
    assert found.chosen.value <= min(each.value for each in second) * 1.01
    again = probe(dataset, config, None)
    assert again is not None
    assert again.tried == found.tried


def test_within_little_time_all_candidates_get_fewer_steps(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing._Drawn, "seconds_of_a_step", lambda *_: 1.0)
    # Nine pairs of 40 steps and three of 120 take 720 seconds; 360 leave half of them for each.
    found = probe(dataset, Config().replace(**QUICK, probe="both"), None, seconds=360.0)
    assert found is not None
    assert [each.steps for each in found.tried] == [20] * 9 + [60] * 3


def test_the_models_own_settings_stay_if_nothing_else_is_better(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probing, "AS_GOOD", 1e9)
    monkeypatch.setattr(probing, "RUNGS", ((40, 1),))
    found = probe(dataset, Config().replace(**QUICK, probe="both"), None)
    assert found is not None
    assert found.chosen == found.own
    assert "left ‹lr=0.001› and ‹l2=0.005› as they are" in str(found)


def test_where_nothing_is_learnt_so_soon_the_smallest_lambda_is_taken(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On 2.3 million facts 1,800 steps taught no candidate more than a constant, and the one that was first died."""
    config = Config().replace(**QUICK, probe="both")
    links = Validation(dataset.train, dataset.val, config.sampling.tau, 0)
    constant = metrics.get("mse")(links).of_a_constant()
    assert constant is not None
    assert constant == pytest.approx(0.45**2)  # half of the links have 0.9, half 0
    assert metrics.get("mrr")(links).of_a_constant() is None
    monkeypatch.setattr(probing, "RUNGS", ((10, 3), (11, 1)))
    found = probe(dataset, config, None)
    monkeypatch.setattr(probing, "SOON", 1)
    often = probe(dataset, config, None)
    assert often is not None
    assert often.chosen.value == min(each.value for each in often.tried)  # all facts were seen again and again
    assert found is not None
    assert min(each.value for each in found.tried) > 0.98 * constant
    assert found.chosen.l2 == min(LAMBDAS)
    assert found.chosen.value == min(each.value for each in found.tried if each.l2 == min(LAMBDAS))


def test_a_training_that_is_over_sooner_than_a_probe_has_none(dataset: Dataset) -> None:
    assert probe(dataset, Config().replace(**{**QUICK, "epochs": 3}, probe="both"), None) is None
    assert probe(dataset, Config().replace(**QUICK, probe="none"), None) is None


def test_a_divergent_candidate_is_the_worst(dataset: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "RATES", (1e25, 0.01))
    found = probe(dataset, Config().replace(**QUICK, probe="lr"), None)
    assert found is not None
    assert found.chosen.lr < 1
    assert json.dumps(found.note(), allow_nan=False)


@pytest.mark.parametrize(
    ("given", "left"),
    [
        ({}, "both"),
        ({"lr": 0.001}, "l2"),
        ({"l2": 0.005}, "lr"),
        ({"lr": 0.01, "l2": 0.1}, "none"),
        ({"probe": "lr"}, "lr"),
    ],
)
def test_what_is_given_is_not_probed(given: dict[str, Any], left: str) -> None:
    assert UKGE(**given).settings.optimiser.probe == left
    assert resolved("ukge-rect", "x.tsv", None, None, given, probe=True).optimiser.probe == left
    assert resolved("ukge-rect", "x.tsv", None, None, given).optimiser.probe == given.get("probe", "none")


def test_settings_that_stand_elsewhere_are_not_probed(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text("[optimiser]\nlr = 0.001\n", encoding="utf-8")
    assert resolved("ukge-rect", "x.tsv", file, None, {}, probe=True).optimiser.probe == "l2"
    assert resolved("ukge-rect", "cn15k", None, "paper", {}, probe=True).optimiser.probe == "none"
    assert UKGE("transe").settings.optimiser.probe == "none"
    assert UKGE(config=Config()).settings.optimiser.probe == "none"
    with pytest.raises(ConfigError, match="unknown probe 'bth'") as raised:
        UKGE(probe="bth")
    assert "both" in str(raised.value)


def test_a_run_keeps_what_was_tried_and_what_was_chosen(dataset: Dataset, tmp_path: Path) -> None:
    model = UKGE(**QUICK, every=20, patience=1).fit(dataset, out=tmp_path / "run", progress=False)
    found = model.probe_found
    assert found is not None
    noted = json.loads((tmp_path / "run" / "manifest.json").read_text(encoding="utf-8"))["probe"]
    assert noted["tried"] == [each._asdict() for each in found.tried]
    kept = UKGE.load(tmp_path / "run").settings
    assert (kept.optimiser.lr, kept.objective.l2) == found.chosen[:2]
    assert kept.optimiser.probe == "none"
