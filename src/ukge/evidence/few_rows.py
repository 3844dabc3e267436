"""Trees asked about few rows, and taken apart, by NumPy: all trees at once, level by level.

The steps of each sum are those of the kernels in `words` and `shap`, in the same order, so the numbers are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ukge.evidence.words import UNKNOWN, WORD, leaf_numbers

if TYPE_CHECKING:
    from ukge.evidence.trees import Floats, Matrix, Trees

Places = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def sums(trees: Trees, columns: Matrix) -> Floats:
    """Return the sum of the trees for each row, without the baseline."""
    node = np.repeat(trees.root[:-1, None], len(columns), axis=1)
    tree, row = np.nonzero(trees.step[node])
    while len(tree):
        at = node[tree, row]
        at = trees.left[at] + _goes_right(trees, at, columns[row, trees.feature[at]])
        node[tree, row] = at
        inner = trees.step[at] == 1
        tree, row = tree[inner], row[inner]
    total: Floats = trees.value[node].cumsum(axis=0)[-1]  # unlike a sum, it adds one tree after the other
    return total


def _goes_right(trees: Trees, node: npt.NDArray[Any], values: npt.NDArray[np.float32]) -> Bools:
    """Return whether each value goes to the right child of its node."""
    right: Bools = values > trees.threshold[node]
    category = trees.category[node]
    strange = np.isnan(values) | ((category >= 0) & ~((values >= 0) & (values < UNKNOWN)))
    right[strange] = trees.missing_left[node[strange]] == 0
    asked = np.flatnonzero((category >= 0) & ~strange)
    code = values[asked].astype(np.int64)
    right[asked] = (trees.bits[category[asked] + code // WORD] >> (code % WORD).astype(np.uint32)) & np.uint32(1) == 0
    return right


class _Paths(NamedTuple):
    """The columns on the way to each of m nodes, `length` of them, each once, as TreeSHAP keeps them.

    `zero` and `one` are the shares of facts that go on where a column is unknown, and where it is that of a row.
    """

    length: Places
    feature: Places  # (m, columns)
    zero: Floats  # (m, columns)
    one: Floats  # (m, columns, rows)
    weight: Floats  # (m, columns, rows); 0 beyond the length

    def of(self, chosen: npt.NDArray[Any]) -> _Paths:
        return _Paths(*(each[chosen] for each in self))

    def without(self, column: Places) -> tuple[_Paths, Floats, Floats]:
        """Take a column out where it is on the way; return its shares, 1 where it was not."""
        m, wide, rows = self.weight.shape
        met = (self.feature == column[:, None]) & (np.arange(wide) < self.length[:, None])
        met[:, 0] = False
        zero, one = np.ones(m), np.ones((m, rows))
        which = np.flatnonzero(met.any(axis=1))
        if len(which) == 0:
            return self, zero, one
        place = met[which].argmax(axis=1)
        own = self.of(which)
        each, last = np.arange(len(which)), own.length - 1
        zero[which], one[which] = own.zero[each, place], own.one[each, place]
        share_zero, share_one, end, size = zero[which][:, None], one[which], last[:, None], own.length[:, None]
        following = own.weight[each, last]
        for i in range(int(last.max()) - 1, -1, -1):
            before, live = own.weight[:, i], i < end
            with np.errstate(divide="ignore", invalid="ignore"):
                seen = following * size / ((i + 1) * share_one)
                unseen = before * size / (share_zero * (end - i))
            kept = before - seen * share_zero * (end - i) / size
            own.weight[:, i] = np.where(live, np.where(share_one != 0.0, seen, unseen), before)
            following = np.where(live & (share_one != 0.0), kept, following)
        own.weight[each, last] = 0.0
        shifted = np.minimum(np.arange(wide) + (np.arange(wide) >= place[:, None]), wide - 1)
        for part, moved in zip(self[1:4], own[1:4], strict=True):
            part[which] = moved[each[:, None], shifted]
        self.weight[which] = own.weight
        self.length[which] -= 1
        return self, zero, one

    def extended(self, column: Places, share_zero: Floats, share_one: Floats) -> _Paths:
        """Put a column at the end of each way."""
        m, wide, rows = self.weight.shape
        each, length = np.arange(m), self.length
        longer = _Paths(
            length + 1,
            np.concatenate([self.feature, np.zeros((m, 1), dtype=np.int64)], axis=1),
            np.concatenate([self.zero, np.zeros((m, 1))], axis=1),
            np.concatenate([self.one, np.zeros((m, 1, rows))], axis=1),
            np.zeros((m, wide + 1, rows)),
        )
        longer.feature[each, length], longer.zero[each, length] = column, share_zero
        longer.one[each, length] = share_one
        i, size = np.arange(wide)[None, :, None], (length + 1)[:, None, None]
        longer.weight[:, :-1] = share_zero[:, None, None] * self.weight * (size - 1 - i) / size
        longer.weight[:, 1:] += share_one[:, None] * self.weight * (i + 1) / size
        longer.weight[length == 0, 0] = 1.0
        return longer


def contributions(trees: Trees, columns: Matrix) -> Floats:
    """Return the Shapley value of every column for each row (see `ukge.evidence.shap`)."""
    rows, n = len(columns), len(trees)
    number, _ = leaf_numbers(trees.root, trees.left, trees.step)
    node, column = trees.root[:-1], np.full(n, -1)
    share_zero, share_one = np.ones(n), np.ones((n, rows))
    nothing = np.zeros((n, 0))
    paths = _Paths(np.zeros(n, dtype=np.int64), nothing.astype(np.int64), nothing, *2 * (np.zeros((n, 0, rows)),))
    found: list[tuple[Places, Places, Floats]] = []
    while len(node):
        paths = paths.extended(column, share_zero, share_one)
        at_leaf = trees.step[node] == 0
        found += _shares(paths.of(at_leaf), node[at_leaf], trees.value)
        inner = np.flatnonzero(~at_leaf)
        above = node[inner]
        split = trees.feature[above].astype(np.int64)
        right = _goes_right(trees, np.repeat(above, rows), columns[:, split].T.ravel()).reshape(-1, rows)
        node, column = np.concatenate([trees.left[above], trees.left[above] + 1]), np.tile(split, 2)
        paths, share_zero, share_one = paths.of(np.tile(inner, 2)).without(column)
        share_zero *= trees.count[node] / trees.count[np.tile(above, 2)]
        share_one *= np.concatenate([~right, right])
    return _added(trees, number, found, columns.shape)


def _shares(paths: _Paths, leaf: Places, value: Floats) -> list[tuple[Places, Places, Floats]]:
    """Return leaves, columns and what the columns on the way to each leaf add for each row: (leaves, columns, rows)."""
    found = []
    for size in np.unique(paths.length):
        own = np.flatnonzero(paths.length == size)
        _, feature, zero, one, weight = paths.of(own)
        end = int(size) - 1
        if end == 0:
            continue
        share_zero, share_one = zero[:, 1:size, None], one[:, 1:size]
        following, total = np.repeat(weight[:, end : end + 1], end, axis=1), np.zeros(share_one.shape)
        for i in range(end - 1, -1, -1):
            before = weight[:, i : i + 1]
            with np.errstate(divide="ignore", invalid="ignore"):
                seen = following * size / ((i + 1) * share_one)
                unseen = before * size / (share_zero * (end - i))
            total += np.where(share_one != 0.0, seen, unseen)
            following = before - seen * share_zero * (end - i) / size
        found.append(
            (leaf[own], feature[:, 1:size], total * (share_one - share_zero) * value[leaf[own]][:, None, None])
        )
    return found


def _added(trees: Trees, number: Places, found: list[tuple[Places, Places, Floats]], shape: tuple[int, ...]) -> Floats:
    """Add up the shares of leaves, from the last leaf of a tree to its first, as the stack of the kernel has them."""
    out = np.zeros(shape)
    if not found:
        return out
    leaf = np.concatenate([np.repeat(leaf, feature.shape[1]) for leaf, feature, _ in found])
    feature = np.concatenate([feature.ravel() for _, feature, _ in found])
    parts = np.concatenate([part.reshape(-1, shape[0]) for *_, part in found])
    tree = np.searchsorted(trees.root, leaf, side="right")
    order = np.lexsort((-number[leaf], tree))
    for row in range(shape[0]):
        out[row] = np.bincount(feature[order], weights=parts[order, row], minlength=shape[1])
    return out
