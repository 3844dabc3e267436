"""Confidences worked out by hand; a link without one fails."""

from __future__ import annotations

import math
from typing import get_args

import pytest
import torch

from ukge.models.links import links
from ukge.settings.knobs import LinkName

# name: (g, w, b, value in the loss, prediction)
GOLDEN: dict[str, list[tuple[float, float, float, float, float]]] = {
    "logistic": [
        (0.0, 5.0, 0.0, 0.5, 0.5),
        (1.0, 2.0, math.log(3.0) - 2.0, 0.75, 0.75),  # 1 / (1 + 1/3)
        (1.0, -1.0, 1.0 - math.log(3.0), 0.25, 0.25),  # 1 / (1 + 3)
        (1e9, 1.0, 0.0, 1.0, 1.0),
        (-1e9, 1.0, 0.0, 0.0, 0.0),
    ],
    "rectifier": [
        (0.5, 2.0, -0.5, 0.5, 0.5),
        (1.0, 2.0, -0.5, 1.5, 1.0),  # clamped in the prediction, not in the loss
        (0.0, 2.0, -0.5, -0.5, 0.0),
        (2.0, -0.25, 1.0, 0.5, 0.5),
    ],
    "identity": [(7.25, 3.0, -2.0, 7.25, 7.25), (-1.5, 3.0, 9.0, -1.5, -1.5)],
}


def test_every_link_of_our_own_has_a_golden_value() -> None:
    assert set(GOLDEN) == set(get_args(LinkName))


@pytest.mark.parametrize(("name", "case"), [(name, case) for name, cases in GOLDEN.items() for case in cases])
def test_confidence_is_the_one_worked_out_by_hand(name: str, case: tuple[float, ...]) -> None:
    g, weight, bias, in_loss, predicted = (torch.tensor(value, dtype=torch.float64) for value in case)
    assert links.get(name).forward(g, weight, bias).item() == pytest.approx(in_loss.item(), abs=1e-12)
    assert links.get(name).predict(g, weight, bias).item() == pytest.approx(predicted.item(), abs=1e-12)


def test_rectifier_keeps_its_gradient_outside_the_unit_interval() -> None:
    g = torch.tensor([-3.0, 0.5, 3.0], requires_grad=True)
    estimate = links.get("rectifier").forward(g, torch.tensor(2.0), torch.tensor(0.0))
    (gradient,) = torch.autograd.grad(estimate.sum(), g)
    assert gradient.tolist() == [2.0, 2.0, 2.0]
