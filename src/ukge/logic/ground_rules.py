"""Ground rules as a table, and the report of how they came about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from ukge.errors import RuleError
from ukge.graph.uncertain import UncertainGraph
from ukge.logic.rules import Rule


@dataclass(frozen=True)
class GroundRules:
    """Ground rules as a trainer takes them: ids of the head, truth of the body, weight of the rule."""

    head: npt.NDArray[np.int32]
    relation: npt.NDArray[np.int32]
    tail: npt.NDArray[np.int32]
    body: npt.NDArray[np.float32]
    weight: npt.NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.head)


@dataclass(frozen=True, slots=True)
class RuleGrounding:
    """What became of one rule."""

    rule: Rule
    estimate: int
    """ground rules it has at most"""
    filled: int = 0
    """ways to fill its body"""
    observed: int = 0
    """of these, how many were left out because their head is observed"""
    untrue: int = 0
    """of these, how many were left out because their body is not true enough"""
    pruned: str | None = None
    """why the rule was not grounded, or None"""


@dataclass(frozen=True, slots=True)
class GroundingReport:
    """What was grounded, what was left out, and why."""

    budget: int
    rules: tuple[RuleGrounding, ...]
    ground_rules: int

    @property
    def pruned(self) -> list[RuleGrounding]:
        """The rules that were not grounded."""
        return [one for one in self.rules if one.pruned is not None]

    def lines(self) -> list[str]:
        """Return the report as sentences."""
        grounded = [one for one in self.rules if one.pruned is None]
        filled = sum(one.filled for one in grounded)
        told = [
            f"{len(grounded):,} of {len(self.rules):,} rules were grounded: at most "
            f"{sum(one.estimate for one in grounded):,} ground rules were expected, {filled:,} were found.",
            f"{self.ground_rules:,} ground rules are kept; left out were {sum(one.observed for one in grounded):,} "
            f"with an observed head and {sum(one.untrue for one in grounded):,} whose body is not true enough.",
        ]
        return told + [f"Not grounded: {one.rule}\n  {one.pruned}" for one in self.pruned]


@dataclass(frozen=True)
class Grounding:
    """Ground rules in memory (`table`) or in a Parquet file (`path`), with the rules they came from.

    Columns: head, relation, tail (ids), body (truth, eq. 6), weight, rule (place in `rules`), fact_1 … fact_3 (rows of
    the body's facts in the graph, null where the body is shorter).
    """

    rules: tuple[Rule, ...]
    report: GroundingReport
    table: pa.Table | None = None
    path: Path | None = None

    def __len__(self) -> int:
        return self.report.ground_rules

    def read(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Return the table, or some of its columns, from memory or from the file."""
        if self.table is not None:
            return self.table if columns is None else self.table.select(columns)
        chosen = None if columns is None else list(columns)
        return pq.read_table(self.path, columns=chosen, page_checksum_verification=True)

    def heads(self, graph: UncertainGraph) -> UncertainGraph:
        """Return the heads as facts whose confidence is the truth of their body: what a file of ground rules holds."""
        head, relation, tail, body = self._columns("head", "relation", "tail", "body")
        return UncertainGraph.from_ids(head, relation, tail, np.clip(body, 0.0, 1.0), graph.entities, graph.relations)

    def arrays(self) -> GroundRules:
        """Return what a trainer needs. Rules with a negated head are refused: their heads have upper bounds instead."""
        head, relation, tail, body, weight = self._columns("head", "relation", "tail", "body", "weight")
        return GroundRules(head, relation, tail, body.astype(np.float32), weight.astype(np.float32))

    def _columns(self, *names: str) -> list[npt.NDArray[Any]]:
        negated = next((rule for rule in self.rules if rule.negated), None)
        if negated is not None:
            raise RuleError(f"a trainer takes rules with positive heads only:\n  {negated}")
        table = self.read(names)
        return [table[name].to_numpy() for name in names]
