"""FocusE: the loss worked out by hand, before and after β has fallen."""

from __future__ import annotations

from math import exp, log

import pytest
import torch

from ukge.errors import ConfigError
from ukge.models.losses import BatchScores, Given, losses
from ukge.models.scorers import scorers
from ukge.settings.config import ObjectiveConfig


def softplus(x: float) -> float:
    return log(1 + exp(x))


@pytest.mark.parametrize(("epoch", "beta"), [(0, 1.0), (30, 0.25), (50, 0.0)])
def test_the_loss_is_the_one_worked_out_by_hand(epoch: int, beta: float) -> None:
    g, s, unseen = 0.7, 0.9, [0.2, -1.0]
    (term,) = losses.get("focus:decay=40,l3=0.5")(ObjectiveConfig(), Given(True))
    rows = tuple(torch.tensor([[value]], dtype=torch.float64) for value in (1.0, -2.0, 0.5))
    head, relation, tail = rows
    batch = BatchScores(
        lambda x: x,
        torch.tensor([g], dtype=torch.float64),
        torch.tensor([s], dtype=torch.float64),
        (head, relation, tail),
        scorers.get("distmult"),
        unseen_plausibility=torch.tensor([[*unseen, 9.0]], dtype=torch.float64),
        unseen_counts=torch.tensor([[True, True, False]]),
        epoch=epoch,
    )
    own = (beta + (1 - s) * (1 - beta)) * softplus(g)
    others = [(beta + s * (1 - beta)) * softplus(each) for each in unseen]
    expected = log(exp(own) + sum(map(exp, others))) - own + 0.5 * (1 + 8 + 0.125)
    assert term.value(batch).item() == pytest.approx(expected)


def test_it_needs_unseen_facts_and_learns_an_order() -> None:
    with pytest.raises(ConfigError, match="needs unseen facts"):
        losses.get("focus")(ObjectiveConfig(), Given(False))
    assert not ObjectiveConfig(loss="focus:decay=3").learns_confidence
