"""Models by PyTorch: on another device, or where its threads are worth its loading."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ukge.engines.base import Floats, Parameters
from ukge.errors import ConfigError
from ukge.links import Link
from ukge.model import Ids, Model
from ukge.scoring import Scorer


def to_tensor(array: npt.NDArray[Any], device: torch.device) -> Tensor:
    """Return an array on a device; on the CPU it is shared if it can be written to, else copied."""
    # PyTorch has no read-only tensors and warns when it is given such an array, as Arrow's are.
    return torch.from_numpy(array if array.flags.writeable else array.copy()).to(device)


def resolve_device(name: str) -> torch.device:
    """Return the device called `name`; `auto` takes CUDA, then MPS, then the CPU."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        raise ConfigError(
            f"device '{name}' cannot be used: {reason}", hint="Give ‹device='auto'› or ‹device='cpu'›."
        ) from None
    return device


class DeviceModel(Model):
    """A model whose weights are on a device; on the CPU it shares them."""

    def __init__(self, parameters: Parameters, scorer: Scorer, link: Link, device: str) -> None:
        super().__init__(parameters, scorer, link)
        self.device = resolve_device(device)
        self._entity, self._relation, self._link = (
            to_tensor(table, self.device) for table in (parameters.entity, parameters.relation, parameters.link)
        )

    def _rows(self, table: Tensor, ids: Ids) -> Tensor:
        return table.index_select(0, torch.from_numpy(ids.astype(np.int64)).to(self.device))

    @torch.no_grad()
    def _compare_all(self, query: Tensor) -> Tensor:
        found: Tensor = self.scorer.compare_all(query, self._entity)
        return found

    def _best(self, scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
        highest, entity = scores.topk(k, dim=1)
        return entity, highest

    def _numbers(self, values: Tensor) -> npt.NDArray[Any]:
        return values.cpu().numpy()


@torch.no_grad()
def compare_by_torch(scorer: Scorer, query: Floats, candidates: Floats) -> Floats:
    """Return `scorer.compare_all` of arrays, worked out by PyTorch."""
    cpu = torch.device("cpu")
    found: Floats = scorer.compare_all(to_tensor(query, cpu), to_tensor(candidates, cpu)).numpy()
    return found
