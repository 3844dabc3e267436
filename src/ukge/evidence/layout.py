"""The arrays of evidence in its file: what they are called, and what each must be before anything computes with it.

Compiled code follows the places that trees and tables name, wherever they lead. So nothing is made of arrays here but
by way of `checked`, and trees must be trees besides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from ukge.errors import RunError
from ukge.evaluation.answer_sets import AnswerSets
from ukge.evaluation.distribution import FACT
from ukge.evidence.backbones import AGREEMENT
from ukge.evidence.bounds import UNTOLD, Bounds
from ukge.evidence.cells import STEPS, Cells
from ukge.evidence.false_links import FalseLinks
from ukge.evidence.features import GRAPH, MOST_CATEGORIES
from ukge.evidence.growing import SET
from ukge.evidence.paths import PathRules
from ukge.evidence.ranking import CandidateRanker
from ukge.evidence.regressor import Calibration, ConfidenceRegressor
from ukge.evidence.settings import EvidenceSettings
from ukge.evidence.tables import IMPLIED, Groups, Implications, Tables
from ukge.evidence.trees import Trees
from ukge.evidence.values import Around, CellTrees, KnownValues
from ukge.logic.weights import Prior
from ukge.storage.arrays import Arrays, Expected, checked

AGAIN = "Restore it, or fit the evidence again: ukge evidence fit RUN"

DEEPEST = 1_023
"""Steps down a tree at most; to take a prediction apart takes memory for the square of them."""

_UNTOLD = Expected("int8", (0,), optional=True)
"""The kinds of negative links where they are not told apart; evidence of earlier versions has no array for them."""

MOST_KEY = float(np.iinfo(np.int64).max)


def arrays_of(part: Any, name: str) -> Arrays:
    """Return the arrays of a part, and those of the parts in it, by their names in the file."""
    if isinstance(part, np.ndarray):
        return {name: part}
    inside: Mapping[str, Any] = {}
    if isinstance(part, tuple):
        inside = {str(number): each for number, each in enumerate(part)}
    elif is_dataclass(part):
        inside = {each.name: getattr(part, each.name) for each in fields(part)}
    return {own: array for key, each in inside.items() for own, array in arrays_of(each, f"{name}.{key}").items()}


@dataclass(frozen=True)
class Layout:
    """The arrays of one file, and how many there are of what they speak of: they are checked against that."""

    file: Path
    arrays: Mapping[str, npt.NDArray[Any]]
    settings: EvidenceSettings
    n_entities: int
    n_relations: int
    n_models: int
    kinds: tuple[str, ...] = ()
    """the kinds of negative links that trees tell apart"""

    @property
    def has_expectation(self) -> bool:
        """Whether trees of the known facts are there."""
        return "expectation.root" in self.arrays

    @property
    def n_columns(self) -> int:
        """How many columns the evidence about a fact has."""
        agreement = len(AGREEMENT) if self.n_models else 0
        return len(GRAPH) + self.has_expectation + self.n_questions + self.n_models + agreement

    @property
    def n_questions(self) -> int:
        """How many questions about the values of confidences the known facts answer."""
        return len(self.arrays["values.cells.edge"]) if "values.cells.edge" in self.arrays else 0

    def tables(self) -> Tables:
        """Return the sums over the known facts."""
        n, r = self.n_entities, self.n_relations
        keys = {"by_relation": r, "by_head_relation": r * n, "by_relation_tail": r * n, "by_head": n, "by_tail": n}
        groups = {name: self._groups(f"tables.{name}", most) for name, most in keys.items()}
        implied = {"key": _keys(2 * r * r), "sums": Expected("int64", ("keys", len(IMPLIED)), low=0)}
        return Tables(**groups, implications=Implications(**self._read("tables.implications", implied)))

    def _groups(self, name: str, most: int) -> Groups:
        sums = {each: Expected("int64", ("keys",), low=0) for each in ("total", "squares")}
        return Groups(**self._read(name, {"key": _keys(most), "count": Expected("int64", ("keys",), low=1), **sums}))

    def rules(self, prior: Prior, strong: float) -> PathRules:
        """Return the mined rules."""
        sums = {each: Expected("float64", ("keys",), low=0) for each in ("shown", "implied")}
        found = self._read("rules", {"key": _keys(4 * self.n_relations**3), **sums})
        return PathRules(**found, prior=prior, strong=strong)

    def category(self) -> npt.NDArray[np.float32]:
        """Return the category of each relation."""
        expected = Expected("float32", (self.n_relations,), low=0, high=MOST_CATEGORIES - 1)
        return checked(self.file, {"category": self._found("category")}, {"category": expected}, hint=AGAIN)["category"]

    def expectation(self) -> Trees | None:
        """Return what the graph's own evidence means for a confidence, if that was learnt."""
        return self._trees("expectation", len(GRAPH)) if self.has_expectation else None

    def values(self) -> KnownValues | None:
        """Return which values the confidences of known facts take, if that was learnt."""
        if "values.cells.edge" not in self.arrays:
            return None
        cells, names = self._cells("values.cells"), self.settings.names
        return KnownValues(self._cell_trees("values", cells, len(GRAPH) + Around.width(cells, names=names)), names)

    def regressor(self) -> ConfidenceRegressor:
        """Return what makes a confidence of evidence."""
        holds = self._trees("head.holds", self.n_columns)
        level: Trees | CellTrees
        if "head.level.cells.edge" in self.arrays:
            level = self._cell_trees("head.level", self._cells("head.level.cells"), self.n_columns)
        else:
            level = self._trees("head.level", self.n_columns)
        chance, if_held, overall = (self._calibration(f"head.{name}") for name in ("chance", "if_held", "overall"))
        return ConfidenceRegressor(self.settings.error, holds, level, chance, if_held, overall, self._false_links())

    def _false_links(self) -> FalseLinks | None:
        """Return what tells the kinds of negative links apart, if trees saw several; older evidence does not know."""
        if "head.false.share" not in self.arrays:
            return None
        expected = {
            "share": Expected("float64", (len(self.kinds),), low=np.finfo(np.float64).tiny, high=1),
            "trust": Expected("float64", (1,), low=0, high=1),
        }
        trees = tuple(self._trees(f"head.false.trees.{number}", self.n_columns) for number in range(len(self.kinds)))
        return FalseLinks(self.kinds, **self._read("head.false", expected), trees=trees)

    def bounds(self, number: int) -> Bounds:
        """Return the bounds of any fact (0), or of facts that are taken to hold (1)."""
        name = f"bounds.{number}"
        numbers = {
            "error": Expected("float64", ("facts",), low=-1, high=1),
            "expected": Expected("float64", ("facts",), low=np.finfo(np.float64).tiny),
            "predicted": Expected("float64", ("facts",), low=0, high=1),
            "relation": Expected("int32", ("facts",), low=0, high=self.n_relations - 1),
        }
        folds = range(self.settings.folds)
        difficulty = tuple(self._trees(f"{name}.difficulty.{fold}", self.n_columns) for fold in folds)
        told = number == 0 and len(self.kinds) > 0
        kind = Expected("int8", ("facts",), low=FACT, high=len(self.kinds) - 1) if told else _UNTOLD
        found = self._read(name, {**numbers, "kind": kind})
        return Bounds(**{"kind": UNTOLD, **found}, difficulty=difficulty)

    def ranker(self) -> CandidateRanker | None:
        """Return what orders the candidates of a query, if it was fitted."""
        if "ranking.root" not in self.arrays:
            return None
        columns = self.n_columns + 3 * self.n_models + 1  # of each model a rank and two distances; the side at the end
        return CandidateRanker(self._trees("ranking", columns), self.settings.rank_candidates)

    def answer_sets(self) -> AnswerSets | None:
        """Return the answer sets of queries, if they were calibrated."""
        if "sets.score" not in self.arrays:
            return None
        expected = {
            "score": Expected("float64", ("facts",)),
            "relation": Expected("int32", ("facts",), low=0, high=self.n_relations - 1),
            "side": Expected("uint8", ("facts",), high=1),
        }
        return AnswerSets(**self._read("sets", expected))

    def _calibration(self, name: str) -> Calibration:
        x = Expected("float64", ("points",), rising=True)
        found = Calibration(**self._read(name, {"x": x, "y": Expected("float64", ("points",), 0, 1, rising=True)}))
        if not len(found.x):
            raise self._refused(f"'{name}.x' is empty")
        return found

    def _cells(self, name: str) -> Cells:
        """Return cells of confidence that fit together: each ends below the edge to the next one."""
        expected = {
            "edge": Expected("float64", ("edges",), 0, 1, rising=True),
            "quantile": Expected("float64", ("cells", STEPS + 1), 0, 1),
            "share": Expected("float64", ("cells",), 0, 1),
        }
        found = Cells(**self._read(name, expected))
        if not len(found.edge) or len(found.edge) + 1 != len(found):
            raise self._refused(f"'{name}.edge' does not part {len(found)} cells")
        return found

    def _cell_trees(self, name: str, cells: Cells, columns: int) -> CellTrees:
        numbers = range(len(cells.questions))
        return CellTrees(cells, tuple(self._trees(f"{name}.trees.{number}", columns) for number in numbers))

    def _trees(self, name: str, columns: int) -> Trees:
        expected = {
            "root": Expected("int64", (None,), low=0, rising=True),
            "depth": Expected("int64", ("trees",), low=0, high=DEEPEST),
            "feature": Expected("int32", ("nodes",), low=0, high=columns - 1),
            "threshold": Expected("float64", ("nodes",), finite=False),
            "left": Expected("int32", ("nodes",), low=0),
            "step": Expected("int32", ("nodes",), low=0, high=1),
            "missing_left": Expected("uint8", ("nodes",), high=1),
            "category": Expected("int32", ("nodes",), low=-1),
            "bits": Expected("uint32", (None,)),
            "value": Expected("float64", ("nodes",)),
            "count": Expected("float64", ("nodes",), low=1),
            "baseline": Expected("float64", (1,)),
        }
        trees = Trees(**self._read(name, expected))
        wrong = _wrong_tree(trees)
        if wrong is not None:
            raise self._refused(f"'{name}.{wrong[0]}' {wrong[1]}")
        return trees

    def _read(self, name: str, expected: Mapping[str, Expected]) -> Arrays:
        """Return the arrays of a part by their names in it, each as it must be."""
        whole = {f"{name}.{key}": each for key, each in expected.items()}
        there = {own: self.arrays[own] for own in whole if own in self.arrays}
        return {
            own.removeprefix(f"{name}."): each for own, each in checked(self.file, there, whole, hint=AGAIN).items()
        }

    def _found(self, name: str) -> npt.NDArray[Any]:
        if name not in self.arrays:
            raise self._refused(f"'{name}' is missing")
        return self.arrays[name]

    def _refused(self, wrong: str) -> RunError:
        return RunError(f"{self.file} cannot be used: {wrong}", hint=AGAIN)


