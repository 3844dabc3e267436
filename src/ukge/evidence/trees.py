"""Boosted trees as plain arrays: taken out of scikit-learn once, stored without pickle, evaluated exactly alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]

ROWS = 128
"""Facts that go through a tree together, so that its nodes stay in the cache and the walks overlap."""

TOGETHER = 4
"""Levels that all rows walk down; hardly a leaf is above that."""

NODE = np.dtype([("threshold", "f4"), ("left", "u4"), ("feature", "u2"), ("unknown_right", "u1"), ("category", "u1")])
"""What a walk needs to know of a node, side by side in memory."""


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

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> Trees:
        """Make trees of what `arrays` returned."""
        return cls(**{each.name: arrays[each.name] for each in fields(cls)})

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all arrays by name."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __len__(self) -> int:
        return len(self.depth)

    def predict(self, columns: Matrix) -> Floats:
        """Return the sum of the trees for each row: what scikit-learn calls the raw prediction."""
        out = np.full(len(columns), self.baseline[0])
        rows = np.ascontiguousarray(columns, dtype=np.float32)
        bits = (self.threshold, self.missing_left, self.category, self.bits)
        _predict(rows, self.root, self._nodes, self.step.astype(np.uint8), *bits, self.value, out)
        return out

    @cached_property
    def _nodes(self) -> npt.NDArray[Any]:
        nodes = np.zeros(len(self.feature), dtype=NODE)
        # Columns are single precision: a threshold rounded down to it sends each of them the same way.
        rounded = self.threshold.astype(np.float32)
        above = rounded > self.threshold
        rounded[above] = np.nextafter(rounded[above], np.float32(-np.inf))
        nodes["threshold"], nodes["left"], nodes["feature"] = rounded, self.left, self.feature
        nodes["unknown_right"] = (self.missing_left == 0) & (self.step == 1)
        nodes["category"] = self.category >= 0
        return nodes


def concatenated(parts: Sequence[Trees]) -> Trees:
    """Return the mean of several sums of trees, as one."""
    share = 1.0 / len(parts)
    sizes = np.cumsum([0, *(len(part.feature) for part in parts)])
    words = np.cumsum([0, *(len(part.bits) for part in parts)])

    def joined(name: str) -> npt.NDArray[Any]:
        return np.concatenate([getattr(part, name) for part in parts])

    left = np.concatenate([part.left + np.int32(at) for part, at in zip(parts, sizes, strict=False)])
    category = [np.where(p.category >= 0, p.category + at, -1) for p, at in zip(parts, words, strict=False)]
    root = [part.root[:-1] + at for part, at in zip(parts, sizes, strict=False)]
    return Trees(
        root=np.concatenate([*root, sizes[-1:]]),
        depth=joined("depth"),
        feature=joined("feature"),
        threshold=joined("threshold"),
        left=left.astype(np.int32),
        step=joined("step"),
        missing_left=joined("missing_left"),
        category=np.concatenate(category).astype(np.int32),
        bits=joined("bits"),
        value=joined("value") * share,
        count=joined("count"),
        baseline=np.array([sum(float(part.baseline[0]) for part in parts) * share]),
    )


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
        "category": np.where(categorical, chosen["bitset_idx"].astype(np.int64) * 8, -1).astype(np.int32),
        "bits": np.ascontiguousarray(predictor.raw_left_cat_bitsets, dtype=np.uint32).reshape(-1),
        "value": chosen["value"].astype(np.float64),
        "count": chosen["count"].astype(np.float64),
        "depth": depth,
    }


@nb.njit(cache=True, nogil=True, inline="always")
def goes_right(x, node, threshold, missing_left, category, bits):  # type: ignore[no-untyped-def]
    """Return 1 if a value goes to the right child of a node, 0 if it goes left."""
    if np.isnan(x):
        return 1 - missing_left[node]
    if category[node] >= 0:
        code = np.int64(x)
        if code < 0 or code > 255:
            return 1 - missing_left[node]
        return 1 - ((bits[category[node] + (code >> 5)] >> np.uint32(code & 31)) & np.uint32(1))
    return 1 if x > threshold[node] else 0


@nb.njit(cache=True, nogil=True, inline="always")
def next_node(nodes, here, columns, row, threshold, missing_left, category, bits):  # type: ignore[no-untyped-def]
    """Return the node that a row goes to from node `here`; a leaf keeps it."""
    node = nodes[here]
    x = columns[row, np.uint64(node.feature)]
    if node.category:
        return node.left + np.uint32(goes_right(x, here, threshold, missing_left, category, bits))
    return node.left + (np.uint32(x > node.threshold) | (np.uint32(np.isnan(x)) & np.uint32(node.unknown_right)))


@nb.njit(cache=True, nogil=True, parallel=True, error_model="numpy")
def _predict(  # type: ignore[no-untyped-def]
    columns, root, nodes, step, threshold, missing_left, category, bits, value, out
):
    """Add the value of each row's leaf in every tree to `out`.

    Rows walk together, level by level. After the first levels those that have come to a leaf drop out: boosted trees
    are twice as deep as an average walk. Unsigned, because Numba lets a signed index count from the end.
    """
    n = len(columns)
    for block in nb.prange((n + ROWS - 1) // ROWS):
        first = np.uint64(block * ROWS)
        size = np.uint64(min(n, (block + 1) * ROWS) - block * ROWS)
        at = np.empty(ROWS, dtype=np.uint32)
        walking = np.empty(ROWS, dtype=np.uint32)
        total = np.zeros(ROWS, dtype=np.float64)
        for tree in range(len(root) - 1):
            for i in range(size):
                at[i] = root[tree]
            for _ in range(TOGETHER):
                for i in range(size):
                    at[i] = next_node(nodes, at[i], columns, first + i, threshold, missing_left, category, bits)
            n_walking = np.uint64(0)
            for i in range(size):
                walking[n_walking] = i
                n_walking += np.uint64(step[at[i]])
            while n_walking > 0:
                still = np.uint64(0)
                for j in range(n_walking):
                    i = walking[j]
                    here = next_node(nodes, at[i], columns, first + i, threshold, missing_left, category, bits)
                    at[i] = here
                    walking[still] = i
                    still += np.uint64(step[here])
                n_walking = still
            for i in range(size):
                total[i] += value[at[i]]
        for i in range(size):
            out[first + i] += total[i]
