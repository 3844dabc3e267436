"""What is said of a model that is no better than what needs no model."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from io import StringIO
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from rich.console import Console
from tests.evaluation.table_predictor import TablePredictor

from ukge.cli.console import as_flag
from ukge.evaluation.baselines import baseline_predictors
from ukge.evaluation.evaluate import Evaluation, Row, Verdict, evaluate, prepare, verdicts
from ukge.evaluation.metric import Bootstrap, Figure, Interval, Metric
from ukge.evaluation.protocols import Settings
from ukge.evaluation.report import write_report
from ukge.evaluation.tables import columns, render
from ukge.evaluation.tasks import Table
from ukge.graph.dataset import Dataset


def table_of(dataset: Dataset, fill: float) -> npt.NDArray[np.float32]:
    n, r = len(dataset.entities), len(dataset.relations)
    return np.full((r, n, n), fill, dtype=np.float32)


def oracle(dataset: Dataset) -> TablePredictor:
    whole, table = dataset.whole(), table_of(dataset, 0.0)
    table[whole.relation, whole.head, whole.tail] = whole.confidence
    return TablePredictor(table)


def judged(dataset: Dataset, protocol: str, replicates: int = 0, **predictors: TablePredictor) -> Evaluation:
    plan = prepare(dataset, protocol, Settings(tau=0.6))
    return evaluate(plan, predictors, bootstrap=Bootstrap(replicates))


def by_table(found: Evaluation, name: str = "mine") -> dict[str, Verdict]:
    return {each.table.name: each for each in found.verdicts if each.name == name}


def printed(found: Evaluation, width: int) -> str:
    sink = StringIO()
    Console(file=sink, width=width).print(render(found, as_flag))
    return sink.getvalue()


def test_one_constant_is_fitted_to_facts_and_negative_links(dataset: Dataset) -> None:
    assert dataset.negatives is not None
    few = replace(dataset, negatives=dataset.negatives[:60])
    plan = prepare(few, "paper")
    assert plan.positive_share == pytest.approx(300 / 360)
    constant = baseline_predictors(few.train, plan.positive_share)["constant, with negatives"]
    asked = few.test_with_negatives()
    predicted = constant.confidence(asked.head, asked.relation, asked.tail)
    assert predicted == pytest.approx(np.full(360, few.train.confidence.mean() * 300 / 360))
    found = judged(few, "paper").row("constant, with negatives").figure("confidence", "mse")
    assert found.value == pytest.approx(float(np.mean((predicted - asked.confidence) ** 2)))
    assert "constant, with negatives" not in {row.name for row in judged(few, "positives").rows}


def test_a_model_worse_than_a_constant_is_told_so_with_both_numbers(dataset: Dataset) -> None:
    found = judged(dataset, "paper", mine=TablePredictor(table_of(dataset, 0.9)))
    verdict = by_table(found)["confidence"]
    asked = dataset.test_with_negatives()
    own = float(np.mean((np.float32(0.9) - asked.confidence) ** 2))
    best = float(np.mean((dataset.train.confidence.mean() / 2 - asked.confidence) ** 2))
    assert (verdict.trivial, verdict.constant, verdict.clear) == ("constant, with negatives", True, True)
    assert verdict.what() == (
        f"mine: MSE {own:.5f} is worse than what one constant reaches ({best:.5f}, “constant, with negatives”)."
    )
    assert verdict.hint().startswith("A lower l2,")
    assert verdict.hint(as_flag).startswith("A lower --l2,")
    told = found.to_dict(as_flag)["verdicts"][0]
    json.dumps(told, allow_nan=False)
    assert told["metrics"] == {"mse": {"value": pytest.approx(own), "trivial": pytest.approx(best)}}


@pytest.mark.parametrize("protocol", ["paper", "split", "positives", "clean"])
def test_nothing_is_said_of_a_model_that_knows_everything(
    protocol: str, dataset: Dataset, safe_dataset: Dataset
) -> None:
    data = safe_dataset if protocol == "clean" else dataset
    assert judged(data, protocol, mine=oracle(data)).verdicts == ()


def test_equal_scores_rank_no_better_than_equal_scores(dataset: Dataset) -> None:
    found = by_table(judged(dataset, "paper", mine=TablePredictor(table_of(dataset, 0.3))))
    ranking = found["ranking"]
    assert ranking.constant
    assert not ranking.clear
    assert "is no better than what equal scores for all entities reach" in ranking.what()
    assert "--metric ndcg" in ranking.hint(as_flag)
    assert "F1 0.0000 is no better than what one constant reaches (0.0000" in found["classification"].what()


def test_a_look_up_that_is_better_is_told_with_the_leak(dataset: Dataset) -> None:
    guesses = np.random.default_rng(0).random(table_of(dataset, 0.0).shape).astype(np.float32)
    links = by_table(judged(dataset, "positives", mine=TablePredictor(guesses)))["links_filtered_both"]
    assert links.trivial == "twin, else 0"
    assert "what looking the fact or its inverse up in train reaches" in links.what()
    assert "a cut with --leak-safe" in links.hint(as_flag)


def test_facts_and_negatives_apart_must_be_lost_together(dataset: Dataset) -> None:
    """A model that is better on one of the two has weighed them another way, which is no fault."""
    assert dataset.negatives is not None
    bold = table_of(dataset, 0.0)
    bold[dataset.test.relation, dataset.test.head, dataset.test.tail] = 1.0 - dataset.test.confidence
    assert "confidence_apart" not in by_table(judged(dataset, "split", mine=TablePredictor(bold)))
    links = dataset.negatives
    bold[links.relation, links.head, links.tail] = 1.0
    found = by_table(judged(dataset, "split", mine=TablePredictor(bold)))["confidence_apart"]
    assert re.match(r"mine: MSE positives 0\.\d+ and MSE negatives 1\.0+ are worse than", found.what())


MSE = Metric("mse", "MSE", higher_is_better=False, digits=3)
TABLE = Table("confidence", "made up", judged_by=("mse",))


def made(own: Figure, **trivial: float) -> tuple[Verdict, ...]:
    rows = [Row(name, True, {"confidence": (Figure(MSE, value),)}) for name, value in trivial.items()]
    return verdicts(
        Evaluation(
            "paper",
            "",
            "",
            Settings(),
            Bootstrap(0),
            (),
            (TABLE,),
            (*rows, Row("mine", False, {"confidence": (own,)})),
        )
    )


def test_a_difference_within_the_interval_is_not_called_worse() -> None:
    [within] = made(Figure(MSE, 0.31, Interval(0.29, 0.33)), constant=0.30)
    assert "no better" in within.what()
    [beyond] = made(Figure(MSE, 0.31, Interval(0.305, 0.33)), constant=0.30)
    assert "worse" in beyond.what()
    assert made(Figure(MSE, 0.29, Interval(0.2, 0.4)), constant=0.30) == ()
    assert made(Figure(MSE, float("nan")), constant=0.30) == ()


def test_a_constant_is_named_before_a_better_look_up() -> None:
    [verdict] = made(Figure(MSE, 0.31), constant=0.30, twin=0.01)
    assert verdict.trivial == "constant"
    [verdict] = made(Figure(MSE, 0.20), constant=0.30, twin=0.01, relation=0.1)
    assert verdict.trivial == "twin"


def test_each_run_is_judged_for_itself_and_a_hint_is_given_once(dataset: Dataset) -> None:
    high, low = TablePredictor(table_of(dataset, 0.9)), TablePredictor(table_of(dataset, 0.8))
    text = printed(judged(dataset, "paper", 5, high=high, low=low, best=oracle(dataset)), 200)
    assert "±–" not in text  # equal predictions have no rank correlation, and no interval of it
    assert "high: MSE" in text
    assert "low: MSE" in text
    assert "best: " not in text
    assert text.count("`ukge tune` searches for them") == 1


def test_the_page_tells_it_below_the_table(dataset: Dataset, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    mine = TablePredictor(table_of(dataset, 0.9))
    plan = prepare(dataset, "paper", Settings(tau=0.6))
    found = evaluate(plan, {"mine": mine}, bootstrap=Bootstrap(0))
    page = write_report(tmp_path, found, plan, mine, "mine", wording=as_flag).read_text(encoding="utf-8")
    section = next(part for part in page.split("<section>") if "Confidence prediction" in part)
    assert "is worse than what one constant reaches" in section[section.index("</table>") :]
    assert "--epochs" in section


def test_no_number_is_cut_however_narrow_the_terminal(dataset: Dataset, predictor: TablePredictor) -> None:
    found = judged(dataset, "positives", 5, mine=predictor)
    wanted = {
        metric.text(row.figure(table.name, metric.name).value)
        for table in found.tables
        if table.brief
        for metric in columns(found, table)
        for row in found.rows
    }
    for width, pieces in ((60, 4), (80, 2), (200, 1)):
        text = printed(found, width)
        assert "…" not in text
        assert max(map(len, text.splitlines())) <= width
        assert all(number in text for number in wanted)
        [sides] = re.findall(r"filtered\s+of\s+all\s+facts,\s+mean\s+of\s+both.*?positives ·", text, re.DOTALL)
        assert sides.count("predictor ") == pieces
