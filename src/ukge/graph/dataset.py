"""A data set: one graph cut into what a model learns from, what chooses it, and what judges it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ukge.errors import DataError
from ukge.graph.nodes import Nodes
from ukge.graph.uncertain import UncertainGraph, concat
from ukge.graph.vocabulary import Vocabulary
from ukge.html.card import card

if TYPE_CHECKING:
    from ukge.graph.claims import Claims


@dataclass(frozen=True, eq=False)
class Dataset:
    """Train, validation and test facts over one pair of vocabularies, with what a benchmark adds to them.

    `negatives` are links taken to be false, one per test fact, with confidence 0; `queries` are the (head, relation)
    ids of the ranking task; `ground_rules` are rule heads with the lower bound that their bodies give them; `inverses`
    are pairs of relations that say the same from the other end; `claims` are those that the facts were made of, if
    several sources speak of them.
    """

    name: str
    train: UncertainGraph
    val: UncertainGraph
    test: UncertainGraph
    negatives: UncertainGraph | None = None
    queries: npt.NDArray[np.int32] | None = None
    ground_rules: UncertainGraph | None = None
    inverses: tuple[tuple[str, str], ...] = ()
    claims: Claims | None = None

    def __post_init__(self) -> None:
        for part in (self.val, self.test, self.negatives, self.ground_rules):
            if part is not None and (part.entities != self.entities or part.relations != self.relations):
                raise DataError(f"the parts of data set {self.name!r} do not share their vocabularies")
            if part is not None and part.undirected != self.undirected:
                raise DataError(f"the parts of data set {self.name!r} do not share their undirected relations")

    @property
    def entities(self) -> Vocabulary:
        """The entity names all parts share."""
        return self.train.entities

    @property
    def relations(self) -> Vocabulary:
        """The relation names all parts share."""
        return self.train.relations

    @property
    def undirected(self) -> tuple[str, ...]:
        """The relations without a direction: of theirs, a fact and its mirror are one."""
        return self.train.undirected

    @property
    def parts(self) -> dict[str, UncertainGraph]:
        """The observed facts by part."""
        return {"train": self.train, "val": self.val, "test": self.test}

    @property
    def nodes(self) -> Nodes:
        """What is known of the entities beside their facts: labels, types, descriptions."""
        return self.train.nodes

    def with_nodes(self, nodes: Nodes) -> Dataset:
        """Return the same facts with other node data; what it says of entities that are not here is left out."""
        if not len(nodes) and not len(self.nodes):
            return self
        kept = nodes.within(self.entities)
        names = ("train", "val", "test", "negatives", "ground_rules")
        parts = {name: part.with_nodes(kept) for name in names if (part := getattr(self, name)) is not None}
        return replace(self, **parts)

    def whole(self) -> UncertainGraph:
        """Return all observed facts: train, then validation, then test."""
        return concat([self.train, self.val, self.test])

    def test_with_negatives(self) -> UncertainGraph:
        """Return the test facts followed by the negative links: the test set of the paper's protocol."""
        if self.negatives is None:
            raise DataError(
                f"data set {self.name!r} has no negative links",
                hint="Draw some with ukge.graph.negatives.with_negatives(dataset).",
            )
        return concat([self.test, self.negatives])

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} {len(part):,}" for name, part in self.parts.items())
        return f"Dataset({self.name!r}: {sizes}; {len(self.entities):,} entities, {len(self.relations):,} relations)"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: how the confidences of each part are distributed."""
        from ukge.graph.notebook import confidence_figure  # noqa: PLC0415 — for notebooks

        shown = {**self.parts, "negatives": self.negatives, "ground rules": self.ground_rules}
        pictures = [confidence_figure(part, f"{name}: {len(part):,}") for name, part in shown.items() if part]
        return card(repr(self), pictures)
