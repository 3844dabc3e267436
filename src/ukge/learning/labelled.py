"""Unseen facts that are not taken for false, as the PyTorch engines draw and make them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy.typing as npt
import torch
from torch import Tensor

from ukge.learning.sampling import Facts, PerFact


class Labelled(NamedTuple):
    """Facts with the confidences that were put on them."""

    facts: Facts
    confidence: Tensor

    @classmethod
    def draw(
        cls, columns: Mapping[str, npt.NDArray[Any]], n: int, generator: torch.Generator, device: torch.device
    ) -> Labelled:
        """Return n of the facts whose ids and confidences these columns hold, uniformly."""
        size = len(columns["confidence"])
        picks = torch.randint(size, (n,), generator=generator, device=device).cpu().numpy()
        *ids, confidence = (torch.from_numpy(column[picks]).to(device) for column in columns.values())
        return cls(Facts(*(column.long() for column in ids)), confidence)


def corrupted(facts: Facts, unseen: PerFact) -> Facts:
    """Return the unseen facts of a batch one by one: those with another head first, then those with another tail."""
    n = unseen.heads.shape[1]
    head, relation, tail = (column.repeat_interleave(n) for column in facts)
    return Facts(
        torch.cat([unseen.heads.flatten(), head]),
        relation.repeat(2),
        torch.cat([tail, unseen.tails.flatten()]),
    )


def fewer(unseen: PerFact, share: float) -> PerFact:
    """Return a share of the unseen facts of a batch, from both sides of each fact; at least one."""
    n = unseen.heads.shape[1]
    kept = max(1, round(share * n))
    counts = unseen.counts
    if counts is not None:
        counts = torch.cat([counts[:, :kept], counts[:, n : n + kept]], dim=1)
    return replace(unseen, heads=unseen.heads[:, :kept], tails=unseen.tails[:, :kept], counts=counts)
