"""The protocol `uncertainty`: every kind, all coverages, calibration that helps, and a predictor's own bounds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from tests.evaluation.table_predictor import TablePredictor

from ukge.evaluation.answer_sets import AnswerSets
from ukge.evaluation.evaluate import Row, measure, prepare
from ukge.evaluation.metric import Bootstrap
from ukge.evaluation.protocols import Settings
from ukge.graph.dataset import Dataset
from ukge.graph.negatives import SHARES
from ukge.graph.queries import AnyIds, Floats


class SureOfItself(TablePredictor):
    """Says that every confidence is between .2 and .4, and that no entity is an answer."""

    answer_sets = AnswerSets(np.full(500, 9.0), np.zeros(500, dtype=np.int32), (np.arange(500) % 2).astype(np.uint8))

    def confidence_quantiles(self, head: AnyIds, relation: AnyIds, tail: AnyIds, levels: Sequence[float]) -> Floats:
        assert len(head) == len(relation) == len(tail)
        return np.full((len(head), len(levels)), 0.3)

    def confidence_bounds(self, head: AnyIds, relation: AnyIds, tail: AnyIds, coverage: float) -> tuple[Floats, Floats]:
        assert 0 < coverage < 1
        assert len(relation) == len(tail)
        return np.full(len(head), 0.2), np.full(len(head), 0.4)


@pytest.fixture
def rows(dataset: Dataset, predictor: TablePredictor) -> tuple[Row, ...]:
    plan = prepare(dataset, "uncertainty", Settings(seed=3))
    return measure(plan, {"table": predictor, "sure": SureOfItself(predictor.table)}, Bootstrap(20))


def test_every_figure_is_there_and_kept_promises_are_seen(rows: tuple[Row, ...], dataset: Dataset) -> None:
    table, sure = rows
    for kind in SHARES:
        assert table.figure("confidence_kinds", f"mse_{kind}").value > 0
    assert table.figure("confidence_kinds", f"ece_{kind}").interval is not None
    # Links of all kinds were predicted .3 on average, and facts too low: a rising line mends both.
    before, after = (table.figure("calibration", f"ece_{when}").value for when in ("before", "after"))
    assert after < 0.7 * before
    assert sure.figure("calibration", "ece_before").value == sure.figure("calibration", "ece_after").value
    for coverage in (80, 90, 95):
        # Many confidences are exactly 0, and an interval that holds 0 holds them all.
        assert table.figure("intervals", f"coverage_{coverage}_both").value > coverage / 100 - 0.05
        for side in ("tail", "head"):
            held = table.figure(f"sets_{side}", f"coverage_{coverage}").value
            assert held > coverage / 100 - 0.06  # scores tie, and so may more than promised
            assert 1 <= table.figure(f"sets_{side}", f"size_{coverage}").value < len(dataset.entities)
    # Bounds and sets of its own are taken at their word: a fact is in .2 to .4 or not, and no set has an entity.
    inside = np.mean((dataset.test.confidence >= 0.2) & (dataset.test.confidence <= 0.4))
    assert sure.figure("intervals", "coverage_90_facts").value == pytest.approx(inside)
    assert sure.figure("intervals", "coverage_90_negatives").value == 0.0
    assert sure.figure("intervals", "width_90_both").value == pytest.approx(0.2)
    assert sure.figure("distribution", "crps_negatives").value == pytest.approx(0.3)
    assert sure.figure("sets_tail", "coverage_90").value == sure.figure("sets_tail", "size_90").value == 0.0
    assert not sure.figure("sets_tail", "worst_90").value > 0.0


def test_test_facts_do_not_calibrate(dataset: Dataset, predictor: TablePredictor) -> None:
    """Whatever the test confidences are, the bounds are the same."""
    from dataclasses import replace

    other = replace(dataset, test=dataset.test.with_confidence(1.0 - dataset.test.confidence))
    widths = [
        measure(prepare(each, "uncertainty"), {"table": predictor}, Bootstrap(0))[0]
        .figure("intervals", "width_90_facts")
        .value
        for each in (dataset, other)
    ]
    assert widths[0] == widths[1]
