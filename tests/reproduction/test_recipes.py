"""Settings by graph and model: what goes before what."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ukge.errors import ConfigError
from ukge.graph.catalogue import BENCHMARKS
from ukge.reproduction.jobs import Job, planned
from ukge.reproduction.recipes import (
    MAIN,
    PAPER_MODELS,
    RANKING,
    Recipes,
    comparable,
    contestants,
    recipes_for,
    settled,
)

TABLES = """
remarks = ["a remark"]
[ukge-rect]
found = "by hand"
lr = 0.02
rule_weight = 0.5
[ukge-rect.ranking]
dim = 300
metric = "ndcg"
[ukge-n]
lr = 0.03
"""


@pytest.fixture
def recipes(tmp_path: Path) -> Recipes:
    (tmp_path / "g.toml").write_text(TABLES, encoding="utf-8")
    return recipes_for("g", tmp_path)


def test_a_model_takes_its_own_else_those_it_is_like(recipes: Recipes) -> None:
    assert recipes.config("ukge-rect").objective.rule_weight == 0.5
    without = recipes.config("ukge-p")
    assert (without.optimiser.lr, without.objective.rule_weight) == (0.02, 0.0)  # the variant switches the rules off
    assert recipes.config("ukge-n").optimiser.lr == 0.03
    assert recipes.config("ukge-n").sampling.sampler == "none"
    assert recipes.config("ukge-rect-mined") == recipes.config("ukge-rect")
    assert recipes.config("ukge-logi").optimiser.lr == 0.001
    assert recipes.config("ukge-rect", MAIN, {"lr": 0.5}).optimiser.lr == 0.5
    assert recipes.remarks == ("a remark",)
    assert recipes.found("ukge-rect", RANKING) == "by hand"
    assert recipes.found("ukge-p") == "as ukge-rect"


def test_a_second_training_for_ranking(recipes: Recipes) -> None:
    ranking = recipes.config("ukge-rect", RANKING)
    assert (ranking.model.dim, ranking.stopping.metric, ranking.optimiser.lr) == (300, "ndcg", 0.02)
    assert recipes.config("ukge-rect").model.dim == 128
    jobs = planned({"g": recipes}, ["ukge-rect", "ukge-p"], range(2), ["paper"])
    assert [job.label for job in jobs if job.seed == 0] == ["ukge-rect", "ukge-rect-ranking", "ukge-p"]


def test_the_parts_share_what_they_have_in_common(recipes: Recipes) -> None:
    jobs = planned({"g": recipes}, ["ukge-rect"], range(1), ["paper", "rules", "clean"])
    labels = ["ukge-rect", "ukge-rect-ranking", "ukge-p", "ukge-rect-mined", "ukge-rect-clean"]
    assert [job.label for job in jobs] == labels
    assert [job.rules for job in jobs] == ["own", "own", "own", "mined", "mined"]
    with pytest.raises(ConfigError, match="unknown part 'papers'"):
        planned({"g": recipes}, ["ukge-rect"], range(1), ["papers"])


def test_where_a_job_is_kept() -> None:
    job = Job("ppi5k", "ukge-rect", 2, clean=True)
    assert job.run_path(Path("o")) == Path("o/runs/ppi5k/ukge-rect-clean/seed-2")
    assert job.result_path(Path("o")) == Path("o/ppi5k-ukge-rect-clean-seed-2.json")


@pytest.mark.parametrize("graph", BENCHMARKS)
def test_the_settings_of_the_package_are_whole(graph: str) -> None:
    recipes = recipes_for(graph)
    for model in PAPER_MODELS:
        recipes.config(model)
        assert model in recipes.tables or contestants.get(model).like in recipes.tables
    assert all(table.get("found") or table["ranking"]["found"] for table in recipes.tables.values())
    assert recipes.config("ukge-rect").sampling.tau == (0.7 if graph == "ppi5k" else 0.85)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[ukge-rec]\n", "Did you mean 'ukge-rect'"),
        ("[ukge-rect]\nrate = 1\n", r"\[ukge-rect\]: unknown setting 'rate'"),
        ("[ukge-rect.ranking]\ndim = 0\n", r"\[ukge-rect\]: .*dim must be at least 1"),
        ("ukge-rect = 3\n", "must be a table"),
        ("tried = 'much'\n", "list of sentences"),
        ("[", "is not TOML"),
    ],
)
def test_mistakes_are_told(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "g.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        recipes_for("g", tmp_path)

    assert re.search(message, str(caught.value))


def test_figures_that_were_kept_before_a_setting_came_are_those_of_its_default() -> None:
    now = comparable(recipes_for("nl27k").config("ukge-rect"))
    before = {
        part: {name: value for name, value in values.items() if name != "encoder"} for part, values in now.items()
    }
    assert before != now
    assert settled(before) == now
    before["model"]["dim"] = 3
    assert settled(before) != now
