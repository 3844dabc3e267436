"""Arrays as tensors: where PyTorch's threads are worth its loading."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor

from ukge.models.parameters import Floats
from ukge.models.scorers import Scorer


def to_tensor(array: npt.NDArray[Any], device: torch.device) -> Tensor:
    """Return an array on a device; on the CPU it is shared if it can be written to, else copied."""
    # PyTorch has no read-only tensors and warns when it is given such an array, as Arrow's are.
    return torch.from_numpy(array if array.flags.writeable else array.copy()).to(device)


@torch.no_grad()
def compare_by_torch(scorer: Scorer, query: Floats, candidates: Floats) -> Floats:
    """Return `scorer.compare_all` of arrays, worked out by PyTorch."""
    cpu = torch.device("cpu")
    found: Floats = scorer.compare_all(to_tensor(query, cpu), to_tensor(candidates, cpu)).numpy()
    return found
