"""BEUrRE: boxes whose overlap is seen, volumes by the plain formula, and what relations are held to."""

from __future__ import annotations

from math import exp, log

import pytest
import torch
from torch import Tensor

from ukge.errors import ConfigError
from ukge.models.links import links
from ukge.models.losses import BatchScores, Given
from ukge.models.published.beurre import Box, Boxes, BoxLogic
from ukge.models.scorers import Scorer, scorers
from ukge.settings.config import ObjectiveConfig

SHARP = Boxes(temperature=1e-4)
AS_IT_IS = [0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0]
"""A relation of two dimensions that moves nothing: head shifts, head factors, tail shifts, tail factors."""


def entity(low: tuple[float, float], high: tuple[float, float]) -> Tensor:
    sides = [log(high[0] - low[0]), log(high[1] - low[1])]
    return torch.tensor([*low, *sides], dtype=torch.float64)


def row(numbers: list[float]) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


@pytest.mark.parametrize(
    ("relation", "share"),
    [
        (AS_IT_IS, 1 * 2 / (2 * 4)),  # [1, 2] × [1, 3] of [1, 3] × [1, 5]
        ([0.0, 0.0, 2.0, 1.0, *AS_IT_IS[4:]], 2 * 2 / (2 * 4)),  # the head is [−1, 3] × [0, 3]
        ([*AS_IT_IS[:4], -1.0, 0.0, 1.0, 0.5], 2 * 1 / (2 * 2)),  # the tail is [0, 2] × [2, 4]
    ],
)
def test_confidence_is_the_share_of_the_tail_that_the_head_covers(relation: list[float], share: float) -> None:
    head, tail = entity((0.0, 0.0), (2.0, 3.0)), entity((1.0, 1.0), (3.0, 5.0))
    g = SHARP.plausibility(head, row(relation), tail)
    found = links.get("exponential").predict(g, torch.tensor(3.0), torch.tensor(1.0))
    assert found.item() == pytest.approx(share, rel=2e-3)
    back = SHARP.compare(SHARP.head_query(row(relation), tail), head)
    assert back.item() == pytest.approx(g.item(), abs=1e-9)


def test_soft_boxes_follow_the_formulas_of_the_paper() -> None:
    beta, gamma = 0.5, 0.57721566490153286
    soft = Boxes(temperature=beta)
    head, tail = entity((0.0, 0.0), (1.0, 1.0)), entity((0.5, 0.2), (1.5, 0.7))
    expected = 0.0
    for one, other in (((0.0, 1.0), (0.5, 1.5)), ((0.0, 1.0), (0.2, 0.7))):
        low = beta * log(exp(one[0] / beta) + exp(other[0] / beta))
        high = -beta * log(exp(-one[1] / beta) + exp(-other[1] / beta))
        both, alone = (beta * log(1 + exp(side / beta - 2 * gamma)) for side in (high - low, other[1] - other[0]))
        expected += log(both) - log(alone)
    assert soft.plausibility(head, row(AS_IT_IS), tail).item() == pytest.approx(expected, abs=1e-9)


def test_the_released_code_grows_boxes_from_their_corner_and_softens_sides_as_they_are() -> None:
    released = Boxes(temperature=0.5, released=True)
    moved = released.moved(entity((0.0, 1.0), (2.0, 2.0)), row([0.5, 0.0, 2.0, 1.0]))
    assert moved.low.tolist() == pytest.approx([0.5, 1.0])
    assert moved.high.tolist() == pytest.approx([4.5, 2.0])
    side = 1.0 - 2 * 0.57721566490153286 * 0.5
    assert released.log_volume(Box(row([0.0]), row([1.0]))).item() == pytest.approx(log(log(1 + exp(side))))


