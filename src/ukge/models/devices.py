"""Models by PyTorch: on another device, or where its threads are worth its loading."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ukge.errors import ConfigError
from ukge.models.links import Link
from ukge.models.model import Ids, Model
from ukge.models.parameters import Parameters
from ukge.models.scorers import Scorer
from ukge.models.tensors import to_tensor


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

    def __init__(
        self,
        parameters: Parameters,
        scorer: Scorer,
        link: Link,
        device: str,
        undirected: npt.NDArray[np.bool_] | None = None,
    ) -> None:
        super().__init__(parameters, scorer, link, undirected)
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
