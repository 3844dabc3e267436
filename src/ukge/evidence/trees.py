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
"""Facts that go through the trees together: enough to fill vector registers, few enough for the fastest cache."""

WORD = 32
"""Leaves that one word has bits for; a tree with more of them has several words."""

ALL = np.uint32(0xFFFFFFFF)

SEQUENCE, SHIFT = np.uint32(0x077CB531), np.uint32(27)
"""A de Bruijn sequence: times 2^k, its first five bits are another number for each k from 0 to 31."""


@dataclass(frozen=True, eq=False)
class _Words:
    """Trees as questions whose answers strike out leaves.

    The leaves of a tree are counted from the left. Whoever goes right at a node is in none of the leaves under its left
    child: their bits are struck out. The first leaf that is left after all questions, asked in any order, is the
    row's own. So no row waits for the memory to tell where it goes next, and many rows are asked at once.
    """

    tree: npt.NDArray[np.int64]
    """Words of tree k are `tree[k]:tree[k + 1]`, from its first leaves on."""
    start: npt.NDArray[np.int64]
    """Questions of word k are `start[k]:start[k + 1]`."""
    feature: npt.NDArray[np.int32]
    threshold: npt.NDArray[np.float32]
    kept: npt.NDArray[np.uint32]
    """What is left of the word of a row that goes right."""
    missing_left: npt.NDArray[np.uint8]
    category: npt.NDArray[np.int32]
    leaf: Floats
    """Values of the leaves, `WORD` to a word, that of bit k at the number that `SEQUENCE` has for it."""


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
        words = self._words
        rows = np.ascontiguousarray(columns, dtype=np.float32)
        questions = words.feature, words.threshold, words.kept, words.missing_left, words.category
        _predict(rows, words.tree, words.start, *questions, self.bits, words.leaf, out)
        return out

    @cached_property
    def _words(self) -> _Words:
        first, last = self._leaves
        leaves = last[self.root[:-1]]
        tree = np.concatenate([[0], np.cumsum((leaves + WORD - 1) // WORD)])
        of_tree = np.repeat(np.arange(len(self)), np.diff(self.root))
        values = np.zeros(tree[-1] * WORD)
        at_leaf = np.flatnonzero(self.step == 0)
        word, bit = np.divmod(first[at_leaf], WORD)
        place = (np.uint32(1) << bit.astype(np.uint32)) * SEQUENCE >> SHIFT
        values[(tree[of_tree[at_leaf]] + word) * WORD + place] = self.value[at_leaf]
        # A node's question concerns each word that has leaves under its left child.
        asks = np.flatnonzero(self.step == 1)
        begin, end = first[self.left[asks]], last[self.left[asks]]
        spans = (end - 1) // WORD - begin // WORD + 1
        node = np.repeat(asks, spans)
        word = np.repeat(begin // WORD, spans) + np.arange(len(node)) - np.repeat(np.cumsum(spans) - spans, spans)
        low = np.maximum(np.repeat(begin, spans) - word * WORD, 0).astype(np.uint64)
        high = np.minimum(np.repeat(end, spans) - word * WORD, WORD).astype(np.uint64)
        struck = (np.uint64(1) << high) - (np.uint64(1) << low)
        word += tree[of_tree[node]]
        order = np.argsort(word, kind="stable")
        node = node[order]
        start = np.searchsorted(word[order], np.arange(tree[-1] + 1))
        # Columns are single precision: a threshold rounded down to it sends each of them the same way.
        rounded = self.threshold.astype(np.float32)
        above = rounded > self.threshold
        rounded[above] = np.nextafter(rounded[above], np.float32(-np.inf))
        return _Words(
            tree=tree,
            start=start,
            feature=self.feature[node],
            threshold=rounded[node],
            kept=ALL & ~struck[order].astype(np.uint32),
            missing_left=self.missing_left[node],
            category=self.category[node],
            leaf=values,
        )

    @property
    def _leaves(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the first leaf under each node and the one after the last, counted from the left of its tree."""
        size = (self.step == 0).astype(np.int64)
        inner = np.flatnonzero(self.step == 1)
        for node in inner[::-1]:  # children come after their parent
            size[node] = size[self.left[node]] + size[self.left[node] + 1]
        first = np.zeros(len(size), dtype=np.int64)
        for node in inner:
            first[self.left[node]] = first[node]
            first[self.left[node] + 1] = first[node] + size[self.left[node]]
        return first, first + size


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


@nb.njit(cache=True, nogil=True, parallel=True, error_model="numpy")
def _predict(  # type: ignore[no-untyped-def] # noqa: PLR0912
    columns, tree, start, feature, threshold, kept, missing_left, category, bits, leaf, out
):
    """Add the value of each row's leaf in every tree to `out`. Blocks are always whole, so that loops have no rest."""
    n = len(columns)
    for block in nb.prange((n + ROWS - 1) // ROWS):
        first = block * ROWS
        size = min(n - first, ROWS)
        x = np.zeros((columns.shape[1], ROWS), dtype=np.float32)
        for i in range(size):
            for column in range(columns.shape[1]):
                x[column, i] = columns[first + i, column]
        left = np.empty(ROWS, dtype=np.uint32)
        at = np.empty(ROWS, dtype=np.int64)
        total = np.zeros(ROWS, dtype=np.float64)
        for number in range(len(tree) - 1):
            # The word with the first leaves comes last: of what is left in several words, the first counts.
            for word in range(tree[number + 1] - 1, tree[number] - 1, -1):
                left[:] = ALL
                for question in range(start[word], start[word + 1]):
                    column, limit, rest = feature[question], threshold[question], kept[question]
                    if category[question] >= 0:
                        for i in range(ROWS):
                            if goes_right(x[column, i], question, threshold, missing_left, category, bits):
                                left[i] &= rest
                    elif missing_left[question]:
                        for i in range(ROWS):
                            left[i] &= rest if x[column, i] > limit else ALL
                    else:
                        for i in range(ROWS):
                            left[i] &= ALL if x[column, i] <= limit else rest
                for i in range(ROWS):
                    if left[i] != 0:
                        lowest = left[i] & (~left[i] + np.uint32(1))
                        at[i] = word * WORD + (np.uint32(lowest * SEQUENCE) >> SHIFT)
            for i in range(ROWS):
                total[i] += leaf[at[i]]
        for i in range(size):
            out[first + i] += total[i]
