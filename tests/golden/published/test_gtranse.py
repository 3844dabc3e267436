"""GTransE: distances of directions, and a margin that grows with the confidence, worked out by hand."""

from __future__ import annotations

import pytest
import torch

from ukge.models.losses import BatchScores, Given, losses
from ukge.models.scorers import scorers
from ukge.settings.config import ObjectiveConfig


def test_entities_are_directions() -> None:
    head, relation, tail = (torch.tensor(row, dtype=torch.float64) for row in ([3.0, 4.0], [0.5, -0.5], [0.0, 7.0]))
    # (0.6, 0.8) + (0.5, −0.5) − (0, 1)
    assert scorers.get("transe-unit").plausibility(head, relation, tail).item() == pytest.approx(-(1.1 + 0.7))
    assert scorers.get("transe-unit").fused != scorers.get("transe-l1").fused


def test_the_margin_grows_with_the_confidence() -> None:
    (term,) = losses.get("growing-margin:power=2")(ObjectiveConfig(margin=10.0), Given(True))
    nothing = torch.zeros(2, 1)
    batch = BatchScores(
        lambda x: x,
        torch.tensor([-1.0, -1.0]),
        torch.tensor([1.0, 0.5]),
        (nothing, nothing, nothing),
        scorers.get("transe-unit"),
        unseen_plausibility=torch.tensor([[-4.0, -20.0], [-4.0, -3.0]]),
    )
    # margins 10 and 2.5: 10 + 1 − 4, nothing; nothing, 2.5 + 1 − 3
    assert term.value(batch).item() == pytest.approx((7.0 + 0.0 + 0.0 + 0.5) / 4)
