"""Encoders: graph networks that make the rows which a scorer compares, of rows that are learnt and their neighbours'.

An encoder is trained by PyTorch. What a run keeps are the rows that it made: who asks a trained model needs none.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ukge.models.scorers.base import Start
from ukge.registry import Registry

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from ukge.models.neighbourhood import Neighbourhood


class Table(NamedTuple):
    """A table that an encoder learns besides the rows of entities and relations: its name, size and start."""

    name: str
    rows: int
    columns: int
    start: Start


class Encoder(ABC):
    """Rows of entities from those of their neighbourhood, and rows of relations, as functions of tables by name.

    `entity` and `relation` are the rows that are learnt, as wide as the scorer's; the others are the encoder's own.
    """

    backwards: bool = False
    """Whether edges lead from tails to heads, too."""

    @abstractmethod
    def tables(self, width: int) -> Sequence[Table]:
        """Return the tables of its own, for rows so wide."""

    @abstractmethod
    def entities(
        self, tables: Mapping[str, Tensor], near: Neighbourhood, generator: torch.Generator | None = None
    ) -> Tensor:
        """Return the rows of some entities; what is dropped at random in training comes from the generator."""

    @abstractmethod
    def relations(self, tables: Mapping[str, Tensor]) -> Tensor:
        """Return the rows of all relations."""


encoders: Registry[Encoder | None] = Registry("encoder", "ukge.encoders", more="ukge.models.published")
encoders.register("none")(None)
