"""Exact Shapley values of sums of trees: how much each column moved a prediction away from the mean one.

The method is path-dependent TreeSHAP (Lundberg, Erion and Lee, 2018): a column that is not known sends a fact down both
branches, in the shares of the facts that the tree was grown on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ukge.evidence.bit_vector_trees import goes_right, leaf_numbers
from ukge.evidence.kernels import compiler_pays, kernel, prange
from ukge.evidence.trees import Floats, Matrix, Trees
from ukge.graph.queries import Places

LEAF = 1e-6
"""Seconds that a row takes for a node of a tree without the compiler."""


def expected_value(trees: Trees) -> float:
    """Return the prediction when no column is known."""
    mean = float(trees.baseline[0])
    for number in range(len(trees)):
        first, last = trees.root[number], trees.root[number + 1]
        leaves = trees.step[first:last] == 0
        count = trees.count[first:last][leaves]
        mean += float((trees.value[first:last][leaves] * count).sum() / count.sum())
    return mean


def contributions(trees: Trees, columns: Matrix) -> Floats:
    """Return the Shapley value of every column for each row; with `expected_value` they add up to the prediction."""
    if not compiler_pays(LEAF * len(columns) * len(trees.step)):
        return _by_level(trees, columns)
    out = np.zeros(columns.shape, dtype=np.float64)
    rows = np.ascontiguousarray(columns, dtype=np.float32)
    walk = (trees.root, trees.depth, trees.feature, trees.threshold, trees.left, trees.step, trees.missing_left)
    _shap(rows, *walk, trees.category, trees.bits, trees.value, trees.count, out)
    return out


@kernel()
def _extend(feature, zero, one, weight, at, length, share_zero, share_one, column):  # type: ignore[no-untyped-def]
    feature[at + length], zero[at + length], one[at + length] = column, share_zero, share_one
    weight[at + length] = 1.0 if length == 0 else 0.0
    for i in range(length - 1, -1, -1):
        weight[at + i + 1] += share_one * weight[at + i] * (i + 1) / (length + 1)
        weight[at + i] = share_zero * weight[at + i] * (length - i) / (length + 1)


@kernel()
def _unwind(feature, zero, one, weight, at, length, place):  # type: ignore[no-untyped-def]
    share_one, share_zero = one[at + place], zero[at + place]
    following = weight[at + length]
    for i in range(length - 1, -1, -1):
        if share_one != 0.0:
            kept = weight[at + i]
            weight[at + i] = following * (length + 1) / ((i + 1) * share_one)
            following = kept - weight[at + i] * share_zero * (length - i) / (length + 1)
        else:
            weight[at + i] = weight[at + i] * (length + 1) / (share_zero * (length - i))
    for i in range(place, length):
        feature[at + i], zero[at + i], one[at + i] = feature[at + i + 1], zero[at + i + 1], one[at + i + 1]


@kernel()
def _unwound_sum(zero, one, weight, at, length, place):  # type: ignore[no-untyped-def]
    share_one, share_zero = one[at + place], zero[at + place]
    following, total = weight[at + length], 0.0
    for i in range(length - 1, -1, -1):
        if share_one != 0.0:
            part = following * (length + 1) / ((i + 1) * share_one)
            total += part
            following = weight[at + i] - part * share_zero * (length - i) / (length + 1)
        else:
            total += weight[at + i] * (length + 1) / (share_zero * (length - i))
    return total


@kernel(parallel=True)
def _shap(  # type: ignore[no-untyped-def]
    columns, root, depth, split, threshold, left, step, missing_left, category, bits, value, count, out
):
    deepest = 0
    for tree in range(len(depth)):
        deepest = max(deepest, depth[tree])
    wide = deepest + 2
    for row in prange(len(columns)):
        x = columns[row]
        # One path of columns per level of the tree, each a copy of the one above with a column more.
        size = (deepest + 2) * wide
        feature, zero, one = np.empty(size, dtype=np.int64), np.empty(size), np.empty(size)
        weight = np.empty(size)
        waiting = np.empty(2 * wide + 2, dtype=np.int64)
        its_level, its_length = np.empty(2 * wide + 2, dtype=np.int64), np.empty(2 * wide + 2, dtype=np.int64)
        its_zero, its_one = np.empty(2 * wide + 2), np.empty(2 * wide + 2)
        its_column = np.empty(2 * wide + 2, dtype=np.int64)
        for tree in range(len(depth)):
            top = 1
            waiting[0], its_level[0], its_length[0] = root[tree], 0, 0
            its_zero[0], its_one[0], its_column[0] = 1.0, 1.0, -1
            while top > 0:
                top -= 1
                node, level, length = waiting[top], its_level[top], its_length[top]
                share_zero, share_one, column = its_zero[top], its_one[top], its_column[top]
                at = level * wide
                if level > 0:
                    above = at - wide
                    for i in range(length):
                        feature[at + i], zero[at + i] = feature[above + i], zero[above + i]
                        one[at + i], weight[at + i] = one[above + i], weight[above + i]
                    for i in range(1, length):  # a column met before is taken out, and put back with both shares
                        if feature[at + i] == column:
                            share_zero *= zero[at + i]
                            share_one *= one[at + i]
                            _unwind(feature, zero, one, weight, at, length - 1, i)
                            length -= 1
                            break
                _extend(feature, zero, one, weight, at, length, share_zero, share_one, column)
                if step[node] == 0:
                    for i in range(1, length + 1):
                        part = _unwound_sum(zero, one, weight, at, length, i)
                        out[row, feature[at + i]] += part * (one[at + i] - zero[at + i]) * value[node]
                    continue
                right = goes_right(x[split[node]], node, threshold, missing_left, category, bits)
                for child in range(2):
                    waiting[top], its_level[top], its_length[top] = left[node] + child, level + 1, length + 1
                    its_zero[top] = count[left[node] + child] / count[node]
                    its_one[top] = 1.0 if right == child else 0.0
                    its_column[top] = split[node]
                    top += 1


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


def _by_level(trees: Trees, columns: Matrix) -> Floats:
    """Return the Shapley values of few rows: the sums are those of the kernel, in the same order."""
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
        right = trees.goes_right(np.repeat(above, rows), columns[:, split].T.ravel()).reshape(way[inner].shape)
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
