"""Exact Shapley values of sums of trees: how much each column moved a prediction away from the mean one.

The method is path-dependent TreeSHAP (Lundberg, Erion and Lee, 2018): a column that is not known sends a fact down both
branches, in the shares of the facts that the tree was grown on.
"""

from __future__ import annotations

import numpy as np

from ukge.evidence import few_rows
from ukge.evidence.bit_vector_trees import goes_right
from ukge.evidence.kernels import compiler_pays, kernel, prange
from ukge.evidence.trees import Floats, Matrix, Trees

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
        return few_rows.contributions(trees, columns)
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
