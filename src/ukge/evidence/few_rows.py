"""Trees asked about few rows, and taken apart, by NumPy: all trees at once, level by level.

The steps of each sum are those of the kernels in `words` and `shap`, in the same order, so the numbers are the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ukge.evidence.bit_vector_trees import UNKNOWN, WORD, leaf_numbers

if TYPE_CHECKING:
    from ukge.evidence.trees import Floats, Matrix, Trees

Places = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


def sums(trees: Trees, columns: Matrix) -> Floats:
    """Return the sum of the trees for each row, without the baseline."""
    node = np.repeat(trees.root[:-1, None], len(columns), axis=1)
    tree, row = np.nonzero(trees.step[node])
    while len(tree):
        above = node[tree, row]
        at = trees.left[above] + _goes_right(trees, above, columns[row, trees.feature[above]])
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


class _Ways(NamedTuple):
    """Ways from the top of trees to nodes, as TreeSHAP keeps them: the columns that were asked, `length` of them.

    `zero` and `one` are the shares of facts that go on where a column is unknown, and where it is known: 1 or 0. Rows
    that went the same ways at all these columns share a way. Beyond the length, weights are 0.
    """

    length: Places
    feature: Places
    zero: Floats
    one: Floats
    weight: Floats

    def pick(self, chosen: npt.NDArray[Any]) -> _Ways:
        return _Ways(*(each[chosen] for each in self))

    def without(self, column: Places) -> tuple[Floats, Floats]:
        """Take a column out of each way that has it, in place; return its shares, 1 where it was not."""
        wide = np.arange(self.weight.shape[1])
        met = (self.feature == column[:, None]) & (wide < self.length[:, None]) & (wide > 0)
        zero, one = np.ones((2, len(column)))
        which = np.flatnonzero(met.any(axis=1))
        if len(which):
            own, place = self.pick(which), met[which].argmax(axis=1)
            each, size, end = np.arange(len(which)), own.length, own.length - 1
            zero[which], one[which] = own.zero[each, place], own.one[each, place]
            share_zero, known = zero[which], one[which] != 0.0
            following = own.weight[each, end]
            for i in range(int(end.max()) - 1, -1, -1):
                before, live = own.weight[:, i].copy(), i < end
                seen, left = following * size / (i + 1), np.maximum(end - i, 1)
                own.weight[:, i] = np.where(known, seen, before * size / (share_zero * left))
                own.weight[~live, i] = before[~live]
                following = np.where(live & known, before - seen * share_zero * left / size, following)
            own.weight[each, end] = 0.0
            later = np.minimum(wide + (wide >= place[:, None]), wide[-1])
            for mine, theirs in zip(self[1:4], own[1:4], strict=True):
                mine[which] = np.take_along_axis(theirs, later, axis=1)
            self.weight[which], self.length[which] = own.weight, end
        return zero, one

    def extended(self, column: Places, share_zero: Floats, share_one: Floats) -> _Ways:
        """Return each way with one more column at its end."""
        length, each, i = self.length, np.arange(len(column)), np.arange(self.weight.shape[1])
        one_more: list[npt.NDArray[Any]] = [np.pad(part, ((0, 0), (0, 1))) for part in self[1:4]]
        for part, value in zip(one_more, (column, share_zero, share_one), strict=True):
            part[each, length] = value
        weight, size = np.zeros((len(column), len(i) + 1)), (length + 1)[:, None]
        weight[:, :-1] = share_zero[:, None] * self.weight * (size - 1 - i) / size
        weight[:, 1:] += share_one[:, None] * self.weight * (i + 1) / size
        weight[length == 0, 0] = 1.0
        return _Ways(length + 1, one_more[0], one_more[1], one_more[2], weight)

    def shares(self) -> Floats:
        """Return what each column of a way, but for its first, adds to the sum of a tree for each unit at its end."""
        out = np.zeros(self.weight.shape)
        for size in np.unique(self.length):
            own = np.flatnonzero(self.length == size)
            _, _, zero, one, weight = self.pick(own)
            zero, one, end = zero[:, 1:size], one[:, 1:size], int(size) - 1
            total = np.zeros(zero.shape)
            for known in (True, False):
                way, place = np.nonzero((one != 0.0) == known)
                share_zero, added, following = zero[way, place], np.zeros(len(way)), weight[way, end]
                for i in range(end - 1, -1, -1):
                    before = weight[way, i]
                    if known:
                        part = following * size / (i + 1)
                        following = before - part * share_zero * (end - i) / size
                    else:
                        part = before * size / (share_zero * (end - i))
                    added += part
                total[way, place] = added
            out[own, 1:size] = total * (one - zero)
        return out


def contributions(trees: Trees, columns: Matrix) -> Floats:
    """Return the Shapley value of every column for each row (see `ukge.evidence.shap`)."""
    rows, n = len(columns), len(trees)
    node, way = trees.root[:-1], np.repeat(np.arange(n)[:, None], rows, axis=1)  # (nodes), (nodes, rows)
    column, zero, one = np.full(n, -1), np.ones(n), np.ones(n)
    nothing = np.zeros((n, 0))
    ways = _Ways(np.zeros(n, dtype=np.int64), nothing.astype(np.int64), nothing, nothing, nothing)
    found: list[tuple[Places, Places, Floats]] = []
    while len(node) and rows:
        ways = ways.extended(column, zero, one)
        inner = trees.step[node] == 1
        leaf, its_way = node[~inner], way[~inner]
        used, place = np.unique(its_way, return_inverse=True)
        share = ways.pick(used).shares()[place.reshape(its_way.shape)] * trees.value[leaf][:, None, None]
        at, step = np.nonzero(np.arange(1, share.shape[2]) < ways.length[its_way[:, 0]][:, None])
        found.append((leaf[at], ways.feature[its_way[at, 0], step + 1], share[at, :, step + 1]))
        # Rows that go the same way on from here have the same ways to both children.
        above, split = node[inner], trees.feature[node[inner]].astype(np.int64)
        right = _goes_right(trees, np.repeat(above, rows), columns[:, split].T.ravel()).reshape(way[inner].shape)
        parted, at_parted, new = np.unique(2 * way[inner] + right, return_index=True, return_inverse=True)
        new = new.reshape(right.shape)
        old, to_right, of_node = parted // 2, parted % 2, at_parted // rows
        node, way = np.concatenate([trees.left[above], trees.left[above] + 1]), np.concatenate([new, new + len(parted)])
        column, ways = np.tile(split[of_node], 2), ways.pick(np.tile(old, 2))
        zero, one = ways.without(column)
        left = trees.left[above[of_node]]
        zero *= trees.count[np.concatenate([left, left + 1])] / trees.count[np.tile(above[of_node], 2)]
        one *= np.concatenate([1 - to_right, to_right])
    return _added(trees, found, columns.shape)


def _added(trees: Trees, found: list[tuple[Places, Places, Floats]], shape: tuple[int, ...]) -> Floats:
    """Add up the shares of leaves, from the last leaf of a tree to its first, as the kernel's stack has them."""
    out = np.zeros(shape)
    if found:
        leaf, feature, share = (np.concatenate(each) for each in zip(*found, strict=True))
        number, _ = leaf_numbers(trees.root, trees.left, trees.step)
        order = np.lexsort((-number[leaf], np.searchsorted(trees.root, leaf, side="right")))
        feature, share = feature[order], share[order]
        for row in range(shape[0]):
            out[row] = np.bincount(feature, weights=share[:, row], minlength=shape[1])
    return out
