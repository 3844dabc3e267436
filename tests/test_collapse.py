"""Trainings that end with one prediction for everything are told so, with the cause; those that learn are let be."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ukge.errors import CollapseWarning
from ukge.graph.dataset import Dataset
from ukge.graph.split import split
from ukge.graph.synthetic import generate
from ukge.graph.uncertain import UncertainGraph
from ukge.learning.estimator import UKGE
from ukge.runs.directory import Run
from ukge.runs.learnt import Collapse

SMALL: dict[str, Any] = {"dim": 16, "epochs": 60, "batch_size": 256, "threads": 1, "lr": 0.005}


def interactions() -> UncertainGraph:
    """A graph like STRING's: one relation, both directions, a few proteins with most of the links."""
    rng = np.random.default_rng(0)
    place = rng.normal(size=(400, 4))
    often = rng.pareto(1.5, 400) + 1
    found: dict[tuple[int, int], float] = {}
    while len(found) < 1500:
        a, b = rng.choice(400, 2, p=often / often.sum())
        if a != b and (b, a) not in found:
            found[int(a), int(b)] = round(0.15 + 0.8 / (1 + float(np.exp(-place[a] @ place[b]))), 3)
    one_way = [(f"p{a}", "interacts", f"p{b}", score) for (a, b), score in found.items()]
    return UncertainGraph.from_facts([*one_way, *((t, r, h, s) for h, r, t, s in one_way)])


@pytest.fixture(scope="module")
def proteins() -> Dataset:
    return split(interactions(), undirected="none", name="proteins")


@pytest.fixture(scope="module")
def world() -> UncertainGraph:
    return generate(n_entities=300, n_facts=3000, seed=1).graph


def collapse_of(data: Dataset | UncertainGraph, model: str = "ukge-rect", **settings: Any) -> Collapse:
    with pytest.warns(CollapseWarning):
        fitted = UKGE(model, **settings).fit(data)
    assert fitted.trained is not None
    assert fitted.trained.collapsed is not None
    return fitted.trained.collapsed


def test_embeddings_that_shrank_to_nothing_are_told_with_the_flag(proteins: Dataset, tmp_path: Path) -> None:
    with pytest.warns(CollapseWarning) as told:
        dead = UKGE(**SMALL, l2=1.0).fit(proteins, out=tmp_path / "run")
    assert dead.trained is not None
    found = dead.trained.collapsed
    assert found is not None
    predicted = dead.predict(proteins.val)
    low, high = (float(number) for number in found.seen.rpartition("between ")[2].split(" and "))
    assert low - 0.001 <= predicted.min() <= predicted.max() <= high + 0.001
    assert high - low < 0.05
    assert "shrunk to" in found.cause
    assert found.hint() == "Train again with a tenth of it: l2=0.1."
    assert found.hint(lambda name, value: f"--{name} {value}") == "Train again with a tenth of it: --l2 0.1."
    assert str(told[0].message) == f"{found.what()}. {found.hint()}"
    assert Path(told[0].filename).name == "test_collapse.py"  # the line of the user, not one of ours

    assert Run(tmp_path / "run").manifest()["result"]["collapsed"]["cause"] == found.cause
    with pytest.warns(CollapseWarning, match=r"run: the predictions of .* all lie between"):
        again = UKGE.load(tmp_path / "run")
    assert again.trained is not None
    assert again.trained.collapsed == found
    again.save(tmp_path / "copy")
    assert Run(tmp_path / "copy").manifest()["result"] == Run(tmp_path / "run").manifest()["result"]


def test_the_remedy_helps(proteins: Dataset) -> None:
    settings = {**SMALL, "epochs": 150, "l2": 0.3}
    found = collapse_of(proteins, **settings)
    assert "‹l2=0.03›" in found.remedy
    assert alive(proteins, **{**settings, "l2": 0.03})


def test_steps_that_are_too_long(proteins: Dataset) -> None:
    found = collapse_of(proteins, **{**SMALL, "lr": 5.0})
    assert "‹lr=5›" in found.cause
    assert "times their first size" in found.cause
    assert "‹lr=0.01›" in found.remedy


def test_embeddings_that_start_too_small(world: UncertainGraph) -> None:
    assert "‹init_scale=0.3›" in collapse_of(world, **SMALL, init_scale=0.01).remedy


def test_too_few_epochs(world: UncertainGraph) -> None:
    settings: dict[str, Any] = {"dim": 8, "init_scale": 0.1, "epochs": 2, "every": 1, "threads": 1}
    assert "‹epochs=20›" in collapse_of(world, "ukge-logi", **settings).remedy


def alive(data: Dataset | UncertainGraph, model: str = "ukge-rect", **settings: Any) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("error", CollapseWarning)
        trained = UKGE(model, **settings).fit(data).trained
    return trained is not None and trained.collapsed is None


@pytest.mark.parametrize("model", ["ukge-rect", "ukge-logi", "ukge-n"])
def test_models_that_learn_are_let_be(model: str, proteins: Dataset, world: UncertainGraph) -> None:
    assert alive(world, model, threads=1)
    assert alive(proteins, model, **SMALL)


def test_a_training_of_seconds_is_no_collapse(world: UncertainGraph) -> None:
    """Two epochs have learnt little, which is another thing: predictions differ, and are no constant's."""
    for model in ("ukge-rect", "ukge-logi"):
        assert alive(world, model, dim=8, epochs=2, every=1, batch_size=256)


def test_few_facts_and_equal_confidences_are_let_be(world: UncertainGraph) -> None:
    assert alive(generate(n_entities=100, n_facts=300).graph)
    equal = world.with_confidence(np.full(len(world), 0.9))
    assert alive(equal, threads=1)


def test_one_number_for_data_of_one_number_is_harmless(world: UncertainGraph) -> None:
    equal = world.with_confidence(np.full(len(world), 0.9))
    settings: dict[str, Any] = {**SMALL, "lr": 0.05, "l2": 1.0}
    found = collapse_of(equal, "ukge-n", **settings)
    assert found.harmless
    assert "are all 0.9" in found.cause
    wrong = collapse_of(equal, "ukge-rect", **settings)  # 0.45 for everything: facts and no facts are not told apart
    assert not wrong.harmless
    assert "‹l2=1›" in wrong.cause


def test_a_model_that_ranks_is_judged_by_its_scores(world: UncertainGraph) -> None:
    settings: dict[str, Any] = {"dim": 8, "epochs": 8, "threads": 1}
    found = collapse_of(world, "complex-all", **settings, l2=10.0)
    assert "the scores of" in found.seen
    assert "between 0.000 and 0.000" in found.seen
    assert alive(world, "complex-all", **settings)
