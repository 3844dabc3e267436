"""Differences between models: hand-computed chances, pairs, seeds that stand together, and tables for papers."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from ukge.errors import ConfigError
from ukge.evaluation.confidence import ConfidenceErrors, error_sample
from ukge.evaluation.evaluate import Evaluation, Row
from ukge.evaluation.metric import Bootstrap, figures_of
from ukge.evaluation.paper_tables import Comparison, as_latex, as_markdown, format_of, latex_safe
from ukge.evaluation.protocols import Settings
from ukge.evaluation.significance import Contestant, contestants, contrasts, holm
from ukge.evaluation.tasks import Table

TABLE = Table("confidence", "facts | all", judged_by=("mse",))
MANY = Bootstrap(20_000, seed=1)


def row(name: str, predicted: list[float], observed: list[float]) -> Row:
    sample = error_sample(np.array(predicted), np.array(observed))
    return Row(name, False, {"confidence": figures_of(ConfidenceErrors, sample.point(), {})}, {"confidence": (sample,)})


def evaluation(*rows: Row) -> Evaluation:
    return Evaluation("paper", "", "toy", Settings(), Bootstrap(0), (), (TABLE,), rows)


OBSERVED = [0.0] * 8
GOOD, BAD = [0.1, 0.2, 0.1, 0.3, 0.2, 0.1, 0.2, 0.1], [0.3, 0.3, 0.2, 0.5, 0.1, 0.4, 0.3, 0.2]


def test_the_chance_is_that_of_all_swaps() -> None:
    """All 2⁸ ways to swap eight pairs, counted by hand, beside the test's random ones."""
    found = evaluation(row("good", GOOD, OBSERVED), row("bad", BAD, OBSERVED))
    mae = next(
        each
        for each in contrasts(found, contestants(found, {"good": ["good"], "bad": ["bad"]}), None, MANY)
        if each.metric.name == "mae"
    )
    gaps = np.array(BAD) - np.array(GOOD)
    signs = np.array(list(itertools.product((-1, 1), repeat=8)))
    exact = np.mean(np.abs(signs @ gaps) >= abs(gaps.sum()) - 1e-12)
    assert mae.difference == pytest.approx(gaps.mean())
    assert mae.p == pytest.approx(exact, abs=0.003)
    assert 0.0 < mae.interval.low < mae.difference < mae.interval.high


def test_equal_models_do_not_differ_and_pairs_matter() -> None:
    rng = np.random.default_rng(0)
    hard = rng.uniform(0.0, 1.0, 400)  # how hard a fact is outweighs by far what the models differ by
    one, slightly_worse = list(hard), list(hard + 0.01)
    zeros = [0.0] * 400
    found = evaluation(row("a", one, zeros), row("b", slightly_worse, zeros), row("c", one, zeros))
    models = contestants(found, {"a": ["a"], "b": ["b"], "c": ["c"]})
    tested = {(each.name, each.metric.name): each for each in contrasts(found, models, "a", Bootstrap(999))}
    assert tested["b", "mae"].p == 1 / 1000
    assert tested["b", "mae"].clear
    assert tested["c", "mae"].p == 1.0
    assert (tested["c", "mae"].difference, tested["c", "mae"].interval.low) == (0.0, 0.0)


def test_holm_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert holm([]) == []


def test_chances_under_no_difference_are_even() -> None:
    """Of models that err alike, every twentieth test is below 0.05, and no more."""
    rng = np.random.default_rng(3)
    below = 0
    for _ in range(200):
        one, other = (list(np.abs(rng.normal(size=60))) for _ in range(2))
        found = evaluation(row("a", one, [0.0] * 60), row("b", other, [0.0] * 60))
        first = contrasts(found, contestants(found, {"a": ["a"], "b": ["b"]}), None, Bootstrap(199))[0]
        below += first.p <= 0.05
    assert 2 <= below <= 20  # binomial(200, 0.05): outside once in a thousand


def test_seeds_stand_together() -> None:
    zeros = [0.0] * 4
    found = evaluation(
        row("x-0", [0.1] * 4, zeros), row("x-1", [0.3] * 4, zeros), row("y", [0.2, 0.2, 0.3, 0.3], zeros)
    )
    models = contestants(found, {"x": ["x-0", "x-1"], "y": ["y"]})
    assert models[0].mean("confidence", "mae") == pytest.approx(0.2)
    assert models[0].deviation("confidence", "mae") == pytest.approx(np.std([0.1, 0.3], ddof=1))
    assert np.isnan(models[1].deviation("confidence", "mae"))
    mae = contrasts(found, models, "x", Bootstrap(50))[1]
    assert mae.metric.name == "mae"
    assert mae.difference == pytest.approx(0.05)


def test_an_unknown_reference_is_named() -> None:
    found = evaluation(row("rect", GOOD, OBSERVED), row("logi", BAD, OBSERVED))
    models = contestants(found, {"rect": ["rect"], "logi": ["logi"]})
    with pytest.raises(ConfigError, match=r"no model is called 'rekt'.*\n.*'rect'"):
        contrasts(found, models, "rekt", Bootstrap(9))


def compared() -> Comparison:
    observed = [0.0] * 200
    a, b, worse = [0.1] * 200, [0.1002] * 200, [0.4] * 200
    found = evaluation(
        row("my_model-0", a, observed), row("my_model-1", b, observed), row("100% | {x}", worse, observed)
    )
    models: tuple[Contestant, ...] = contestants(
        found, {"my_model": ["my_model-0", "my_model-1"], "100% | {x}": ["100% | {x}"]}
    )
    return Comparison(found, models, contrasts(found, models, None, Bootstrap(499)))


def test_markdown_has_the_best_in_bold_and_marks() -> None:
    lines = as_markdown(compared()).splitlines()
    assert lines[0] == "**paper · facts \\| all**"
    assert lines[2:6] == [
        "| model | MSE ↓ | MAE ↓ |",
        "|---|---:|---:|",
        "| my_model | **0.01002** ± 0.00003 | **0.10010** ± 0.00014 |",
        "| 100% \\| {x} | 0.16000† | 0.40000† |",
    ]
    assert "after Holm's correction over 2 comparisons" in lines[-1]


def test_latex_is_safe_and_whole() -> None:
    text = as_latex(compared())
    assert r"my\_model & \textbf{0.01002} $\pm$ 0.00003 & \textbf{0.10010} $\pm$ 0.00014 \\" in text
    assert r"100\% | \{x\} & 0.16000$^\dagger$ & 0.40000$^\dagger$ \\" in text
    assert text.count(r"\begin{tabular}{lrr}") == text.count(r"\end{tabular}") == 1
    assert latex_safe("a\nb\\input{x}") == r"a b\textbackslash{}input\{x\}"


def test_other_endings_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"table\.docx.*\n.*\.md, \.tex"):
        format_of(Path("table.docx"))
