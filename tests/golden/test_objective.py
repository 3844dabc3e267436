"""Each term of the objective, worked out by hand."""

from __future__ import annotations

from math import exp, log, log1p
from typing import get_args

import pytest
import torch
from torch import Tensor

from ukge.errors import ConfigError
from ukge.learning.objective import (
    L2,
    Logistic,
    Margin,
    RuleBatch,
    Rules,
    Softmax,
    build_objective,
    log_total,
)
from ukge.learning.sampling import Facts
from ukge.models.losses import BatchScores, Observed, Term, Unseen, losses
from ukge.models.scorers import scorers
from ukge.settings.config import ObjectiveConfig
from ukge.settings.knobs import LossName

UNSEEN = torch.tensor([[0.1, 0.3], [0.5, 0.7]], dtype=torch.float64)


def scores(
    plausibility: list[float],
    confidence: list[float] | None = None,
    unseen: Tensor | None = None,
    counts: Tensor | None = None,
    rules: tuple[list[float], list[float], list[float]] | None = None,
) -> BatchScores:
    """Scores of a batch whose link is the identity; `rules` are plausibilities, bodies and weights."""
    values = torch.tensor(plausibility, dtype=torch.float64)
    nothing = torch.zeros(len(values), 1, dtype=torch.float64)
    by_rules = drawn = None
    if rules is not None:
        by_rules, body, weight = (torch.tensor(column, dtype=torch.float64) for column in rules)
        ids = torch.zeros(len(body), dtype=torch.int64)
        drawn = RuleBatch(Facts(ids, ids, ids), body, weight)
    return BatchScores(
        link=lambda g: g,
        plausibility=values,
        confidence=torch.tensor(confidence or [0.0] * len(values), dtype=torch.float64),
        rows=(nothing, nothing, nothing),
        scorer=scorers.get("distmult"),
        unseen_plausibility=unseen,
        unseen_counts=counts,
        rule_plausibility=by_rules,
        rules=drawn,
    )


def value(term: Term, batch: BatchScores) -> float:
    return float(term.value(batch))


def test_observed_is_the_mean_squared_error() -> None:
    assert value(Observed(), scores([0.5, 0.9], [0.7, 0.4])) == pytest.approx((0.04 + 0.25) / 2)


def test_unseen_is_the_mean_square_over_all_entries() -> None:
    assert value(Unseen(2.0), scores([0, 0], unseen=UNSEEN)) == pytest.approx(2 * (0.01 + 0.09 + 0.25 + 0.49) / 4)


def test_entries_that_do_not_count_change_neither_sum_nor_number() -> None:
    counts = torch.tensor([[True, False], [True, False]])
    assert value(Unseen(2.0), scores([0, 0], unseen=UNSEEN, counts=counts)) == pytest.approx(2 * (0.01 + 0.25) / 2)
    assert value(Unseen(2.0), scores([0, 0], unseen=UNSEEN, counts=torch.zeros(2, 2, dtype=torch.bool))) == 0.0


@pytest.mark.parametrize("f", [0.0, 0.35, 0.84, 0.85, 0.99])
def test_the_papers_ground_rule_is_at_distance_085_minus_f(f: float) -> None:
    body = max(0.0, 0.99 + 0.86 - 1.0)  # (college, synonym, university) ∧ (university, synonym, institute)
    distance = max(0.0, 0.85 - f)
    assert value(Rules(1.0, 0.0), scores([0.0], rules=([f], [body], [1.0]))) == pytest.approx(distance**2)


def test_rules_weigh_each_distance_before_squaring_and_add_the_prior() -> None:
    batch = scores([0.0], rules=([0.35, 0.9], [0.85, 0.85], [2.0, 3.0]))
    assert value(Rules(0.2, 0.0), batch) == pytest.approx(0.2 * (2 * 0.5) ** 2 / 2)
    assert value(Rules(0.2, 0.5), batch) == pytest.approx(0.1 + 0.5 * (0.35**2 + 0.9**2) / 2)


def test_l2_is_half_the_mean_square_norm_of_the_facts_rows() -> None:
    head = torch.tensor([[1.0, 2.0], [0.0, 1.0]])
    relation = torch.tensor([[3.0], [0.0]])
    tail = torch.tensor([[0.0, 0.0], [2.0, 2.0]])
    batch = BatchScores(lambda g: g, torch.zeros(2), torch.zeros(2), (head, relation, tail), scorers.get("distmult"))
    # facts: ½(1 + 4 + 9 + 0) = 7 and ½(1 + 0 + 8) = 4.5
    assert value(L2(0.1), batch) == pytest.approx(0.1 * (7.0 + 4.5) / 2)


def test_logistic_loss() -> None:
    batch = scores([0.0, log(3.0)], unseen=torch.tensor([[0.0], [-log(3.0)]], dtype=torch.float64))
    # softplus(0) = log 2; softplus(−log 3) = log(1 + 1/3)
    mean = (log(2.0) + log(4 / 3)) / 2
    assert value(Logistic(0.5), batch) == pytest.approx(mean + 0.5 * mean)
    assert value(Logistic(0.0), batch) == pytest.approx(mean)


