"""Tables for a terminal, breakdowns, and the page."""

from __future__ import annotations

import base64
import re
import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from tests.evaluation.table_predictor import TablePredictor

from ukge.errors import ConfigError, DataError
from ukge.evaluation.breakdown import by_query_size, errors_by_band, errors_by_relation
from ukge.evaluation.evaluate import Evaluation, evaluate, prepare
from ukge.evaluation.metric import Bootstrap, Figure, Interval, Metric
from ukge.evaluation.protocols import Plan, Settings
from ukge.evaluation.report import write_report
from ukge.evaluation.tables import is_best, render
from ukge.graph.dataset import Dataset
from ukge.graph.uncertain import UncertainGraph
from ukge.graph.vocabulary import Vocabulary

TRACE: list[dict[str, Any]] = [
    {"epoch": 1, "losses": {"observed": 0.5, "rules": 0.0}, "metric": "mse", "value": None, "best_epoch": -1},
    {"epoch": 2, "losses": {"observed": 0.3, "rules": 0.0}, "metric": "mse", "value": 0.1, "best_epoch": 2},
]


def run(dataset: Dataset, predictor: TablePredictor, protocol: str) -> tuple[Plan, Evaluation]:
    plan = prepare(dataset, protocol, Settings(tau=0.6))
    return plan, evaluate(plan, {"mine": predictor}, bootstrap=Bootstrap(10))


def printed(found: Evaluation) -> str:
    sink = StringIO()
    Console(file=sink, width=160).print(render(found))
    return sink.getvalue()


@pytest.mark.parametrize("protocol", ["paper", "split", "positives"])
def test_every_table_names_its_protocol(protocol: str, dataset: Dataset, predictor: TablePredictor) -> None:
    _, found = run(dataset, predictor, protocol)
    text = printed(found)
    for table in found.tables:
        if table.brief:
            assert f"{protocol} · {table.title}" in text
    lines = [line.split("  ")[0] for line in text.splitlines()]
    first = lines.index("constant, mean")
    assert lines.index("mine") > first
    assert "±" in text


def test_the_best_value_is_known_by_direction(dataset: Dataset, predictor: TablePredictor) -> None:
    _, found = run(dataset, predictor, "paper")
    table = found.tables[0]
    for name, pick in (("mse", min), ("spearman", max)):
        values = {row.name: row.figure(table.name, name) for row in found.rows}
        known = {row: each.value for row, each in values.items() if not np.isnan(each.value)}
        best = pick(known, key=lambda row: known[row])
        assert {row for row, each in values.items() if is_best(each, found, table)} == {best}


def test_figures_become_plain_values() -> None:
    mse = Metric("mse", "MSE", higher_is_better=False)
    assert Figure(mse, 0.5, Interval(0.4, 0.6)).to_dict() == {"value": 0.5, "low": 0.4, "high": 0.6, "better": "lower"}
    assert Figure(mse, float("nan")).to_dict()["value"] is None


def test_breakdowns_by_hand() -> None:
    facts = UncertainGraph.from_facts([("a", "r", "b", 0.5), ("a", "q", "c", 0.9), ("b", "r", "c", 0.0)])
    predicted = np.array([0.7, 0.8, 0.1])
    by_relation = {group.name: group for group in errors_by_relation(facts, predicted, 10)}
    assert by_relation["r"].mean == pytest.approx(0.15)
    assert (by_relation["r"].count, by_relation["q"].count) == (2, 1)
    bands = {group.name: group for group in errors_by_band(facts.confidence, predicted)}
    assert list(bands) == ["0", "≤ 0.5", "≤ 0.9"]
    assert bands["≤ 0.9"].bias == pytest.approx(-0.1)
    sizes = by_query_size(np.array([1.0, 4.0, 5.0, 200.0]), np.array([0.1, 0.4, 0.6, 1.0]))
    assert [(group.name, group.count) for group in sizes] == [("1", 1), ("3–5", 2), ("101+", 1)]
    assert [group.mean for group in sizes] == pytest.approx([0.1, 0.5, 1.0])


@pytest.mark.parametrize("protocol", ["paper", "split", "positives"])
def test_the_page_needs_nothing_else(
    protocol: str, dataset: Dataset, predictor: TablePredictor, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    plan, found = run(dataset, predictor, protocol)
    page = write_report(tmp_path / "report", found, plan, predictor, "mine", TRACE)
    text = page.read_text(encoding="utf-8")
    for table in found.tables:
        assert f"{protocol} · {table.title}" in text
    assert not re.search(r'(src|href)="(?!data:)', text)
    inside = re.findall(r"data:image/png;base64,([^\"]+)", text)
    beside = sorted((tmp_path / "report").glob("*.png"))
    assert {base64.b64decode(each) for each in inside} == {path.read_bytes() for path in beside}
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in beside)
    names = {path.stem for path in beside}
    expected = {
        "paper": {"reliability", "predicted", "bands", "relations", "ranking", "precision_recall", "training"},
        "split": {"ranking_held_out", "hits", "training"},
        "positives": {"reliability", "predicted", "bands", "relations", "hits", "training"},
    }
    assert names == expected[protocol]
    assert "N/A" in text


def test_names_cannot_break_the_page(dataset: Dataset, predictor: TablePredictor, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    names = [f"<script>{name}</script>" for name in dataset.entities]
    vocabulary = Vocabulary(names)

    def renamed(part: UncertainGraph) -> UncertainGraph:
        return UncertainGraph.from_ids(
            part.head, part.relation, part.tail, part.confidence, vocabulary, dataset.relations
        )

    wicked = Dataset("<b>wicked</b>", renamed(dataset.train), renamed(dataset.val), renamed(dataset.test))
    plan, found = run(wicked, predictor, "positives")
    text = write_report(tmp_path, found, plan, predictor, "mine").read_text(encoding="utf-8")
    assert "<script>" not in text
    assert "<b>wicked" not in text


def test_without_matplotlib_the_extra_is_named(
    dataset: Dataset, predictor: TablePredictor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, found = run(dataset, predictor, "positives")
    monkeypatch.delitem(sys.modules, "ukge.evaluation.pictures", raising=False)
    monkeypatch.delattr("ukge.evaluation.pictures", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ConfigError, match=r"ukge\[report\]"):
        write_report(tmp_path / "r", found, plan, predictor, "mine")
    assert not (tmp_path / "r").exists()


def test_a_file_in_the_way_is_told(dataset: Dataset, predictor: TablePredictor, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plan, found = run(replace(dataset, negatives=None), predictor, "positives")
    (tmp_path / "taken").touch()
    with pytest.raises(DataError, match="is a file"):
        write_report(tmp_path / "taken", found, plan, predictor, "mine")
