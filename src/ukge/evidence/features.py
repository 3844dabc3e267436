"""All evidence about facts as named columns, without what a fact says of itself."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from ukge.evidence import pairs, paths, tables
from ukge.evidence.backbones import AGREEMENT, Backbone, agreement_columns
from ukge.evidence.lookup import FactBatch
from ukge.evidence.pairs import pair_columns
from ukge.evidence.paths import PathRules, inverse_steps, path_columns
from ukge.evidence.tables import Added, Tables, expected_of_relation, group_columns
from ukge.evidence.trees import Matrix, Trees
from ukge.evidence.values import ABOVE, Around, KnownValues, around
from ukge.graph.index import FactIndex
from ukge.graph.queries import AnyIds, Places

BLOCK = 1 << 16
"""Facts whose evidence is made at once."""

RELATION, EXPECTED = "relation", "expected"
GRAPH = (RELATION, *pairs.NAMES, *tables.NAMES, *paths.NAMES)
"""Columns that the known facts alone fill."""

MOST_CATEGORIES = 254
"""Relations told apart as categories, those with the most facts; the others are one."""

RISING = frozenset(
    {
        "inverse_unmatched",
        "implied_confidence",
        "implied_best",
        "rule_best",
        "rule_or",
    }
)
"""Columns that can only speak for a higher confidence when they are higher; so do the models' beliefs."""


def model_column(backbone: Backbone) -> str:
    """Return the name of the column with what a model believes."""
    return f"model:{backbone.name}"


@dataclass(frozen=True, eq=False)
class Features:
    """Everything that evidence is read from: the known facts, their sums, the rules mined from them, trained models."""

    index: FactIndex
    tables: Tables
    rules: PathRules
    backbones: tuple[Backbone, ...]
    category: npt.NDArray[np.float32]
    """the category of each relation: trees know relations by it, so facts that come later must not change it"""
    expectation: Trees | None = None
    """what the graph's own evidence about a fact means for its confidence, learnt from the known facts"""
    values: KnownValues | None = None
    """which values the confidences of such facts take, learnt likewise; only medians need it"""

    @classmethod
    def of(cls, index: FactIndex, tables: Tables, rules: PathRules, backbones: tuple[Backbone, ...]) -> Features:
        """Gather what evidence is read from; the relations with the most facts get categories of their own."""
        count = np.zeros(index.n_relations, dtype=np.int64)
        count[tables.by_relation.key] = tables.by_relation.count
        place = np.empty(len(count), dtype=np.float32)
        place[np.argsort(-count, kind="stable")] = np.arange(len(count))
        return cls(index, tables, rules, backbones, np.minimum(place, np.float32(MOST_CATEGORIES - 1)))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns, in order."""
        agreement = AGREEMENT if self.backbones else ()
        models = tuple(model_column(each) for each in self.backbones)
        expected = (EXPECTED,) if self.expectation is not None else ()
        values = () if self.values is None else self.values.column_names
        return (*GRAPH, *expected, *values, *models, *agreement)

    @property
    def rising(self) -> npt.NDArray[np.int8]:
        """1 for the columns in which a prediction may only rise, 0 for the others."""
        return np.array([name in RISING or name.startswith("model:") for name in self.names], dtype=np.int8)

    @property
    def from_models(self) -> npt.NDArray[np.bool_]:
        """Which columns come from trained models: for facts the models were trained on these know the answer."""
        return np.array([name.startswith("model:") or name in AGREEMENT for name in self.names], dtype=np.bool_)

    @property
    def learnt(self) -> npt.NDArray[np.bool_]:
        """Which columns were learnt from the known facts: of these facts they know the answer."""
        return np.array([name == EXPECTED or name.startswith(ABOVE) for name in self.names], dtype=np.bool_)

    @cached_property
    def rule_table(self) -> npt.NDArray[np.int32]:
        """The rules' own look-up table."""
        return self.rules.table(self.index.n_relations)

    @cached_property
    def inverse_step(self) -> npt.NDArray[np.int32]:
        """Each step of the neighbours as it is from the other end."""
        return inverse_steps(self.index.graph.undirected_relations)

    @cached_property
    def rows_of_relation(self) -> npt.NDArray[np.int64]:
        """How many rows of the index each relation has: without a direction, each fact from both its ends."""
        return np.bincount(self.index.relation, minlength=self.index.n_relations)

    @cached_property
    def _around(self) -> Around | None:
        return None if self.values is None else around(self.index, self.values.found.cells, names=self.values.names)

    @cached_property
    def _added(self) -> Added:
        return Added.by_fact(self.index.triples)

    def columns(self, head: AnyIds, relation: AnyIds, tail: AnyIds, own: Places | None = None) -> Matrix:
        """Return the evidence about facts, (n, columns).

        Where `own[i]` is the place of fact i among the distinct known facts (see `FactIndex.find`), the fact does not
        count for itself: not one of its rows, nor its mirror if its relation has no direction. −1, or no `own` at all,
        lets all known facts count. Both directions of a fact without a direction have the same evidence.
        """
        asked = FactBatch.of(*self.index.graph.as_stored(head, relation, tail), own)
        out = np.empty((len(head), len(self.names)), dtype=np.float32)
        for begin in range(0, len(head), BLOCK):
            rows = slice(begin, begin + BLOCK)
            self._fill(asked.block(rows), out[rows])
        return out

    def _fill(self, asked: FactBatch, out: Matrix) -> None:
        out[:, 0] = self.category[asked.relation]
        at = 1

        def part(width: int) -> Matrix:
            nonlocal at
            at += width
            return out[:, at - width : at]

        index, sums = self.index, self.tables
        added = self._added.of(asked.own) if (asked.own >= 0).any() else Added.nothing(len(asked.own))
        expected = expected_of_relation(sums, asked, added)
        pair_columns(index, sums, self.rows_of_relation, asked, added, expected, part(len(pairs.NAMES)))
        group_columns(index, sums, asked, added, part(len(tables.NAMES)))
        path_columns(index, self.rules, self.rule_table, self.inverse_step, asked, part(len(paths.NAMES)))
        if self.expectation is not None:
            part(1)[:, 0] = self.expectation.predict(out[:, : len(GRAPH)])
        if self.values is not None and self._around is not None:
            known = self.values.columns(out[:, : len(GRAPH)], self._around.columns(asked))
            part(known.shape[1])[:] = known
        beliefs = part(len(self.backbones))
        for number, backbone in enumerate(self.backbones):
            beliefs[:, number] = backbone.belief(asked.head, asked.relation, asked.tail)
        if self.backbones:
            agreement_columns(self.index, self.backbones[0], asked, part(len(AGREEMENT)))


def over_more(
    index: FactIndex,
    tables: Tables,
    rules: PathRules,
    backbones: tuple[Backbone, ...],
    category: npt.NDArray[np.float32],
    expectation: Trees | None,
    values: KnownValues | None,
) -> Features:
    """Return what is read from an index with more names than the rules and categories were made for.

    Of a relation that trees have never seen they know what they know of the rarest: those share a category.
    """
    more = index.n_relations - len(category)
    if more:
        rules = rules.among(len(category), index.n_relations)
        category = np.append(category, np.full(more, MOST_CATEGORIES - 1, dtype=np.float32))
    return Features(index, tables, rules, backbones, category, expectation, values)
