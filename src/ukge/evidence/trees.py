"""Boosted trees as plain arrays: grown by scikit-learn, stored without pickle, evaluated exactly alike.

Many rows are asked by bit vectors, few by NumPy: all trees at once, level by level. The sums are made in the same
order, so the numbers are the same.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from ukge.evidence.bit_vector_trees import UNKNOWN, WORD, BitVectorTrees
from ukge.evidence.kernels import compiler_pays
from ukge.evidence.settings import EvidenceSettings

Matrix = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]
Loss = Literal["log_loss", "squared_error", "absolute_error"]

STEP = 1e-7
"""Seconds that a row takes for a step down a tree without the compiler."""

FEWEST_IN_LEAF = 20

SET = 8
"""Words of a set of categories."""

# Below so many rows a second thread gains nothing; where another process wants the cores it makes growing several
# times slower, because threads wait for each other at every node.
FEWEST_FOR_THREADS = 8192


@dataclass(frozen=True, eq=False)
class Trees:
    """A sum of regression trees and a baseline.

    The nodes of tree k are `root[k]:root[k + 1]`; children of a node are `left` and `left` + 1. A leaf is its own child
    on both ways (`step` 0). A category goes left if its bit is set.
    """

    root: npt.NDArray[np.int64]
    depth: npt.NDArray[np.int64]
    feature: npt.NDArray[np.int32]
    threshold: Floats
    left: npt.NDArray[np.int32]
    step: npt.NDArray[np.int32]
    missing_left: npt.NDArray[np.uint8]
    category: npt.NDArray[np.int32]
    bits: npt.NDArray[np.uint32]
    value: Floats
    count: Floats
    baseline: Floats

    @classmethod
    def of(cls, model: Any) -> Trees:
        """Take the trees out of a fitted histogram-boosting model of scikit-learn with one output."""
        parts = [_unpacked(trees[0]) for trees in model._predictors]
        sizes = [len(part["feature"]) for part in parts]
        root = np.concatenate([[0], np.cumsum(sizes)])
        bits = [part.pop("bits") for part in parts]
        before = np.concatenate([[0], np.cumsum([len(each) for each in bits])])
        for number, part in enumerate(parts):
            part["left"] += np.int32(root[number])
            part["category"][part["category"] >= 0] += np.int32(before[number])
        joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0] if name != "depth"}
        return cls(
            root=root,
            depth=np.array([part["depth"] for part in parts], dtype=np.int64),
            bits=np.concatenate(bits),
            baseline=np.asarray(model._baseline_prediction, dtype=np.float64).reshape(-1)[:1],
            **joined,
        )

    def __len__(self) -> int:
        return len(self.depth)

    def predict(self, columns: Matrix) -> Floats:
        """Return the sum of the trees for each row: what scikit-learn calls the raw prediction."""
        out = np.full(len(columns), self.baseline[0])
        if compiler_pays(STEP * len(columns) * int(self.depth.sum())):
            self._bit_vectors.add_to(out, np.ascontiguousarray(columns, dtype=np.float32))
        else:
            out += self._by_level(columns)
        return out

    def _by_level(self, columns: Matrix) -> Floats:
        """Return the sum of the trees for each row, without the baseline."""
        node = np.repeat(self.root[:-1, None], len(columns), axis=1)
        tree, row = np.nonzero(self.step[node])
        while len(tree):
            above = node[tree, row]
            at = self.left[above] + self.goes_right(above, columns[row, self.feature[above]])
            node[tree, row] = at
            inner = self.step[at] == 1
            tree, row = tree[inner], row[inner]
        total: Floats = self.value[node].cumsum(axis=0)[-1]  # unlike a sum, it adds one tree after the other
        return total

    def goes_right(self, node: npt.NDArray[Any], values: npt.NDArray[np.float32]) -> npt.NDArray[np.bool_]:
        """Return whether each value goes to the right child of its node."""
        right: npt.NDArray[np.bool_] = values > self.threshold[node]
        category = self.category[node]
        strange = np.isnan(values) | ((category >= 0) & ~((values >= 0) & (values < UNKNOWN)))
        right[strange] = self.missing_left[node[strange]] == 0
        asked = np.flatnonzero((category >= 0) & ~strange)
        code = values[asked].astype(np.int64)
        word = self.bits[category[asked] + code // WORD]
        right[asked] = (word >> (code % WORD).astype(np.uint32)) & np.uint32(1) == 0
        return right

    @cached_property
    def _bit_vectors(self) -> BitVectorTrees:
        return BitVectorTrees.of(self)


def _unpacked(predictor: Any) -> dict[str, Any]:
    """Return one tree with its nodes renumbered so that the children of a node stand side by side."""
    nodes = predictor.nodes
    order, place, depth = [0], {0: 0}, 0
    for old in order:
        node = nodes[old]
        depth = max(depth, int(node["depth"]))
        if not node["is_leaf"]:
            for child in (int(node["left"]), int(node["right"])):
                place[child] = len(order)
                order.append(child)
    chosen = nodes[np.array(order)]
    leaf = chosen["is_leaf"].astype(np.bool_)
    categorical = chosen["is_categorical"].astype(np.bool_) & ~leaf
    own = np.arange(len(order))
    left = np.array([place[int(node["left"])] if not node["is_leaf"] else 0 for node in chosen])
    return {
        "feature": np.where(leaf, 0, chosen["feature_idx"]).astype(np.int32),
        "threshold": np.where(leaf | categorical, np.inf, chosen["num_threshold"]).astype(np.float64),
        "left": np.where(leaf, own, left).astype(np.int32),
        "step": np.where(leaf, 0, 1).astype(np.int32),
        "missing_left": np.where(leaf, 1, chosen["missing_go_to_left"]).astype(np.uint8),
        "category": np.where(categorical, chosen["bitset_idx"].astype(np.int64) * SET, -1).astype(np.int32),
        "bits": np.ascontiguousarray(predictor.raw_left_cat_bitsets, dtype=np.uint32).reshape(-1),
        "value": chosen["value"].astype(np.float64),
        "count": chosen["count"].astype(np.float64),
        "depth": depth,
    }


def grow(
    loss: Loss,
    columns: Matrix,
    target: npt.ArrayLike,
    settings: EvidenceSettings,
    *,
    weight: Floats | None = None,
    rising: npt.NDArray[np.int8] | None = None,
) -> Trees:
    """Return trees grown by scikit-learn's histogram boosting with the settings of evidence; column 0 is a category.

    With the loss `log_loss` the target is a class, 0 or 1, and the trees give its log-odds.
    """
    from sklearn import ensemble  # noqa: PLC0415 — loading it takes a second

    kind = ensemble.HistGradientBoostingClassifier if loss == "log_loss" else ensemble.HistGradientBoostingRegressor
    model: Any = kind(
        loss=loss,
        max_iter=settings.iterations,
        learning_rate=settings.learning_rate,
        max_leaf_nodes=settings.leaves,
        min_samples_leaf=FEWEST_IN_LEAF,
        l2_regularization=1.0,
        categorical_features=[0],
        monotonic_cst=rising,
        early_stopping=False,
        random_state=settings.seed,
    )
    with _threads_for(len(columns)):
        return Trees.of(model.fit(_known_columns(columns), target, weight))


def _threads_for(rows: int) -> AbstractContextManager[object]:
    if rows >= FEWEST_FOR_THREADS:
        return nullcontext()
    from threadpoolctl import threadpool_limits  # noqa: PLC0415 — it finds the libraries loaded by now

    limits: AbstractContextManager[object] = threadpool_limits(1, user_api="openmp")
    return limits


def _known_columns(columns: Matrix) -> Matrix:
    """Return columns that scikit-learn can bin: one that is never known is set to 0, so that no tree asks for it."""
    never = np.isnan(columns).all(axis=0)
    if not never.any():
        return columns
    filled = columns.copy()
    filled[:, never] = 0.0
    return filled
