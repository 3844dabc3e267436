"""Boosted trees as plain arrays: taken out of scikit-learn once, stored without pickle, evaluated exactly alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ukge.evidence import few_rows
from ukge.evidence.bit_vector_trees import BitVectorTrees
from ukge.evidence.kernels import compiler_pays

Matrix = npt.NDArray[np.float32]
Floats = npt.NDArray[np.float64]

STEP = 1e-7
"""Seconds that a row takes for a step down a tree without the compiler."""


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
        if compiler_pays(STEP * len(columns) * int(self.depth.sum())):
            self._bit_vectors.add_to(out, np.ascontiguousarray(columns, dtype=np.float32))
        else:
            out += few_rows.sums(self, columns)
        return out

    @cached_property
    def _bit_vectors(self) -> BitVectorTrees:
        return BitVectorTrees.of(self)


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