def test_boxes_that_are_far_apart_have_a_finite_plausibility_and_gradient() -> None:
    head = entity((0.0, 0.0), (1.0, 1.0)).float().requires_grad_()
    tail = entity((500.0, 0.0), (501.0, 1.0)).float()
    g = Boxes(temperature=0.001).plausibility(head, row(AS_IT_IS).float(), tail)
    (gradient,) = torch.autograd.grad(g, head)
    assert g.isfinite()
    assert gradient.isfinite().all()
    assert gradient[0] > 0  # towards the tail


def test_settings_stand_behind_the_name_and_are_checked() -> None:
    assert scorers.get("boxes:temperature=0.5,released=true") == Boxes(0.5, released=True)
    with pytest.raises(ConfigError, match="there is no setting 'temprature' here") as error:
        scorers.get("boxes:temprature=0.5")
    assert "Did you mean 'temperature'?" in str(error.value.hint)
    with pytest.raises(ConfigError, match="must be above 0"):
        scorers.get("boxes:temperature=0")
    with pytest.raises(ConfigError, match="'distmult' has no settings of its own"):
        scorers.get("distmult:x=1")


def logic(
    text: str, rows: tuple[Tensor, Tensor, Tensor], relations: list[int], kinds: Tensor, scorer: Scorer = SHARP
) -> float:
    loss = BoxLogic().with_settings(f"weight=2,{text}")
    (*_, term) = loss(ObjectiveConfig(), Given(True, ["isa", "has", "of"]))
    nothing = torch.zeros(len(relations), dtype=torch.float64)
    batch = BatchScores(lambda g: g, nothing, nothing, rows, scorer, relations=torch.tensor(relations), kinds=kinds)
    return float(term.value(batch))


def test_a_transitive_relation_lays_an_entity_as_a_tail_where_it_lies_as_a_head() -> None:
    half = [0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 1.0, 1.0]  # tails move by half of the side of 2
    kinds = torch.stack([row(half), row(AS_IT_IS), row(AS_IT_IS)])
    one = entity((0.0, 0.0), (2.0, 2.0)).repeat(2, 1)
    rows = one, kinds[[0, 1]], one
    # the fact of isa: its head and its tail are covered by one half each; that of the other relation is left alone
    assert logic("transitive=isa", rows, [0, 1], kinds) == pytest.approx(2 * (0.5 + 0.5) / 2, rel=1e-2)
    with pytest.raises(ConfigError, match="there is no relation 'is-a'"):
        logic("transitive=is-a", rows, [0, 1], kinds)
    with pytest.raises(ConfigError, match="'isa has' is no composition"):
        logic("composed=isa has", rows, [0, 1], kinds)
    with pytest.raises(ConfigError, match="composed as boxes"):
        logic("transitive=isa", rows, [0, 1], kinds, scorers.get("distmult"))


def test_a_composition_moves_entities_as_its_two_steps_do() -> None:
    shifted = [1.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0]
    twice = [2.0, 0.0, 1.0, 1.0, 0.0, 0.0, 1.0, 1.0]
    one = entity((0.0, 0.0), (4.0, 2.0)).repeat(2, 1)
    for whole, missing in ((twice, 0.0), (shifted, 2 * (2 * 0.25) / 2)):
        kinds = torch.stack([row(shifted), row(shifted), row(whole)])
        found = logic("composed=isa*has=of", (one, kinds[[0, 1]], one), [0, 1], kinds)
        assert found == pytest.approx(missing, abs=5e-3)


def test_the_penalty_is_sides_and_places_with_their_shares() -> None:
    boxes = Boxes(size=2.0, place=0.5)
    head, tail = entity((3.0, 4.0), (6.0, 8.0))[None], entity((0.0, 0.0), (5.0, 12.0))[None]
    relation = torch.zeros(1, 8, dtype=torch.float64)
    # sides 3 and 4, 5 and 12; corners (3, 4) and (0, 0)
    assert boxes.penalty(head, relation, tail).item() == pytest.approx(2.0 * (5 + 13) + 0.5 * (5 + 0 + 0))
