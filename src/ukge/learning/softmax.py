"""The sum that a softmax divides by, over all entities of many queries: each table is written as seldom as possible.

With every entity for every fact of a batch these tables are hundreds of megabytes, and PyTorch's own composition of
mask, maximum, difference, exponential and sum writes a new one for each, and again on the way back.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable


def log_total(plausibility: Tensor, counts: Tensor | None) -> Tensor:
    """Return log Σ e^g over the last dimension, of the entries that count; far below any g where none does."""
    found: Tensor = _LogTotal.apply(plausibility, counts)  # type: ignore[no-untyped-call]
    return found


class _LogTotal(Function):
    @staticmethod
    def forward(ctx: Any, plausibility: Tensor, counts: Tensor | None) -> Tensor:
        if counts is None:
            share = plausibility.clone()
        else:
            # Finite, because nothing but minus infinity has a maximum from which no number is a distance.
            share = plausibility.masked_fill(~counts, torch.finfo(plausibility.dtype).min / 2)
        top = share.amax(dim=-1, keepdim=True)
        total = share.sub_(top).exp_().sum(dim=-1, keepdim=True)
        ctx.save_for_backward(share, total)
        return (top + total.log()).squeeze(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        share, total = ctx.saved_tensors
        return share * (gradients[0].unsqueeze(-1) / total), None