def test_logistic_loss_is_finite_far_out() -> None:
    batch = scores([-1e9, 1e9], unseen=torch.tensor([[1e9], [-1e9]], dtype=torch.float64))
    assert value(Logistic(1.0), batch) == pytest.approx(1e9)
    assert value(Logistic(1.0), scores([2.0])) == pytest.approx(log1p(exp(-2.0)))


def test_margin_pairs_each_fact_with_its_own_unseen_facts() -> None:
    batch = scores([2.0, 0.0], unseen=torch.tensor([[0.0, 1.5], [0.0, -3.0]], dtype=torch.float64))
    # max(0, 1−2+0) = 0; 1−2+1.5 = 0.5; 1−0+0 = 1; 1−0−3 → 0
    assert value(Margin(1.0), batch) == pytest.approx(1.5 / 4)


def test_softmax_compares_a_fact_with_the_unseen_facts_of_each_side() -> None:
    # plausibilities as logarithms of whole numbers: fact 1 has 1 of 1 + 2 + 3 heads and of 1 + 1 + 2 tails
    unseen = torch.log(torch.tensor([[2.0, 3.0, 1.0, 2.0], [1.0, 1.0, 1.0, 5.0]], dtype=torch.float64))
    batch = scores([0.0, log(2.0)], [1.0, 0.5], unseen=unseen)
    assert value(Softmax(), batch) == pytest.approx((log(6.0) + log(4.0) + 0.5 * (log(2.0) + log(4.0))) / 2)
    counts = torch.tensor([[True, False, True, True], [True, True, False, False]])
    batch = scores([0.0, log(2.0)], [1.0, 0.5], unseen=unseen, counts=counts)
    assert value(Softmax(), batch) == pytest.approx((log(3.0) + log(4.0) + 0.5 * log(2.0)) / 2)


def test_the_total_of_a_softmax_and_its_gradient_are_those_of_its_definition() -> None:
    generator = torch.Generator().manual_seed(3)
    given = torch.randn((5, 2, 7), generator=generator, dtype=torch.float64) * 30
    counts = torch.rand((5, 2, 7), generator=generator) < 0.6
    counts[..., 0] = True
    for mask in (None, counts):
        ours, theirs = (given.clone().requires_grad_() for _ in range(2))
        plain = theirs if mask is None else theirs.masked_fill(~mask, -torch.inf)
        weight = torch.arange(10.0, dtype=torch.float64).view(5, 2)
        expected, found = torch.logsumexp(plain, dim=2), log_total(ours, mask)
        torch.testing.assert_close(found, expected)
        gradients = [
            torch.autograd.grad((weight * each).sum(), on)[0] for each, on in ((found, ours), (expected, theirs))
        ]
        torch.testing.assert_close(*gradients)


def test_softmax_has_a_gradient_where_nothing_counts() -> None:
    unseen = torch.zeros((1, 4), dtype=torch.float32, requires_grad=True)
    batch = scores([1.0], [1.0], unseen=unseen, counts=torch.zeros((1, 4), dtype=torch.bool))
    loss = Softmax().value(batch)
    (gradient,) = torch.autograd.grad(loss, unseen)
    assert loss.item() == 0.0
    assert not gradient.any()


def names(config: ObjectiveConfig, unseen: bool = True, rules: bool = True) -> list[str]:
    return [term.name for term in build_objective(config, unseen=unseen, rules=rules)]


def test_objective_of_the_paper_and_its_variants() -> None:
    assert names(ObjectiveConfig()) == ["observed", "unseen", "rules", "l2"]
    assert names(ObjectiveConfig(), unseen=False) == ["observed", "rules", "l2"]
    assert names(ObjectiveConfig(), rules=False) == ["observed", "unseen", "l2"]
    assert names(ObjectiveConfig(rule_weight=0.0)) == ["observed", "unseen", "l2"]
    assert names(ObjectiveConfig(negative_weight=0.0, l2=0.0)) == ["observed", "rules"]


def test_objective_of_the_deterministic_baselines() -> None:
    assert names(ObjectiveConfig(loss="logistic", l2=0.0), rules=False) == ["logistic"]
    assert names(ObjectiveConfig(loss="margin"), rules=False) == ["margin", "l2"]
    with pytest.raises(ConfigError, match="needs unseen facts"):
        names(ObjectiveConfig(loss="margin"), unseen=False)


def test_unknown_loss_lists_the_known_ones() -> None:
    assert names(ObjectiveConfig(loss="softmax"), rules=False) == ["softmax", "l2"]
    with pytest.raises(ConfigError, match="softmax loss needs unseen facts"):
        names(ObjectiveConfig(loss="softmax"), unseen=False)
    with pytest.raises(ConfigError, match=r"Known: .*logistic, margin, .*softmax, squared"):
        names(ObjectiveConfig(loss="hinge"))
    assert set(get_args(LossName)) <= set(losses.names())