def _keys(most: int) -> Expected:
    """Return what sorted keys below a number must be."""
    return Expected("int64", ("keys",), low=0, high=min(most - 1, MOST_KEY), rising=True)


def _wrong_tree(trees: Trees) -> tuple[str, str] | None:
    """Return which array does not make trees of the nodes, and how; None if they are trees as `Grower` numbers them.

    The children of the k-th inner node of a tree are its nodes 2k + 1 and 2k + 2, which come after it: so every node
    but the first has one parent, and every way down ends.
    """
    root, step, n = trees.root, trees.step, len(trees.step)
    size = np.diff(root)
    if len(root) < 2 or len(root) != len(trees.depth) + 1 or root[0] != 0 or root[-1] != n or (size < 1).any():
        return "root", "does not cut the nodes into trees"
    inner, node, top = step == 1, np.arange(n), np.repeat(root[:-1], size)
    before = np.cumsum(inner) - inner
    left = np.where(inner, top + 1 + 2 * (before - before[top]), node)
    if (trees.left != left).any() or (left < node).any() or (inner & (left == node)).any():
        return "left", "does not lead from the nodes of a tree to their children"
    if (np.bincount(np.repeat(np.arange(len(size)), size), inner) * 2 + 1 != size).any():
        return "step", "does not say which nodes are leaves"
    if (trees.depth != _depths(trees)).any():
        return "depth", "is not how deep the trees are"
    if ((trees.category >= 0) & (trees.category > len(trees.bits) - SET)).any():
        return "category", "leads beyond the sets of categories"
    return ("threshold", "holds numbers that are none") if np.isnan(trees.threshold).any() else None


def _depths(trees: Trees) -> npt.NDArray[np.int64]:
    """Return the most steps down each tree; more than `DEEPEST` are not counted."""
    depth, number = np.zeros(len(trees), dtype=np.int64), np.arange(len(trees))
    level = trees.root[:-1]
    for _ in range(DEEPEST + 1):
        inner = trees.step[level] == 1
        if not inner.any():
            break
        number, left = np.tile(number[inner], 2), trees.left[level[inner]]
        level = np.concatenate([left, left + 1])
        depth[np.unique(number)] += 1
    return depth
