"""The page, from figures made up by hand."""

from __future__ import annotations

from tests.reproduction.made_up import outcome, results

from ukge.reproduction.document import Cell, Section, grid, markdown
from ukge.reproduction.page import page
from ukge.reproduction.recipes import ABSOLUTE, RANKING, STRONG, Recipes
from ukge.reproduction.reproduce import GraphResults, Reproduction, Request

TRIVIAL = {"twin, else 0": {"confidence": {"mse": 0.0229, "mae": 0.0509}, "ranking": {"linear": 0.951}}}
REACHED = {"mse": 0.0094, "mae": 0.0379, "linear": 0.950, "exponential": 0.951, "f1": 0.951, "accuracy": 0.994}
MISSED = {"mse": 0.0110, "mae": 0.0400, "linear": 0.900, "exponential": 0.900, "f1": 0.951, "accuracy": 0.995}


def made(graph: GraphResults, *models: str) -> str:
    return page(Reproduction(Request((graph.name,), models, 2), (graph,), {}, ()))


def headings(text: str) -> list[str]:
    return [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")]


def test_markdown_of_cells() -> None:
    table = grid(("a", "b"), [["x | y", Cell("1", "2 (−1)", strong=True)], [Cell("t", soft=True), "–"]])
    assert markdown("T", [Section("S", ("Words.", table))]) == (
        "# T\n\n## S\n\nWords.\n\n| a | b |\n| :-- | --: |\n| x \\| y | **1**<br>2 (−1) |\n| *t* | – |\n"
    )


def test_the_paper_part() -> None:
    recipes = Recipes("ppi5k", {}, remarks=("Why.",), tried=("More of it.",))
    outcomes = [outcome("ukge-rect", seed, REACHED) for seed in (0, 1)] + [outcome("ukge-logi", 0, MISSED)]
    text = made(results(*outcomes, recipes=recipes, trivial=TRIVIAL), "ukge-logi", "ukge-rect", "transe")
    assert headings(text) == [
        "How to read it",
        "Graphs",
        "Rules with hit ratios",
        "Confidence prediction (MSE, MAE × 100), protocol `paper`",
        "Fact ranking (mean nDCG), protocol `paper`",
        "Strong facts (F1, accuracy in %), protocol `paper`",
        "What was not reached",
        "The order of the models",
        "Settings",
    ]
    assert "| UKGE rect | **0.94 ± 0.00**<br>0.95 (−0.01) | **3.79 ± 0.00**<br>3.79 (±0.00) |" in text
    assert "| UKGE logi | 1.10<br>0.96 (+0.14) | **4.00**<br>4.07 (−0.07) |" in text
    assert "| TransE | –<br>0.710 | –<br>0.700 |" in text
    assert "| *twin, else 0* | *2.29* | *5.09* |" in text
    assert "| ppi5k | 4,999<br>4,999 (±0) | 7<br>7 (±0) | 271,666<br>271,666 (±0) | 0.415<br>0.415 (±0.000) |" in text
    assert "9 of 12 cells are reached" in text
    assert "- UKGE logi on ppi5k, nDCG linear: 0.900 where 0.970 was published." in text
    assert "| ppi5k | nDCG linear | 0 of 1 | UKGE rect before UKGE logi |" in text
    assert "- ppi5k: Why." in text
    assert "- ppi5k: More of it." in text


def test_a_separate_training_stands_in_the_ranking_table() -> None:
    apart = outcome("ukge-rect", 0, {"linear": 0.99, "exponential": 0.98, "mse": 0.5}, task=RANKING)
    text = made(results(outcome("ukge-rect", 0, REACHED), apart), "ukge-rect")
    assert "| UKGE rect | **0.990**<br>0.946 (+0.044) | **0.980**<br>0.946 (+0.034) |" in text
    assert "| UKGE rect | **0.94**<br>0.95 (−0.01) | **3.79**<br>3.79 (±0.00) |" in text
    assert "Trained once more for this table, stopping by its own metric: UKGE rect on ppi5k." in text


def test_a_training_for_each_figure_stands_in_its_column_alone() -> None:
    values = {"mse": 0.5, "mae": 0.0379, "f1": 0.96, "accuracy": 0.995, "linear": 0.5, "exponential": 0.5}
    outcomes = [outcome("ukge-rect", 0, {**REACHED, "mae": 0.05, "f1": 0.5, "accuracy": 0.5})]
    outcomes += [outcome("ukge-rect", 0, values, task=task) for task in (ABSOLUTE, STRONG)]
    text = made(results(*outcomes), "ukge-rect")
    assert "| UKGE rect | **0.94**<br>0.95 (−0.01) | **3.79**<br>3.79 (±0.00) |" in text
    assert "| UKGE rect | **96.0**<br>95.1 (+0.9) | **99.5**<br>99.4 (+0.1) |" in text
    assert "stopping by its own metric: UKGE rect on ppi5k for MAE." in text
    assert "stopping by its own metric: UKGE rect on ppi5k for F1." in text


def test_orders_under_clean() -> None:
    paper = {"ukge-p": 0.010, "ukge-rect": 0.009, "ukge-logi": 0.011, "transe": 0.001}
    clean = {"ukge-p": 0.020, "ukge-rect": 0.021, "ukge-logi": 0.030, "transe": 0.001}
    outcomes = [outcome(model, 0, {"mse": value}) for model, value in paper.items()]
    outcomes += [outcome(model, 0, {"mse": value}, clean=True) for model, value in clean.items()]
    text = made(results(*outcomes, trivial=TRIVIAL), *paper)
    assert "## The order of the models under `clean`" in text
    assert "| UKGE rect | **0.90**<br>rank 1 | 2.10<br>rank 2 |" in text
    assert "| TransE | – | – |" in text  # it predicts no confidence
    assert (
        "- ppi5k, MSE: 1 of 3 pairs of models change places; UKGE rect leads under `paper`, UKGE p− leads "
        "under `clean`."
    ) in text
    assert (
        "3 of 3 models are at least as good as “twin, else 0” (2.29) under `paper`, and 2 of 3 models are at least as "
        "good as “twin, else 0” (2.29) under `clean`."
    ) in text
