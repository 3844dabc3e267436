"""Tables as tensors of PyTorch, on any device that it has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from ukge.errors import ConfigError
from ukge.models.scorers import Scorer
from ukge.models.tables import Ids, Parameters, Questions, Tables


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


def to_tensor(array: npt.NDArray[Any], device: torch.device) -> Tensor:
    """Return an array on a device; on the CPU it is shared if it can be written to, else copied."""
    # PyTorch has no read-only tensors and warns when it is given such an array, as Arrow's are.
    return torch.from_numpy(np.require(array, requirements="W")).to(device)


class TensorTables(Tables):
    """Tables on a device."""

    def __init__(
        self, entity: Tensor, relation: Tensor, link: Tensor, shared: Mapping[str, Tensor] | None = None
    ) -> None:
        self.entity, self.relation, self.link, self.shared = entity, relation, link, shared or {}

    @classmethod
    def of(cls, parameters: Parameters, device: str) -> TensorTables:
        """Return weights on the device called so; on the CPU they are shared."""
        place = resolve_device(device)
        shared = {name: to_tensor(table, place) for name, table in parameters.shared.items()}
        entity, relation, link = (
            to_tensor(table, place) for table in (parameters.entity, parameters.relation, parameters.link)
        )
        return cls(entity, relation, link, shared)

    @property
    def shape(self) -> tuple[int, int]:
        """How many entities there are, and how wide their rows."""
        return self.entity.shape[0], self.entity.shape[1]

    def rows(self, ids: Ids) -> Any:
        """Return the rows of entities."""
        return self.entity.index_select(0, self.ids(ids))

    def kinds(self, ids: Ids) -> Any:
        """Return the rows of relations."""
        return self.relation.index_select(0, self.ids(ids))

    def ids(self, ids: Ids) -> Tensor:
        """Return ids on the device."""
        return torch.from_numpy(ids.astype(np.int64)).to(self.relation.device)

    @torch.no_grad()
    def compare_all(self, scorer: Scorer, query: Tensor) -> Tensor:
        """Return the plausibility of every entity for each query."""
        return scorer.compare_all(query, self.entity)

    def best(self, scorer: Scorer, asked: Questions, k: int) -> tuple[Tensor, Tensor]:
        """Return the k best entities of each query and their scores."""
        highest, entity = self.scores(scorer, asked).topk(k, dim=1)
        return entity, highest

    def numbers(self, values: Tensor) -> npt.NDArray[Any]:
        """Return values as an array of this process."""
        return values.cpu().numpy()
