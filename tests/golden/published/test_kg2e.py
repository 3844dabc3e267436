"""KG2E: minus the divergence that PyTorch's own distributions give."""

from __future__ import annotations

import torch
from torch.distributions import Independent, Normal, kl_divergence

from ukge.models.scorers import scorers


def test_plausibility_is_minus_the_divergence() -> None:
    generator = torch.Generator().manual_seed(0)
    head, relation, tail = (torch.randn(6, 8, generator=generator, dtype=torch.float64) for _ in range(3))

    def of(rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return rows[:, :4], 0.05 + 4.95 * rows[:, 4:].sigmoid()

    (mean_h, var_h), (mean_r, var_r), (mean_t, var_t) = of(head), of(relation), of(tail)
    difference = Independent(Normal(mean_h - mean_t, (var_h + var_t).sqrt()), 1)
    wanted = -kl_divergence(difference, Independent(Normal(mean_r, var_r.sqrt()), 1))
    scorer = scorers.get("gaussian")
    torch.testing.assert_close(scorer.plausibility(head, relation, tail), wanted)
    torch.testing.assert_close(scorer.compare(scorer.head_query(relation, tail), head), wanted)
    assert scorer.entity_width(4) == scorer.relation_width(4) == 8
